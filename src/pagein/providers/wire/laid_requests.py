"""Assembled prompts as request bodies, in any wire format. A format that caches without breakpoints gets none."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from pagein.model.laid_prompts import LaidPrompt
from pagein.model.messages import Message, Text
from pagein.providers.caches.cache_values import Breakpoint
from pagein.providers.validity.turns import Api, Wire
from pagein.providers.wire.breakpoint_edits import SYSTEM, Address, Changes, with_changes
from pagein.providers.wire.formats import format_named


def render_prompt(prompt: LaidPrompt, api: Api, model: str, *, max_tokens: int) -> dict[str, Any]:
    """Render an assembled prompt as a request body with its cache breakpoints."""
    form = format_named(api)
    messages = [
        Message(role, tuple(block.content or Text(block.text) for block in blocks))
        for role, blocks in ((role, list(group)) for role, group in groupby(prompt.blocks, lambda block: block.role))
    ]
    body = form.requests.render(messages, model, max_tokens=max_tokens)
    breakpoints = form.cache.breakpoints
    if breakpoints is None or not form.cache.needs_breakpoints or not prompt.marks:
        return body
    mark = breakpoints.mark(breakpoints.word(Breakpoint(1)))
    marks: Mapping[Address, Wire | None] = dict.fromkeys(_addresses(prompt), mark)
    return with_changes(body, Changes(api, marks))


def _addresses(prompt: LaidPrompt) -> list[Address]:
    """The addresses of the marked blocks: message and block, the system prompt apart.

    Results and the user's words in a row are one message where breakpoints are set.
    """
    found: list[Address] = []
    message, place, speaker = SYSTEM, -1, "system"
    for block in prompt.blocks:
        said_by = "user" if block.role == "tool" else block.role
        if said_by == speaker:
            place += 1
        else:
            message, place, speaker = message + 1, 0, said_by
        if block.mark:
            found.append((message, place))
    return found

"""The visible blocks of wire messages, which are compared, priced and searched."""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pagein.errors import BadInput
from pagein.model.json_text import decode_json
from pagein.model.messages import Block, Text, ToolCall, ToolResult
from pagein.providers.validity import Api
from pagein.providers.wire import decode
from pagein.providers.wire.body_check import check_body
from pagein.replay.prompt.model_calls import strings_in, without_gutter

Kind = Literal["text", "arguments", "result"]


class Shown(NamedTuple):
    """One block as a request shows it. call: the id of its tool call; text: what stands there (arguments as JSON)."""

    kind: Kind
    call: str
    text: str


class Shapes:
    """Reads wire messages of one API, each different one once: requests repeat their beginnings."""

    def __init__(self, api: Api) -> None:
        self.api: Api = api
        self._read: dict[bytes, tuple[Shown, ...]] = {}
        self._visible: dict[Shown, str] = {}

    def shown(self, message: bytes) -> tuple[Shown, ...]:
        """The blocks of one wire message. Raises BadInput where it is none."""
        found = self._read.get(message)
        if found is None:
            request = decode(b'{"messages":[%s]}' % message, self.api)
            found = tuple(shown for one in request.messages for block in one.blocks for shown in _shown(block))
            self._read[message] = found
        return found

    def visible(self, shown: Shown) -> str:
        """What of it is part of the visible text (metric definition: line numbers removed, strings of arguments)."""
        text = self._visible.get(shown)
        if text is None:
            text = self._visible[shown] = seen_text(shown)
        return text

    def violations(self, messages: Sequence[bytes]) -> set[str]:
        """The ids of the rules by which a provider would refuse a request of these messages."""
        try:
            body: dict[str, Any] = {"messages": [decode_json(one) for one in messages]}
        except ValueError as problem:
            raise BadInput(str(problem)) from problem
        return {violation.rule for violation in check_body(body, self.api)}


def wire_text(message: object) -> bytes:
    """A wire message as it is handed to a worker: JSON in ASCII, so that any text survives the pipe."""
    return json.dumps(message, separators=(",", ":")).encode()


def seen_text(shown: Shown) -> str:
    """Visible text of a block."""
    if shown.kind == "arguments":
        return "\n".join(strings_in(shown.text))
    return without_gutter(shown.text) if shown.kind == "result" else shown.text


def _shown(block: Block) -> list[Shown]:
    match block:
        case Text() if block.text:
            return [Shown("text", "", block.text)]
        case ToolCall():
            return [Shown("arguments", block.id, block.arguments)]
        case ToolResult():
            return [Shown("result", block.call_id, block.text)]
        case _:
            return []

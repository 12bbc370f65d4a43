"""Make an answer from a turn of a script: ids, signatures, arguments, usage."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.providers.validity.thinking_bonds import after, trail_before
from pagein.providers.validity.turns import PartKind, PromptTurn, Trail, TurnPart
from pagein.providers.wire.body_check import turns_of
from pagein.simulator import seals, tool_search
from pagein.simulator.anthropic_messages.answers import wire_block
from pagein.simulator.formats import simulated_format
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.neutral_answer import FoundTools, ReplyCall, ReplySearch, ReplyText, ReplyThought, Spoken
from pagein.simulator.script import Say, ScriptCall, ScriptPart, Think


def reply_blocks(asked: ProviderCall, said: Sequence[ScriptPart], tag: str, key: bytes) -> tuple[Spoken, ...]:
    """Add ids and signatures to the content of an answer.

    tag: unique to this answer.
    key: of the signatures.
    """
    turns = turns_of(asked.body, asked.api)
    searches = simulated_format(asked.api).searches_tools
    loaded = tool_search.loaded_tools(turns) if searches else frozenset[str]()
    said = tool_search.without_unreachable(said, asked.body, loaded) if searches else said
    trail = trail_before(turns, len(turns.turns)) if any(isinstance(one, Think) for one in said) else Trail(b"")
    blocks: list[Spoken] = []
    for place, one in enumerate(said):
        name = f"{tag}_{place}"
        found = _search(asked, one, name, loaded) if searches else ()
        loaded |= frozenset(found[-1].names if found else ())
        for block in (*found, _reply_block(one, name, trail, asked.model, key)):
            blocks.append(block)
            trail = after(trail, PromptTurn("assistant", -1), _part(block))
    return tuple(blocks)


def _search(
    asked: ProviderCall, one: ScriptPart, name: str, loaded: frozenset[str]
) -> tuple[()] | tuple[ReplySearch, FoundTools]:
    """The search for the deferred tool that this calls, and its result; nothing without one."""
    tool = tool_search.missing_tool(one, asked.body, loaded)
    if not tool:
        return ()
    found = tool_search.find_tools(tool, tool_search.deferred_tools(asked.body))
    return ReplySearch(name, tool_search.search_name(asked.body), tool), FoundTools(name, found)


def override_usage(usage: Usage, given: Mapping[str, int]) -> Usage:
    """Apply the figures of a script to the usage. Input without cache figures is the whole prompt, and fresh."""
    if not given:
        return usage
    output = given.get("output", usage.output)
    if not given.keys() & {"input", "read", "written"}:
        return replace(usage, output=output)
    return Usage(given.get("input", usage.fresh), given.get("read", 0), given.get("written", 0), 0, output)


def _reply_block(one: ScriptPart, name: str, trail: Trail, model: str, key: bytes) -> Spoken:
    match one:
        case Say():
            return ReplyText(one.text)
        case Think():
            signed = "" if one.redacted else one.text
            return ReplyThought(one.text, seals.seal_thinking(key, trail, model, signed), one.redacted)
        case ScriptCall(args=str(text)):
            return ReplyCall(name, one.tool, text, one.namespace, is_free=True)
        case ScriptCall():
            return ReplyCall(name, one.tool, encode_json(one.args).decode(), one.namespace)


def _part(block: Spoken) -> TurnPart:
    """The block in the form of the client's next request."""
    wire: dict[str, Any] = wire_block(block)
    kinds: dict[type, PartKind] = {
        ReplyText: "text",
        ReplyThought: "thinking",
        ReplyCall: "call",
        ReplySearch: "server_call",
        FoundTools: "server_result",
    }
    signature = block.signature if isinstance(block, ReplyThought) else ""
    text = block.text if isinstance(block, ReplyText) else ""
    return TurnPart(kinds[type(block)], -1, -1, signature, text, source=wire)

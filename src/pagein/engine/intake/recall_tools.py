"""Choose the recall tools of a conversation, their first request, and the way to recall without them.

Rules of this file
------------------
1. Tools come before everything that a provider caches. So all requests of a conversation have the tools, byte for byte
   the same even after an upgrade, or none has; the journal of the branch holds the choice. Rule 5 has the exceptions.
2. Agents get the tools: requests that offer functions of the client and let the model choose. Titles, searches of the
   provider and probes do not, and decide nothing.
3. A client that brings pagein's tools by itself (over MCP, say) does not get them twice.
4. A client continues a response that the provider stores by its id, so pagein does not see its messages. Such requests get no
   tools.
5. Tools cost tokens in each request, even if nothing is ever saved (law 5). A known coding agent grows a window in
   which they weigh next to nothing, so it gets them at once if the cache surely stores its prompt prefix alone: then
   they lift no prompt over the cache's minimum, however small the client compacts it (`cache_minimum`). Any other client
   with a small first prompt gets them with the first request in which they weigh next to nothing. If the provider may
   have cached something by then, they come with the first eviction. That voids the cache once, and is part of the price
   of that decision (`EnteringTools`). A known agent with a shell recalls by its shell there.
   A conversation that the client compacted is judged like a new one, if the cache surely holds nothing of its prompt.
   Tools that do more than recall are there at once, and stay: the user has asked for them, or they rule a pooled window.
6. Nothing is evicted without a way to recall it: pagein's tools, offered here or brought by the client, or a known
   agent's shell.
7. A history of calls without any list of tools (a recording, a custom loop) does not show what its model can do. It is
   treated like the callers of the library: stubs name `peek` and `search`, and the author of the history has the engine
   to ask.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from pagein.engine.intake.message_chain import Transcript
from pagein.model.entries import Body, NoteEntry, RequestSent
from pagein.model.journal_notes import Note, OfferedTool, ToolsLaterNote, ToolsNote
from pagein.model.json_text import decode_json, encode_json
from pagein.policy.clients.added_tools import ADDED_TOOLS, adds_shell_of_codex
from pagein.policy.clients.profiles import OTHER, profile_of, tools_of
from pagein.policy.pools.pool_fold import CONTEXT_TOOLS
from pagein.policy.stubs.recall_ways import SHELL, TOOLS, EnteringTools, Way, are_small, tokens_of
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.tool_offers import ToolOffer, definition, names_of

LATER: Final = "later"
Settled: TypeAlias = tuple[ToolOffer, ...] | Literal["later"] | None
"""The recall tools of a conversation; None while undecided, `LATER` if they come with the first eviction."""

_OURS: Final = re.compile(r"(^|_)pagein(_|$)|(^|_)rlm_peek$")
_FREE: Final = (None, "auto")


@dataclass(frozen=True, slots=True)
class RecallOffer:
    """The recall tools and the recall way of a request.

    tools: tools to add to the request.
    settled: the choice journaled on the branch.
    notes: notes to journal with the request.
    way: how the model recalls evictions of this request; None forbids evictions.
    begins: tools to pay for and journal before the first eviction; None if nothing is due.
    deferred: names of the client's tools that the model must search for (`intake.tool_deferral`).
    """

    tools: tuple[ToolOffer, ...] = ()
    settled: Settled = None
    notes: tuple[Note, ...] = ()
    way: Way | None = TOOLS
    begins: EnteringTools | None = None
    deferred: tuple[str, ...] = ()


NO_WORD: Final = RecallOffer()


def step(settled: Settled, body: Body) -> Settled:
    """Return the choice after a further entry. A request sent without a choice had no tools."""
    match body:
        case NoteEntry(note=ToolsNote(tools=tuple() as tools)):
            return tuple(ToolOffer(one.name, one.description, one.schema) for one in tools)
        case NoteEntry(note=ToolsLaterNote()) if settled != ():
            return LATER
        case RequestSent() if settled is None:
            return ()
        case _:
            return settled


def note_of(offers: Sequence[ToolOffer]) -> ToolsNote:
    """Return the note of offered tools."""
    return ToolsNote(tuple(OfferedTool(one.name, one.description, dict(one.schema)) for one in offers))


def recall_of(
    envelope: Envelope,
    script: Transcript,
    offers: Sequence[ToolOffer] | None,
    settled: Settled,
    *,
    may_be_cached: Callable[[], bool],
    leaves: Callable[[], bool],
    is_stored: Callable[[], bool],
) -> RecallOffer:
    """Return the recall tools and the recall way of a client's request.

    offers: the available tools; empty if the user wants no tools any more; None if recall is the caller's own business.
    settled: the choice journaled on the branch.
    may_be_cached: returns whether the provider may have cached anything of the branch.
    leaves: returns whether the client began the conversation anew with a prompt of which the cache holds nothing.
    is_stored: returns whether the cache stores the client's prompt prefix alone (`cache_minimum`).
    """
    if offers is None or (offers and not settled and _tells_nothing(envelope, script)):
        return RecallOffer(settled=settled)
    if not offers:
        return RecallOffer(settled=settled, way=_other_way(envelope, script))
    does_more = _do_more(offers) or (isinstance(settled, tuple) and _do_more(settled))
    begins_anew = bool(settled) and is_agents(envelope) and not does_more and leaves()
    if isinstance(settled, tuple) and not (begins_anew and _is_small(envelope, offers, is_stored)):
        return _with(settled, settled, envelope, script)
    if not is_agents(envelope):
        return RecallOffer(settled=settled, way=_other_way(envelope, script) if settled is None else None)
    is_free = settled is None or not may_be_cached()
    if is_free and not _is_small(envelope, offers, is_stored):
        return _with(tuple(offers), settled, envelope, script, notes=(note_of(offers),))
    notes: tuple[Note, ...] = () if settled == LATER else (ToolsLaterNote(),)
    shell = None if is_free else _other_way(envelope, script)
    begins = _begins(tuple(offers), envelope.api) if shell is None else None
    return RecallOffer(settled=settled, notes=notes, way=shell or TOOLS, begins=begins)


def split_offers(
    offers: Sequence[ToolOffer] | None,
) -> tuple[tuple[ToolOffer, ...] | None, tuple[ToolOffer, ...]]:
    """Return the tools for an inline window, and those for a pooled one."""
    if offers is None:
        return None, ()
    return tuple(one for one in offers if one.name not in CONTEXT_TOOLS), tuple(
        one for one in offers if one.name in CONTEXT_TOOLS
    )


def enter_at_once(envelope: Envelope, script: Transcript, offers: Sequence[ToolOffer]) -> RecallOffer:
    """Return the offer of tools that enter a conversation with its first request, however small."""
    return _with(tuple(offers), None, envelope, script, notes=(note_of(offers),))


def _with(
    tools: tuple[ToolOffer, ...],
    settled: Settled,
    envelope: Envelope,
    script: Transcript,
    notes: tuple[Note, ...] = (),
) -> RecallOffer:
    ours = {one.name for one in tools} - names_of(envelope.fields, envelope.api)
    is_there = TOOLS.peek in ours and "tools" in envelope.fields
    return RecallOffer(tools, settled, notes, TOOLS if is_there else _other_way(envelope, script))


def _is_small(envelope: Envelope, offers: Sequence[ToolOffer], is_stored: Callable[[], bool]) -> bool:
    """Return whether the tools would be a large part of this conversation's cost, judged by this request."""
    if _is_known(bytes(envelope.fields["tools"]), envelope.api):
        return not _do_more(offers) and not is_stored()
    whole = sum(map(len, envelope.fields.values())) + sum(map(len, envelope.items))
    return not are_small(_weight(offers, envelope.api), whole)


def _do_more(offers: Sequence[ToolOffer]) -> bool:
    """Return whether the tools do more than recall what left this session's window."""
    recall = (TOOLS.peek, TOOLS.search)
    return any(one.name not in recall or "everything" in one.schema.get("properties", {}) for one in offers)


@lru_cache(maxsize=16)
def _begins(offers: tuple[ToolOffer, ...], api: Api) -> EnteringTools:
    """Return the offered tools in their form at the first eviction."""
    return EnteringTools(note_of(offers), tokens_of(_weight(offers, api)))


def _weight(offers: Sequence[ToolOffer], api: Api) -> int:
    return sum(len(encode_json(definition(one, api))) for one in offers)


@lru_cache(maxsize=64)
def _is_known(tools: bytes, api: Api) -> bool:
    """Return whether these are the tools of a known coding agent."""
    return profile_of(tools_of(format_named(api).tools.definitions(decode_json(tools)))) is not OTHER


def _other_way(envelope: Envelope, script: Transcript) -> Way | None:
    """Return the client's own way to recall, without tools added by pagein.

    None if no way is known.
    """
    brought = _brought(bytes(envelope.fields.get("tools", b"[]")), envelope.api)
    if brought is not None:
        return brought
    return SHELL if any(adds_shell_of_codex(item.raw) for item in script.items[: script.head + 1]) else None


def _tells_nothing(envelope: Envelope, script: Transcript) -> bool:
    """Return whether the request and its input list no tools."""
    # `functions` is the earlier form of Chat, whose model can call no tool that is not among them
    return envelope.fields.keys().isdisjoint(("tools", "functions")) and not any(
        ADDED_TOOLS in item.raw for item in script.items[: script.head + 1]
    )


@lru_cache(maxsize=64)
def _brought(tools: bytes, api: Api) -> Way | None:
    """Return the recall way by pagein's tools from the client (over MCP, say), else by a known agent's shell."""
    specs = tools_of(format_named(api).tools.definitions(decode_json(tools)))
    ours = [one.name for one in specs if _OURS.search(one.name)]
    peek = next((name for name in ours if name.endswith("peek")), None)
    if peek is not None:
        return Way(peek, next((name for name in ours if name.endswith("search")), TOOLS.search))
    profile = profile_of(specs)
    has_shell = profile is not OTHER and any(profile.ops.get(one.name) == "exec" for one in specs)
    return SHELL if has_shell else None


def is_agents(envelope: Envelope) -> bool:
    """Return whether a request is an agent's: it offers functions of the client and lets the model choose."""
    return _is_agents(tuple((name, bytes(raw)) for name, raw in envelope.fields.items()), envelope.api)


@lru_cache(maxsize=16)  # the fields around the messages rarely change between the requests of an agent
def _is_agents(given: tuple[tuple[str, bytes], ...], api: Api) -> bool:
    fields, form = dict(given), format_named(api).tools
    if not _has_functions(fields.get("tools", b"[]"), api):
        return False
    choice = _value(fields, "tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return kind in _FREE and form.may_continue(fields)


@lru_cache(maxsize=64)
def _has_functions(tools: bytes, api: Api) -> bool:
    """Return whether a list of tools has functions of the client, and none of pagein."""
    form = format_named(api).tools
    functions = [one for one in form.definitions(decode_json(tools)) if form.is_function(one)]
    return bool(functions) and not any(_OURS.search(_name(one)) for one in functions)


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, dict) else tool).get("name"))


def _value(fields: Mapping[str, bytes], name: str) -> object:
    raw = fields.get(name)
    return None if raw is None else decode_json(raw)

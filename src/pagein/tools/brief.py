"""Recall tools in a short form, offered beside a client's own tools and repeated in each request.

The full tools are `peek` and `search`; a model may also use their further arguments.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import BadName
from pagein.model.objects import ObjectId
from pagein.providers.validity import Api
from pagein.providers.wire.tool_offers import ToolOffer, definition
from pagein.tools.calls import Call, refusal_result, schema
from pagein.tools.note_guidance import NOTES
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH

_NUMBER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}

_PEEK: Final[Mapping[str, Mapping[str, object]]] = {
    "id": _TEXT,
    "line": _NUMBER,
    "lines": _NUMBER,
    "offset": _NUMBER,
    "around": _TEXT,
}
_SEARCH: Final[Mapping[str, Mapping[str, object]]] = {
    "pattern": _TEXT,
    "scope": {"type": "array", "items": _TEXT},
    "skip": _NUMBER,
}

OFFERS: Final = (
    ToolOffer(
        PEEK.name,
        "Show text taken out of your context, exactly as it was, by the id of its stub; with around, the lines around a text to "
        "edit.",
        schema(("id",), **_PEEK),
    ),
    ToolOffer(
        SEARCH.name,
        "Find a text or /regex/ in what was taken out of your context. Gives ids and offsets for peek.",
        schema(("pattern",), **_SEARCH),
    ),
)
"""The bytes must be the same in every request of a session, so running sessions keep the old form after a change (`engine.intake.recall_tools`)."""
OFFERS_OF_EVERYTHING: Final = (
    ToolOffer(
        PEEK.name,
        "Show text taken out of your context, exactly as it was, by the id of its stub; with around, the lines around a text to "
        "edit; or turns (3, or 3-5) of an earlier chat, by id@version.",
        schema(("id",), **_PEEK, turns=_TEXT),
    ),
    ToolOffer(
        SEARCH.name,
        "Find a text or /regex/ in what was taken out of your context. Gives ids and offsets for peek. With everything: in all "
        "that earlier sessions said, did, read and wrote, by session (its name), since and until (2026-11-21, or 3d ago).",
        schema(
            ("pattern",), **_SEARCH, everything={"type": "boolean"}, session=_TEXT, since=_TEXT, until=_TEXT, type=_TEXT
        ),
    ),
)
"""The tools of a gateway whose user lets its sessions read each other."""
_OF_MACHINE: Final = frozenset({"search_type"})
"""Arguments that reach the files of the gateway's own machine, which a client of it may not have."""
_OF_SESSION: Final = {PEEK.name: {*_PEEK, "length"}, SEARCH.name: {*_SEARCH}}
"""The arguments that reach nothing but the session's own content."""


def offers(*, everything: bool, notes: bool = False) -> tuple[ToolOffer, ...]:
    """Return the tools to offer.

    everything: whether the model may recall what other sessions stored
    notes: whether the search also tells the model to write notes
    """
    chosen = OFFERS_OF_EVERYTHING if everything else OFFERS
    if not notes:
        return chosen
    return tuple(
        replace(one, description=f"{one.description} {NOTES}") if one.name == SEARCH.name else one for one in chosen
    )


def definitions(api: Api, *, everything: bool = False) -> list[dict[str, Any]]:
    """Return the recall tools' definitions for the tool list of a request.

    For callers who offer the tools themselves. everything: as in `answer_call`
    """
    # copies, so that a caller's change affects no other caller
    return [deepcopy(definition(one, api)) for one in offers(everything=everything)]


def answer_call(
    session: Session, name: str, arguments: Mapping[str, object], call_id: str, *, everything: bool = False
) -> ReadResult:
    """Answer a call of a recall tool, with content that this session evicted or ingested on its branch.

    everything: whether other sessions' content is accessible too, which is for their owner to say. Otherwise an object of
    another session is answered as unknown, because a party able to make a model call may not own the stored sessions.

    Raises no exception for any input of a model.
    """
    tool = next((one for one in (PEEK, SEARCH) if one.name == name), None)
    if tool is None:
        return refusal_result(f"There is no tool {name!r} here; there are {PEEK.name} and {SEARCH.name}.")
    if everything:
        stored = {name: value for name, value in arguments.items() if name not in _OF_MACHINE}
        return tool.answer(session, Call(stored, id=call_id))
    own = {name: value for name, value in arguments.items() if name in _OF_SESSION[tool.name]}
    held = session.recalls.holdings
    for told in _names(own.get("id") if tool is PEEK else own.get("scope")):
        if not told:
            continue  # the tool gives a better message
        if not _is_stub(told):
            return refusal_result(
                f"{told!r} is no id of what was taken out of your context: those look like pg-01234567-89abcdef."
            )
        if told not in held:
            return refusal_result(f"Object {told} not found: nothing that was taken out of your context has this id.")
    return tool.answer(session, Call(own, id=call_id))


def _names(told: object) -> list[str]:
    """Return the names in an argument, without quoting by the model; empty for arguments other than texts."""
    every = told if isinstance(told, list | tuple) else [told]
    return [one.strip(" \t\r\n\"'`") for one in every if isinstance(one, str)]


def _is_stub(name: str) -> bool:
    try:
        ObjectId.parse(name)
    except BadName:
        return False
    return True

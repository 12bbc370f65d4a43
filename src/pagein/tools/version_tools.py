"""The tools `history` and `select`: the versions of an object, and the references in a version, without their targets."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.recall.reference_graph import Selection
from pagein.engine.recall.stored_chats import TurnPlace
from pagein.engine.session import Session
from pagein.errors import CallerError, HostError, StoreError
from pagein.memory.object_orders import is_order
from pagein.model.links import Link
from pagein.model.versions import Version
from pagein.policy.stubs.object_lines import object_line
from pagein.tools.calls import ArgumentReader, Call, Offer, refusal_result, schema

_VERSIONS: Final = 30
_REFERENCES: Final = 100
_ID: Final = {
    "type": "string",
    "description": "The object's id, nickname or path, or the name of a session; with @3 its version 3.",
}
_SKIP: Final = {"type": "number", "description": "How many to pass over, to go on with an earlier call."}


def _history(session: Session, call: Call) -> ReadResult:
    given = ArgumentReader("history", call.arguments)
    name, skip = _name(given), max(given.whole("skip", 0), 0)
    problem = given.problem()
    if problem is not None:
        return problem
    try:
        objects = session.objects
        meant = objects.named(name, _paths(session, name))
        versions = [*reversed(objects.history(meant.id))]
        shown = versions[skip : skip + _VERSIONS]
        lines = [*map(_version_line, shown, objects.places().of_each(shown))]
    except (CallerError, HostError, StoreError) as why:
        return refusal_result(str(why))
    more = skip + _VERSIONS if len(versions) > skip + _VERSIONS else None
    return _page([object_line(meant), *lines], meant, more)


def _select(session: Session, call: Call) -> ReadResult:
    given = ArgumentReader("select", call.arguments)
    name, skip = _name(given), max(given.whole("skip", 0), 0)
    under, relation, type_ = (given.text(one) if given.has(one) else "" for one in ("under", "relation", "type"))
    static = given.yes("pinned") if given.has("pinned") else None
    problem = given.problem()
    if problem is not None:
        return problem
    wanted = Selection(under=under, relations=_one(relation), static=static, types=_one(type_))
    try:
        objects = session.objects
        meant = objects.named(name, _paths(session, name))
        links = objects.select(meant, wanted)
    except (CallerError, HostError, StoreError) as why:
        return refusal_result(str(why))
    lines = [_link_line(one) for one in links[skip : skip + _REFERENCES]]
    more = skip + _REFERENCES if len(links) > skip + _REFERENCES else None
    return _page([object_line(meant), *(lines or ["No references."])], meant, more)


def _page(lines: Sequence[str], meant: Version, more: int | None) -> ReadResult:
    told = [*lines, *([] if more is None else [f"[Use skip={more} to continue.]"])]
    return ReadResult("\n".join(told), {"id": meant.id, "version": meant.number, "next": more})


def _name(given: ArgumentReader) -> str:
    return given.text("id").strip(" \t\r\n\"'`")  # models may add quotes


def _paths(session: Session, name: str) -> Sequence[str]:
    """Return the paths that a name may mean, the most likely first."""
    there = os.path.normpath(Path(session.folder or "") / name)
    return tuple(dict.fromkeys((there, os.path.realpath(there), name))) if Path(there).is_absolute() else (name,)


def _one(name: str) -> frozenset[str]:
    return frozenset([name] if name else [])


def _version_line(version: Version, place: TurnPlace | None) -> str:
    """Return the origin of a version as a line: cause, time, session and turn."""
    known = version.metadata
    parts = [_time(version.at), "deleted" if version.deleted else f"{version.chars:,} characters"]
    if is_order(version):  # a copy by a person's order, which keeps the metadata of the version before
        return f"{version.id}@{version.number}  {', '.join([*parts, str(version.writer.reason)])}"
    parts += [str(known[one]) for one in ("op", "known") if isinstance(known.get(one), str)]
    if place is not None and place.session:
        turn = "" if place.turn is None else f", turn {place.turn}"
        said = f', the user said "{place.said}"' if place.said else ""
        parts.append(f"{place.agent} {place.session}{turn}{said}".strip())
    return f"{version.id}@{version.number}  {', '.join(parts)}"


def _link_line(link: Link) -> str:
    meant = link.reference
    how = "newest" if meant.pin is None else "pinned"
    part = "" if meant.field is None else f" {meant.field}"
    return f"{link.path} -> {meant.target}{part} ({meant.relation}, {how}{'' if link.resolved else ', not found'})"


def _time(at: float) -> str:
    try:
        known = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""
    except (OverflowError, OSError, ValueError):  # the clock of a writer may give any number
        known = ""
    return known or "at an unknown time"


HISTORY: Final = Offer(
    "history",
    "List the versions of a stored object, the latest first: when, by which session and turn, after which words of the user. Not for "
    "the text of one: peek shows ID@3. Not for the history of the repository: ask git.",
    schema(("id",), id=_ID, skip=_SKIP),
    _history,
)
SELECT: Final = Offer(
    "select",
    "List the references in a stored object by place, relation or kind, without loading what they lead to. Not for their content: "
    "expand shows it.",
    schema(
        ("id",),
        id=_ID,
        under={
            "type": "string",
            "description": "Only at this place, such as /additional/turns.3.1 or /metadata/links.",
        },
        relation={"type": "string", "description": "Only this relation: link, read, write, edit, delete."},
        type={"type": "string", "description": "Only to objects of this kind: toolcall, file, note, chat."},
        pinned={"type": "boolean", "description": "Only those to one version, or only those to the newest."},
        skip=_SKIP,
    ),
    _select,
)

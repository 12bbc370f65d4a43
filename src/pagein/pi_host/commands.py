"""The read cache's commands in pi, and pagein's tools that a model calls there."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pagein.engine.session import Session
from pagein.errors import BadInput, CallerError
from pagein.model import read_records
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import OtherNote
from pagein.model.json_text import decode_json
from pagein.pi_host.branch import READ_CACHE
from pagein.pi_host.bridge import ExtensionLink
from pagein.pi_host.protocol import Answer, ModelCall, NewEntry, PiTool
from pagein.pi_host.read_cache import SHADOW
from pagein.tools import catalogue, read, read_commands
from pagein.tools.calls import Call, Offer
from pagein.tools.reading.unified_read import answer_unified_read

_MILLISECONDS: Final = 1000
_RANGE: Final = re.compile(r"[0-9]+(-[0-9]+)?")
_SNIPPETS: Final = {
    "readcache_refresh": "Have the next read of a file show its full text again",
    "rlm_peek": "Show a part of a text that was taken out of the context, by its id",
    "rlm_search": "Search everything that was taken out of the context",
    "rlm_query": "Ask a child model about texts that were taken out of the context",
    "rlm_batch": "Ask a child model about each of many texts",
}
_OWN: Final = frozenset({"path", "offset", "limit"})
"""Arguments of pi's own `read`."""
_MODES: Final = (
    " With mode symbol, snippet or diff_preview it reads a definition, some lines, or how the file differs from another "
    "state of it; path is then the file, or . for any."
)
RECALLED: Final = ("rlm_peek", "rlm_search", "rlm_ingest", "rlm_stats")
"""Pi-RLM's tools, which are active while paging is on."""
DELEGATED: Final = ("rlm_query", "rlm_batch", "rlm_extract")
"""Those of them that ask child models; they need such a model as well."""


def offered_tools(*, reads: bool, pages: bool) -> tuple[PiTool, ...]:
    """Return the tools for the model.

    reads: whether reads are answered anew. pages: whether paging is on.
    """
    offers, paging = _offers(), (*RECALLED, *DELEGATED)
    names = [*(["readcache_refresh"] if reads else []), *paging]
    return tuple(
        _offered(offers[name], active=(pages and name not in DELEGATED) or name not in paging) for name in names
    )


def active_tools(*, reads: bool, pages: bool, children: bool) -> tuple[str, ...]:
    """Return the names of the tools that are active. children: whether there is a model for children."""
    refresh, asking = (("readcache_refresh",) if reads else ()), DELEGATED if children else ()
    return (*refresh, *RECALLED, *asking) if pages else refresh


def root_words(own: str | None, *, children: bool) -> str:
    """Return what the system prompt says of paging. own: a person's words for it, in which `{{default}}` stands for the usual."""
    active = active_tools(reads=False, pages=True, children=children)
    usual = catalogue.guidance([offer for name, offer in _offers().items() if name in active])
    return usual if own is None else own.replace("{{default}}", usual)


def _offered(one: Offer, *, active: bool) -> PiTool:
    return PiTool(one.name, one.name, one.description, one.schema, _SNIPPETS.get(one.name, ""), active)


def _offers() -> dict[str, Offer]:
    return {one.name: one for one in catalogue.offer_tools("pi-rlm", delegation=True)}


def read_with_modes() -> PiTool:
    """Return the arguments of the unified read that pi's own `read` does not have."""
    properties = {name: one for name, one in read.READ_BY_MODE.schema["properties"].items() if name not in _OWN}
    return PiTool("read", "read", _MODES, {"type": "object", "properties": properties})


def _answer_read(session: Session, call: ModelCall, link: ExtensionLink) -> Answer:
    """Answer a read that pi's own tool cannot answer."""
    given = {name: value for name, value in call.input.items() if value is not None}
    path = given.pop("path", None)
    if given.setdefault("mode", "file") != "symbol":
        given.setdefault("target", path)
    elif path not in (None, "", "."):
        given["path"] = path
    result = answer_unified_read(session, given, link.signal)
    return Answer(result.text, "error" if result.is_error else "info", _plain(result.details))


def answer_tool(session: Session, call: ModelCall, link: ExtensionLink, at: float, *, pages: bool) -> Answer:
    """Answer a call of one of pagein's tools. at: seconds since 1970."""
    if call.name == read.REFRESH.name:
        return _refresh(
            session, str(call.input.get("path", "")), (call.input.get("offset"), call.input.get("limit")), at
        )
    if call.name == read.READ.name:
        return _answer_read(session, call, link)
    asked = Call(
        call.input,
        id=call.id,
        signal=link.signal,
        confirm=lambda asked: link.confirm("pagein", asked.question),
    )
    result = catalogue.answer(session, call.name, asked, enabled=pages)
    return Answer(result.text, "error" if result.is_error else "info", _plain(result.details))


def refresh(session: Session, args: str, at: float) -> Answer:
    """Return the answer to `/readcache-refresh PATH [FIRST-LAST]`, with the entry that carries the refresh.

    A file with the whole name wins over lines behind its name, as in a read.
    """
    path, _, lines = args.strip().rpartition(" ")
    path = path.strip()
    if not path or _is_file(session, args) or not (_RANGE.fullmatch(lines) or _is_file(session, path)):
        path, lines = args, ""
    if not _bare(path):
        return Answer("Give a path: /readcache-refresh PATH [FIRST-LAST]", "error")
    try:
        return _refresh(session, _bare(path), read_commands.offset_and_limit(lines) if lines else (None, None), at)
    except BadInput as problem:
        return Answer(str(problem), "error")


def _is_file(session: Session, path: str) -> bool:
    return Path(session.reads.files.locate(_bare(path), offset=1).absolute).is_file()


def _bare(path: str) -> str:
    return path.strip().strip("\"'")


def _refresh(session: Session, path: str, lines: tuple[object, object], at: float) -> Answer:
    try:
        offset, limit = map(_number, lines)
        event, told = session.reads.planned_refresh(path, offset=offset, limit=limit)
    except CallerError as problem:
        return Answer(str(problem), "error")
    record = read_records.encode_invalidation(event, max(1, round(at * _MILLISECONDS)))
    return Answer(told, entries=(NewEntry(READ_CACHE, record),))


def status(session: Session, gateway: str = "") -> Answer:
    """Return the answer to `/readcache-status`. gateway: the address of a gateway that answers reads instead; "" for none."""
    lines = [session.status().text]
    if gateway:
        lines.append(f"reads are left to the gateway at {gateway}: its page has their figures")
    rehearsed = [
        decode_json(entry.body.note.data.encode())
        for entry in session.journal.branch(session.leaf)
        if isinstance(entry.body, NoteEntry) and isinstance(entry.body.note, OtherNote) and entry.body.kind == SHADOW
    ]
    told = [one for one in rehearsed if isinstance(one, dict)]
    if told:
        own, would = (sum(int(one.get(name, 0)) for one in told) for name in ("own", "would"))
        objections = [one for one in told if one.get("objection")]
        lines.append(f"shadow: {len(told)} reads decided, {own} bytes as they were, {would} as pagein would answer")
        lines.append(f"shadow: {len(objections)} answers that the window would not have proven")
        lines += [f"  call {one.get('call')}: {one.get('mode')}: {one.get('objection')}" for one in objections]
    return Answer("\n".join(lines))


def _number(value: object) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise BadInput(f"offset and limit are numbers, not {value!r}")


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    return dict(details)

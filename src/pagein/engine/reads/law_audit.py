"""Audit stored sessions for law 2 and for pins: every branch of a journal by the audit, then by the witness."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pagein.engine.log.read_notes import event_of
from pagein.engine.reads.pin_audit import pin_objections
from pagein.engine.reads.testimony import witness_objections
from pagein.model.entries import Entry, EntryId, EpochEntry, PreviewEntry, RequestSent
from pagein.model.names import ContentHash
from pagein.model.objects import object_ids_in
from pagein.model.read_events import FileRead, FileWrite, MalformedRecord
from pagein.policy.audit.session_audit import Audit
from pagein.policy.audit.witness import Objection
from pagein.policy.stubs.result_stubs import MARKER

# at the start of a line, or after the tag that a client puts around a file's text
_MARKED: Final = re.compile(rf"^(?:<[a-z]+>)?{re.escape(MARKER)}", re.MULTILINE)


def objections(entries: Iterable[Entry], stored: Callable[[ContentHash], bytes | None]) -> list[str]:
    """Return the errors in a stored session's answers to its model, in words. Entries come parents first, with whole
    branches.

    stored: returns the bytes of a version; None if lost. Each entry is judged once, however many branches contain it.
    """
    everything = tuple(entries)
    children: dict[EntryId | None, list[Entry]] = {}
    for entry in everything:
        children.setdefault(entry.parent, []).append(entry)
    found: list[str] = []
    waiting: list[tuple[Entry, Audit | None]] = [(one, Audit(stored)) for one in reversed(children.get(None, []))]
    while waiting:
        here, audit = waiting.pop()
        found += _heard(here, audit, stored)
        if isinstance(here.body, RequestSent):
            audit = None  # from here on the model saw only requests, which the witness reads
        behind = children.get(here.id, [])
        waiting += [(one, audit and audit.copy()) for one in reversed(behind[1:])]
        waiting += [(one, audit) for one in behind[:1]]
    # the audit trusts the journal's records; the witness reads the texts
    found = found or [_objection_words(place, objection) for place, objection in witness_objections(everything, stored)]
    return [*found, *_strange(everything, stored), *pin_objections(everything, stored)]


def _strange(entries: Iterable[Entry], stored: Callable[[ContentHash], bytes | None]) -> Iterator[str]:
    """Yield texts in place of repeated reads that pagein cannot have made: neither a marker, a diff nor the earlier
    text.
    """
    away: dict[str, ContentHash] = {}
    for entry in entries:
        for one in entry.body.paged if isinstance(entry.body, EpochEntry | PreviewEntry) else ():
            is_answer = isinstance(entry.body, PreviewEntry) and one.object_id not in one.stub
            if is_answer and not _MARKED.search(one.stub):
                bases = (stored(away[name]) for name in object_ids_in(one.short) if name in away)
                if one.stub.encode("utf-8", "surrogatepass") not in bases:
                    yield f"entry {entry.id}: call {one.call_id}: what stands for its result is no answer of ours"
            away[one.object_id] = one.content


def _objection_words(place: EntryId, objection: Objection) -> str:
    line = "" if objection.line is None else f", line {objection.line}"
    return f"request at entry {place}: call {objection.call_id.removeprefix(chr(0))}{line}: {objection.why}"


def _heard(entry: Entry, audit: Audit | None, stored: Callable[[ContentHash], bytes | None]) -> Iterator[str]:
    event = event_of(entry.body)
    if event is None:
        return
    if isinstance(event, MalformedRecord):
        yield f"entry {entry.id}: a record of reading that cannot be understood: {event.why}"
    if audit is None:
        if isinstance(event, FileRead | FileWrite) and stored(event.version) is None:
            yield f"entry {entry.id}: {event.path}: the bytes of the version are not in the store"
        return
    objection = audit.add_event(event)
    if objection is not None:
        line = "" if objection.line is None else f", line {objection.line}"
        yield f"entry {entry.id}: {objection.path}{line}: {objection.why}"

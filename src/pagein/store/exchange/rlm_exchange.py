"""Exchange data with Pi-RLM: import its objects as objects with versions, export evicted results as its records.

An imported object keeps its old id as its nickname, so that a model that has read the id can still ask for the object. Session and old
id identify the object, so importing again changes nothing, and a changed record becomes a new version.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pagein.errors import BadInput
from pagein.model.entries import Entry, EpochEntry, PreviewEntry
from pagein.model.identifiers import RANDOM_BYTES, uuid7
from pagein.model.objects import EXPIRED
from pagein.model.version_hash import decode_content
from pagein.model.versions import Draft, Provenance, Writer
from pagein.model.writes import Outcome, Query, Write, WriteRefusal
from pagein.policy.privacy.exclusions import EXCLUDED, is_excluded
from pagein.ports import WholeStore
from pagein.store.exchange.import_state import ImportReport
from pagein.store.exchange.private_evictions import private_evictions
from pagein.store.exchange.rlm_format import ContentType, RlmRecord, RlmSource, RlmStore

_TYPES: Final[Mapping[ContentType, str]] = {
    "conversation": "artifact",
    "tool_output": "toolcall",
    "file": "file",
    "artifact": "artifact",
}
_WRITER: Final = Writer("import", "pi-rlm")
_MOST_MS: Final = (1 << 48) - 1


def import_rlm(store: WholeStore, found: RlmStore, patterns: tuple[str, ...] = EXCLUDED) -> ImportReport:
    """Import a session's folder in a single transaction.

    Files that must not be stored are left out (law 9). Raises StoreError.
    """
    done = ImportReport()
    with store.exclusive():
        for record in found.records:
            done.counts["record"] = done.counts.get("record", 0) + 1
            if is_excluded(record.source.of, patterns) and record.source.kind == "ingested":
                done.counts["withheld"] = done.counts.get("withheld", 0) + 1
                continue
            outcome = _write_record(store, found.session, record)
            if isinstance(outcome, WriteRefusal):
                raise BadInput(
                    f"object {record.id} cannot be had beside what is here: {outcome.why}; nothing was imported"
                )
            if outcome.change != "unchanged" and not outcome.repeated:
                done.added["version"] = done.added.get("version", 0) + 1
    if found.skipped:
        done.counts["unreadable line"] = len(found.skipped)
    return done


def _write_record(store: WholeStore, session: str, record: RlmRecord) -> Outcome:
    at = max(record.created, 0) / 1000
    digest = hashlib.sha256(record.content.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    request = f"pi-rlm {session} {record.id} {digest}"
    draft = _draft(session, record)
    known = store.objects(Query(deleted=None, where={"rlm_id": record.id, "rlm_session": session}, limit=1))
    if known:
        draft = replace(draft, id=known[0].id, nickname=known[0].nickname)
    outcome = store.write(Write(request, draft, at, writer=_WRITER))
    if isinstance(outcome, WriteRefusal) and outcome.why == "nickname_taken":
        return store.write(Write(request, replace(draft, nickname=None), at, writer=_WRITER))
    return outcome


def _draft(session: str, record: RlmRecord) -> Draft:
    name = hashlib.sha256(f"{session}\n{record.id}".encode("utf-8", "surrogatepass")).digest()
    metadata: dict[str, object] = {
        "description": record.description,
        "tokens": record.tokens,
        "rlm_id": record.id,
        "rlm_type": record.type,
        "rlm_session": session,
    }
    if record.source.kind == "ingested":
        metadata["path"] = record.source.of
    return Draft(
        id=uuid7(min(max(record.created, 0), _MOST_MS), name[:RANDOM_BYTES]),
        type=_TYPES[record.type],
        content=record.content,
        provenance=Provenance(f"pi-rlm {record.source.kind} {record.source.of}", "tool"),
        metadata=metadata,
        nickname=record.id if record.id.strip() == record.id else None,
    )


def records_of(store: WholeStore, session: str, patterns: tuple[str, ...] = EXCLUDED) -> Iterator[RlmRecord]:
    """Yield a session's evicted results as records of Pi-RLM, without expired results and without results that may show an excluded file.

    Raises StoreError.
    """
    private = private_evictions(store.journal_lines(), patterns).objects
    opened: dict[str, float] = {}
    for entry in store.entries(session):
        if isinstance(entry, Entry) and isinstance(entry.body, EpochEntry | PreviewEntry):
            opened |= {one.object_id: entry.at or 0.0 for one in entry.body.paged}
        if isinstance(entry, Entry) and isinstance(entry.body, EpochEntry):
            opened |= {one.object_id: entry.at or 0.0 for one in entry.body.turns}
    for stored in store.paged_objects():
        is_of_session = stored.origin.session == session or str(stored.id) in opened
        if is_of_session and stored.kind != EXPIRED and str(stored.id) not in private:
            yield RlmRecord(
                id=str(stored.id),
                type="conversation" if stored.kind == "chat" else "tool_output",
                description=stored.description[:100],
                created=round(opened.get(str(stored.id), 0.0) * 1000),
                tokens=stored.tokens,
                source=RlmSource("externalized", f"toolResult:{stored.origin.call_id}"),
                content=decode_content(store.get(stored.content)),
            )

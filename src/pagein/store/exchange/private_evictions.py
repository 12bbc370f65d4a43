"""Evicted texts that may show an excluded file (law 9), because the file was excluded later: found, and replaced by a notice.

An object keeps its id, so that stubs and turns stay valid; its text and all that was said about it is left out.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.codec import decode_entry
from pagein.model.entries import (
    Body,
    Entry,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    Restoration,
    TurnsLeft,
)
from pagein.model.journal_notes import IngestNote
from pagein.model.messages import ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import StoredObject, object_ids_in
from pagein.model.store_inventory import JournalLine
from pagein.policy.privacy.exclusions import EXCLUDED, WITHHELD, is_excluded, may_show_excluded

NOTICE: Final = WITHHELD.encode()
NOTICE_NAME: Final = ContentHash.of(NOTICE)
_WHY: Final = "not kept, as it may show a file that must not be stored"


@dataclass(slots=True)
class PrivateEvictions:
    """What a session tells, entry by entry.

    objects: ids of evicted objects that may show an excluded file, of all sessions
    calls: calls of this session with such results
    patterns: names of excluded files
    """

    objects: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    patterns: tuple[str, ...] = EXCLUDED

    def in_session(self) -> "PrivateEvictions":
        """Return what another session tells, with the same objects and patterns."""
        return PrivateEvictions(self.objects, patterns=self.patterns)

    def add(self, body: Body) -> None:
        """Learn from an entry: calls about excluded files, evictions of their results, and recalls of these."""
        match body:
            case MessageEntry(message=message):
                for block in message.blocks:
                    if isinstance(block, ToolResult) and self._names_one(block.text):
                        self.calls.add(block.call_id)
                    elif isinstance(block, ToolCall):
                        is_private = may_show_excluded(block, self.patterns) or self._names_one(block.arguments)
                        (self.calls.add if is_private else self.calls.discard)(block.id)
            case PreviewEntry(paged=paged) | EpochEntry(paged=paged):
                self.objects.update(one.object_id for one in paged if one.call_id in self.calls)
                turns = body.turns if isinstance(body, EpochEntry) else ()
                self.objects.update(one.object_id for one in turns if not self.calls.isdisjoint(one.calls))
            case NoteEntry(note=IngestNote(object_id=name, path=path)) if is_excluded(path, self.patterns):
                self.objects.add(name)

    def redact(self, body: Body) -> Body:
        """Return the body without such texts; the same object if there are none."""
        match body:
            case PreviewEntry(paged=paged):
                made: Body = PreviewEntry(tuple(map(self._paged, paged)))
            case EpochEntry(paged=paged, restored=restored, turns=turns):
                made = replace(
                    body,
                    paged=tuple(map(self._paged, paged)),
                    restored=tuple(map(self._restored, restored)),
                    turns=tuple(map(self._turns, turns)),
                )
            case InsertEntry(text=text) if self._names_one(text):
                lines = text.splitlines(keepends=True)
                made = replace(body, text="".join(one for one in lines if not self._names_one(one)))
            case _:
                return body
        return body if made == body else made

    def record(self, stored: StoredObject) -> StoredObject:
        """Return the record of an object: with the notice as its content if the object is one of these."""
        if str(stored.id) not in self.objects or stored.content == NOTICE_NAME:
            return stored
        return replace(stored, content=NOTICE_NAME, description="", chars=len(WITHHELD))

    def _names_one(self, text: str) -> bool:
        return bool(self.objects) and not self.objects.isdisjoint(object_ids_in(text))

    def _paged(self, paged: PagedOut) -> PagedOut:
        if paged.object_id not in self.objects or paged.content == NOTICE_NAME:
            return paged
        said = _stub(paged)
        if paged.part == "arguments":
            said = json.dumps({"withheld": said})
        return replace(paged, content=NOTICE_NAME, stub=said, short=said if paged.short else "", why="")

    def _turns(self, left: TurnsLeft) -> TurnsLeft:
        if left.object_id not in self.objects or left.content == NOTICE_NAME:
            return left
        return replace(left, content=NOTICE_NAME, text=_stub(left))

    def _restored(self, one: Restoration) -> Restoration:
        is_private = one.object_id in self.objects or one.call_id in self.calls
        return replace(one, text=WITHHELD) if is_private else one


def private_evictions(lines: Iterable[JournalLine], patterns: tuple[str, ...] = EXCLUDED) -> PrivateEvictions:
    """Find the evicted objects that may show an excluded file, in the journals of all sessions, oldest line first."""
    found = PrivateEvictions(patterns=patterns)
    sessions: defaultdict[str, PrivateEvictions] = defaultdict(found.in_session)
    for line in lines:
        entry = None if line.damaged else decode_entry(line.line)
        if isinstance(entry, Entry):
            sessions[line.session].add(entry.body)
    return found


def _stub(evicted: PagedOut | TurnsLeft) -> str:
    return f"[pagein: {evicted.object_id} | {evicted.tokens:,} tokens | {_WHY}]"

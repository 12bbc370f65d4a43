"""A scripted conversation for tests of reading: files change, the model reads, writes and edits, the host compacts and
forks.

No disk and no host: the fold, the policy and the witness alone. The witness checks every answer at once, so a script
that reaches its end has proven each of its markers and diffs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from pagein.model import read_records
from pagein.model.documents import Document
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import CompactionEvent, FileRefresh, FileWrite, ReadClaim, ReadEvent, claim_of
from pagein.policy.audit.witness import Objection, witness
from pagein.policy.reads import own_writes
from pagein.policy.reads.baseline import Baseline, baseline
from pagein.policy.reads.knowledge import Knowledge, fold, step
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import DEFAULTS, ReadDecision, ReadingSettings, ReadRequest
from pagein.policy.reads.text_edit import TextEdit


@dataclass
class ReadScript:
    """One session. lost: versions no longer available to the policy."""

    settings: ReadingSettings = DEFAULTS
    files: dict[str, str] = field(default_factory=dict)
    events: list[ReadEvent] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    claims: dict[str, ReadClaim] = field(default_factory=dict)
    versions: dict[ContentHash, bytes] = field(default_factory=dict)
    lost: set[ContentHash] = field(default_factory=set)
    answers: list[ReadDecision] = field(default_factory=list)
    baselines: list[Baseline] = field(default_factory=list)
    _state: Knowledge = field(default_factory=lambda: fold([]))

    @property
    def state(self) -> Knowledge:
        """The fold of the branch."""
        return self._state

    @property
    def last(self) -> ReadDecision:
        """The latest answer."""
        return self.answers[-1]

    def changes(self, path: str, text: str) -> Self:
        """Change a file from outside the session."""
        self.files[path] = text
        self.versions[ContentHash.of(text.encode())] = text.encode()
        return self

    def request(
        self, path: str, offset: int | None = None, limit: int | None = None, *, bypass: bool = False
    ) -> ReadRequest:
        """Return the read request for these lines."""
        document = Document.of(self.files[path].encode(), path=path, key=path)
        shown = baseline(document.text, path, offset=offset, limit=limit)
        first = offset or 1
        last = shown.total if limit is None else min(first + limit - 1, shown.total)
        return ReadRequest(document, path, first, last, shown, bypass)

    def reads(
        self, path: str, offset: int | None = None, limit: int | None = None, *, bypass: bool = False
    ) -> ReadDecision:
        """Read as the model."""
        request = self.request(path, offset, limit, bypass=bypass)
        decision = decide(request, self._state.of(path), self._fetch, self.settings)
        self._happens(decision.event)
        self.answers.append(decision)
        self.baselines.append(request.baseline)
        self._add_call(claim_of(decision.event), {"path": path, "offset": offset, "limit": limit}, decision.text)
        return decision

    def writes(self, path: str, text: str) -> Self:
        """Write a whole file as the model."""
        self.changes(path, text)
        return self._note_write(own_writes.write_event(path, text), {"path": path, "content": text})

    def edits(self, path: str, old: str, new: str, *, everywhere: bool = False, seen_before: bool = True) -> Self:
        """Replace text as the model. seen_before: whether the host had the file before this edit."""
        before = self.files[path]
        self.changes(path, before.replace(old, new, -1 if everywhere else 1))
        edit = TextEdit(old, new, everywhere)
        known = self._state.of(path)
        event = own_writes.edit_event(path, self.files[path], edit, known, before=before if seen_before else None)
        arguments: dict[str, object] = {"path": path, "oldText": old, "newText": new}
        if event is None:
            event = own_writes.unplaced_edit_event(path, self.files[path])
        return self._note_write(own_writes.follow_edit(event, before, known, self._fetch), arguments)

    def refreshes(self, path: str, first: int | None = None, last: int | None = None) -> Self:
        """Request a fresh read."""
        lines = None if first is None else (first, first if last is None else last)
        return self._happens(FileRefresh(path, lines))

    def compacts(self) -> Self:
        """Replace the conversation so far by a summary, as the host."""
        self.messages = [Message("user", (Text("summary", "compact_summary"),))]
        self.claims = {}
        return self._happens(CompactionEvent())

    def forks(self) -> "ReadScript":
        """Return an independent copy of the branch so far."""
        return ReadScript(
            self.settings,
            dict(self.files),
            list(self.events),
            list(self.messages),
            dict(self.claims),
            dict(self.versions),
            set(self.lost),
            list(self.answers),
            list(self.baselines),
            self._state,
        )

    def loses(self, path: str) -> Self:
        """Remove the current content of the file from the store."""
        self.lost.add(ContentHash.of(self.files[path].encode()))
        return self

    def objections(self, messages: Sequence[Message] | None = None) -> tuple[Objection, ...]:
        """Return the objections of the witness to the current request."""
        return witness(self.messages if messages is None else messages, self.claims, self.versions.get)

    def _fetch(self, version: ContentHash) -> bytes | None:
        return None if version in self.lost else self.versions.get(version)

    def _note_write(self, event: FileWrite, arguments: dict[str, object]) -> Self:
        self._happens(event)
        self._add_call(claim_of(event), arguments, "ok")
        return self

    def _happens(self, event: ReadEvent) -> Self:
        self.events.append(event)
        self._state = step(self._state, event)
        return self

    def _add_call(self, claim: ReadClaim, arguments: dict[str, object], text: str) -> None:

        name = f"call-{len(self.events)}"
        self.claims[name] = claim
        self.messages.append(Message("assistant", (ToolCall(name, "tool", json.dumps(arguments)),)))
        self.messages.append(Message("tool", (ToolResult(name, text, "tool"),)))

    def journal(self) -> list[dict[str, object]]:
        """Return the records kept by a host, as stored."""
        out: list[dict[str, object]] = []
        for event in self.events:
            match event:
                case FileRefresh():
                    out.append(read_records.encode_invalidation(event, 1))
                case FileWrite():
                    out.append(read_records.encode_authored(event))
                case CompactionEvent():
                    out.append({"type": "compaction"})
                case _:
                    out.append({"readcache": read_records.encode(event)} if not hasattr(event, "why") else {})
        return out

"""Windows sent by a gateway on the same store: the receipts visible to the model that called a tool.

The gateway journals each message of a request before it sends the request, and the answer when it has come. A tool call
in an answer therefore names a branch: the model saw what stands above that answer, and nothing else.

Rules of this file
------------------
1. What stands before a compaction, or before anything that was lost, erased or is unreadable, does not count; nor does
   anything in a request whose provider may take results out.
2. Results that the gateway evicted or shortened do not count, even if they were restored later; nor do objects of a pooled
   window, because they may leave.
3. A call in an answer is found once, and not at all when a request has its result: a second one is somebody else's.
4. A call without an id is found by its tool and its arguments, in an answer that is at most some seconds old. Where
   several answers hold such a call, only what stands in all of their windows counts.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from pagein.engine.log.standing_receipts import StandingReceipt, standing_receipt
from pagein.model.codec import decode_message
from pagein.model.entries import (
    CompactionEntry,
    Entry,
    EntryId,
    EpochEntry,
    MessageEntry,
    NoteEntry,
    PreviewEntry,
    RequestSent,
)
from pagein.model.journal_notes import BrokenNote, ForgottenNote, RestoredMessagesNote
from pagein.model.layout_notes import PooledRequestNote
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.note_forms import kind_of
from pagein.ports import JournalStore

_SESSIONS: Final = 8
"""Sessions that are looked at, those that were written last: a gateway writes its session before each call of its model.
The first look reads them whole, 0.05 ms for an entry."""
_RECENT: Final = 10.0
"""Seconds after an answer in which a call without an id may belong to it."""
_LONGEST: Final = 600.0
"""Seconds that a provider may take to answer."""
_ANSWER: Final = kind_of(AnswerNote)
_BREAKS: Final = frozenset(map(kind_of, (BrokenNote, ForgottenNote, RestoredMessagesNote, PooledRequestNote)))


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool as the server of the tool got it.

    id: the model's own id of the call; "" if the client sends no id.
    name: of the tool, as the server calls it.
    at: time of the call, seconds since 1970.
    """

    id: str
    name: str
    arguments: Mapping[str, object]
    at: float


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """The changes to a window by an entry, linked to the entries above."""

    above: "_Link | None"
    receipts: tuple[tuple[str, StandingReceipt | None], ...] = ()
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _CallWithWindow:
    """A call in an answer, with the window that the model saw.

    at: time of the answer; 0.0 if unknown.
    """

    call: ToolCall
    window: _Link | None
    at: float


@dataclass(slots=True)
class _FollowedSession:
    """A session as far as its journal was read.

    open: the last request, with its time, while its answer is not journaled; None otherwise.
    """

    place: int = 0
    links: dict[EntryId, _Link | None] = field(default_factory=dict)
    asked: dict[str, _CallWithWindow] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    evicted: set[str] = field(default_factory=set)
    open: tuple[EntryId, float] | None = None

    def take(self, entry: Entry) -> None:
        """Take the next entry."""
        above = None if entry.parent is None else self.links.get(entry.parent)
        match entry.body:
            case MessageEntry(message=message):
                results = [one for one in message.blocks if isinstance(one, ToolResult)]
                self.over.update(one.call_id for one in results)
                found = tuple((one.call_id, standing_receipt(one.text)) for one in results)
                self.links[entry.id] = _Link(above, found) if any(one for _, one in found) else above
            case EpochEntry(calls=calls) | PreviewEntry(calls=calls):
                self.evicted.update(calls)
                self.links[entry.id] = _Link(above, gone=frozenset(calls))
            case CompactionEntry():
                self.links[entry.id] = None
            case NoteEntry(kind=kind) if kind in _BREAKS:
                self.links[entry.id] = None
            case RequestSent(clears=True, moment=moment):
                self.links[entry.id] = None
                self.open = entry.id, moment or 0.0
            case _:
                self.links[entry.id] = above
                if isinstance(entry.body, RequestSent):
                    self.open = entry.id, entry.body.moment or 0.0
                elif isinstance(entry.body, NoteEntry) and entry.body.kind == _ANSWER:
                    self._take_answer(entry.body.note, above)

    def _take_answer(self, note: object, above: _Link | None) -> None:
        self.open = None
        said = decode_message(note.message.encode("utf-8", "surrogatepass")) if isinstance(note, AnswerNote) else None
        if isinstance(said, Message):
            calls = (one for one in said.blocks if isinstance(one, ToolCall))
            self.asked.update({one.id: _CallWithWindow(one, above, said.at or 0.0) for one in calls})


class SentWindows:
    """The windows of the latest sessions of a store. Thread-safe.

    journals: None for a store without sessions.
    """

    def __init__(self, journals: JournalStore | None) -> None:
        self._journals = journals
        self._followed: dict[str, _FollowedSession] = {}
        self._found: set[str] = set()
        self._given_up: frozenset[EntryId] = frozenset()
        self._lock = Lock()

    def evicted_among(self, calls: Collection[str]) -> frozenset[str]:
        """Return those of the calls of which a gateway evicted or shortened a part, on any branch. Raises StoreError."""
        if not calls:
            return frozenset()
        with self._lock:
            self._look()
            return frozenset(calls) & frozenset().union(*(one.evicted for one in self._followed.values()))

    def standing(self, asked: ToolRequest) -> Mapping[str, StandingReceipt] | None:
        """Return the receipts in the window of a call, by the ids of the calls that they answered.

        None if no gateway on this store has seen the call. Raises StoreError.
        """
        with self._lock:
            self._look()
            answers = [one for _, one in self._answers(asked)]
            if not answers:
                return None
            self._found.update(one.call.id for one in answers)
            shown = [_standing(one.window) for one in answers]
            return {name: one for name, one in shown[0].items() if all(rest.get(name) == one for rest in shown)}

    def session_of(self, asked: ToolRequest) -> str | None:
        """Return the session whose model made a call; None if no gateway on this store has seen it. Raises StoreError."""
        with self._lock:
            self._look()
            answers = list(self._answers(asked))
            self._found.update(one.call.id for _, one in answers)
            names = {name for name, _ in answers}
            return names.pop() if len(names) == 1 else None

    def awaits_answers(self, at: float) -> bool:
        """Return whether a gateway may be about to journal an answer that holds a call of this time. Raises StoreError."""
        with self._lock:
            self._look()
            return any(at - _LONGEST < moment and name not in self._given_up for name, moment in self._open())

    def give_up(self) -> None:
        """Wait for no answer to a request that is open now: whoever called is no model behind it."""
        with self._lock:
            self._given_up = frozenset(name for name, _ in self._open())

    def _open(self) -> list[tuple[EntryId, float]]:
        return [one.open for one in self._followed.values() if one.open is not None]

    def _look(self) -> None:
        """Read what the journals got since the last look."""
        if self._journals is None:
            return
        latest = self._journals.latest(_SESSIONS)
        self._followed = {name: self._followed.get(name) or _FollowedSession() for name in latest}
        for name, followed in self._followed.items():
            for place, entry in self._journals.news(name, followed.place):
                followed.place = place
                if isinstance(entry, Entry):
                    followed.take(entry)

    def _answers(self, asked: ToolRequest) -> Iterator[tuple[str, _CallWithWindow]]:
        """Yield the open calls that may be the given call, with their sessions."""
        for session, followed in self._followed.items():
            for name, one in followed.asked.items():
                if name in followed.over or name in self._found or not _is_of(one.call, asked.name):
                    continue
                if asked.id == name or (not asked.id and _is_same(one, asked)):
                    yield session, one


def _is_of(call: ToolCall, tool: str) -> bool:
    """Return whether a model's call is one of this tool: clients put the server's name in front."""
    return call.name == tool or call.name.endswith(f"_{tool}")


def _is_same(one: _CallWithWindow, asked: ToolRequest) -> bool:
    if not -_RECENT <= asked.at - one.at <= _RECENT:
        return False
    try:
        told = json.loads(one.call.arguments or "{}")
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told == dict(asked.arguments)


def _standing(window: _Link | None) -> dict[str, StandingReceipt]:
    """Return the receipts in a window. Two different results of one call: neither counts."""
    gone: set[str] = set()
    found: dict[str, StandingReceipt | None] = {}
    while window is not None:
        gone |= window.gone
        for name, receipt in window.receipts:
            if name not in gone:
                found[name] = receipt if found.get(name, receipt) == receipt else None
        window = window.above
    return {name: receipt for name, receipt in found.items() if receipt is not None}

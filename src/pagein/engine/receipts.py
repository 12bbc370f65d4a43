"""Receipts: a model's proof that its window still shows a read, for windows that pagein cannot see.

A tool server sees neither the messages in its client's window, nor which of them a compaction removed. Each
read that shows text therefore ends with a receipt, a short tag. The model quotes the receipts that it still sees in its
next read, as a browser sends the ETag of its copy. Only the text shown by these answers counts as known.

Rules of this file
------------------
1. A receipt stands for one answer, and proves the lines that this answer emitted. An answer that rests on earlier ones,
   such as a diff, proves nothing unless the receipts of those are quoted, too.
2. Each read begins at the root of the journal, after the quoted answers alone. Nothing else that the session read,
   before or beside it, is known there.
3. A receipt is derived from the journaled answer, so that it outlives the process. One that no answer of the session
   has is ignored, and the result says so: the model gets the text.
4. After a refresh of a file, no answer about it proves anything until it was given again.
5. Receipts tell the order of their answers. An answer that is given once more, after another version of the file was
   shown, therefore gets a receipt of its own, although its text is the same.
6. A marker about another version than the last quoted answer, such as a marker for moved lines, has a receipt, too: later, its
   reader refers "unchanged" to that version. Without its receipt, earlier answers about the file prove nothing.
7. Where pagein can see the agent's window, the receipts in it count as quoted. A receipt stands there only
   if the text above it is, to the last character, the answer that it was made for.
8. The model may see answers that it does not quote. No marker says "shown earlier as lines 5-9" if one of them has other text under
   these numbers.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from pagein.engine.log.journal import entry_name
from pagein.engine.log.standing_receipts import StandingReceipt
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import StoreError
from pagein.model.entries import Entry, EntryId, NoteEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.note_forms import encode_note
from pagein.model.read_events import FileRead, FileRefresh
from pagein.policy.reads.receipt_lines import RECEIPT_DIGITS

_NAMED: Final = 8
"""Quoted receipts without an answer that are named."""
_LONGEST_TAG: Final = 40
_PLAIN: Final = ("full", "baseline_fallback")
"""Modes of answers that show nothing but text, and rest on no other answer."""


@dataclass(frozen=True, slots=True)
class ReceiptedRead:
    """The answer to a read, with the receipt for later proof.

    receipt: tag of the answer; "" if later answers cannot refer to it.
    unknown: quoted receipts that no answer of this session has.
    """

    result: ReadResult
    receipt: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer with its receipt, as the model's client gets both (see `standing_receipt`)."""
        named = [one if one.isalnum() and len(one) <= _LONGEST_TAG else "..." for one in self.unknown[:_NAMED]]
        more = ["..."] if len(self.unknown) > _NAMED else []
        unknown = [f"[not known: {', '.join((*named, *more))}]"] if self.unknown else []
        receipt = [f"[known={self.receipt}]"] if self.receipt else []
        return "\n".join((self.result.text, *unknown, *receipt))


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer that can be quoted.

    number: its place among the answers of the session, in the order in which they were first given.
    bases: the sets of receipts on which it rested, one for each time that it was given; any of them proves it.
    """

    tag: str
    number: int
    note: ReadNote
    event: FileRead
    bases: frozenset[frozenset[str]] = frozenset()


class ReceiptedReads:
    """Reads of a session with an unknown window. Thread-safe, as the session is."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answers: dict[str, _Answer] = {}
        self._given: dict[str, str] = {}  # by the tag of an answer when first given, the tag when last given
        self._in_order: dict[str, list[str]] = {}  # by path, the tags of its answers, the oldest first
        self._refreshed: set[str] = set()
        self._last: EntryId | None = None

    def is_of(self, session: Session) -> bool:
        """Return whether these are the reads of this very session."""
        return self._session is session

    def answer(
        self,
        work: Callable[[bool], ReadResult],
        *,
        about: str = "",
        known: Iterable[str] = (),
        bypass: bool = False,
        standing: Callable[[], Mapping[str, StandingReceipt]] | None = None,
    ) -> ReceiptedRead:
        """Answer a read for a model that still sees the answers with the receipts `known`.

        work: reads in the session; given whether to show the text, whatever is known. It raises nothing for an unreadable
            file or an unusable store.
        about: the path as the call tells it; "" if it names no file.
        bypass: show the text, whatever is known.
        standing: returns the receipts in the model's window, by the ids of the calls that they answered; asked only if
            an answer showed a file of this name.
        """
        session, quoted = self._session, tuple(dict.fromkeys(known))
        try:
            with session.turn():
                self._look()
                if bypass or standing is None or not self._may_stand(about):
                    return self._answered(work, quoted, bypass=bypass)
            # outside of the session's turn, because the window's agent may still be writing down what happened
            shown = standing()
            gone = session.sent_windows.evicted_among(shown)
            with session.turn():
                self._look()
                return self._answered(work, quoted, self._seen(shown, gone))
        except StoreError as problem:  # the text is the answer without a store (law 7)
            session.move(None)
            bypass = True
            return ReceiptedRead(replace(work(bypass), failure=str(problem)))

    def _answered(
        self,
        work: Callable[[bool], ReadResult],
        quoted: Collection[str],
        seen: Iterable[str] = (),
        *,
        bypass: bool = False,
    ) -> ReceiptedRead:
        """Answer a read after the quoted answers and those that stand in the window. Raises StoreError."""
        session = self._session
        unknown = tuple(one for one in quoted if one not in self._answers)
        session.move(None)
        proven = self._proven(dict.fromkeys((*quoted, *seen)))
        for answer in proven:
            session.note(answer.note)
        before = session.leaf
        result = work(bypass)
        if not bypass and any(self._is_ambiguous(event, proven) for event in self._reads_behind(before)):
            session.move(before)
            result = work(True)  # noqa: FBT003 - the shape of all such work
        receipt = self._receipt(before)
        self._look()
        self._refreshed.discard(receipt)  # an answer that was given before has no new entry
        return ReceiptedRead(result, receipt, unknown)

    def _reads_behind(self, before: EntryId | None) -> list[FileRead]:
        """Return the reads of files journaled after an entry, the newest first."""
        found, place = [], self._session.leaf
        while place is not None and place != before:
            entry = self._session.journal.entry(place)
            note = _read_note(entry)
            if note is not None:
                found.append(note[1])
            place = entry.parent
        return found

    def _is_ambiguous(self, event: FileRead, proven: Collection[_Answer]) -> bool:
        """Return whether a marker names line numbers under which an answer that is not proven shows another version."""
        named = [(one.base, one.first, one.first + one.count - 1) for one in event.copies if one.first != one.at]
        if not named or event.mode not in ("moved", "partly_known"):
            return False
        quoted = {one.tag for one in proven}
        others = (self._answers[tag].event for tag in self._in_order.get(event.path, ()) if tag not in quoted)
        return any(
            other.version != base and other.emitted is not None and other.emitted.clamp(first, last)
            for other in others
            for base, first, last in named
        )

    def _receipt(self, before: EntryId | None) -> str:
        """Return the receipt of the answer journaled after an entry; "" for an answer that tells nothing new."""
        place = self._session.leaf
        while place is not None and place != before:
            entry = self._session.journal.entry(place)
            found = self._telling_read(entry)
            if found is not None:
                return self._told(entry.parent, *found)
            place = entry.parent
        return ""

    def _told(self, parent: EntryId | None, note: ReadNote, event: FileRead) -> str:
        """Return the receipt of an answer behind an entry. A repeated answer is journaled anew."""
        last = self._given.get(_tag(note))
        if last is None:
            return _tag(note)
        tags = self._in_order[event.path]
        since = (self._answers[tag].event.version for tag in tags[tags.index(last) :])
        is_last = all(version == event.version for version in since)
        told = self._answers[last].note if is_last else replace(note, repeat=len(self._answers))
        if told.repeat:
            self._session.move(parent)
            self._session.note(told)
        return _tag(told)

    def _may_stand(self, about: str) -> bool:
        """Return whether an answer showed a file of this name."""
        return any(not about or one.rpartition("/")[2] in about for one in self._in_order)

    def _seen(self, shown: Mapping[str, StandingReceipt], gone: Collection[str]) -> list[str]:
        """Return the receipts whose whole answers stand in the window, and were evicted by no gateway on this store."""
        found = (one for call, one in shown.items() if call not in gone and one.tag in self._answers)
        return [one.tag for one in found if self._answers[one.tag].note.trace in one.traces]

    def _proven(self, quoted: Collection[str]) -> list[_Answer]:
        """Return the quoted answers that are proven, the oldest first.

        If one quoted answer about a file is not proven, no answer about this file is: the reader of that answer expects another
        text than the earlier answers showed.
        """
        paths = {self._answers[tag].event.path for tag in quoted if tag in self._answers}
        found = sorted((one for path in paths for one in self._upheld(path, quoted)), key=lambda one: one.number)
        proven: dict[str, _Answer] = {}
        doubtful = set()
        for one in found:
            if one.tag not in self._refreshed and any(base <= proven.keys() for base in one.bases):
                proven[one.tag] = one
            else:
                doubtful.add(one.event.path)
        return [one for one in proven.values() if one.event.path not in doubtful]

    def _upheld(self, path: str, quoted: Collection[str]) -> Iterator[_Answer]:
        """Yield the quoted answers about a file that no answer behind them contradicts, the newest first.

        An answer that does not count contradicts earlier answers about another version, unless a quoted answer between them
        covers all its lines in its version.
        """
        later: list[FileRead] = []
        for one in map(self._answers.__getitem__, reversed(self._in_order[path])):
            event = one.event
            if one.tag in quoted and all(other.version == event.version for other in later):
                later = [other for other in later if not event.first <= other.first <= other.last <= event.last]
                yield one
            else:
                later.append(event)

    def _look(self) -> None:
        """Learn the receipts of the answers that the journal got since the last look."""
        entries = self._session.journal.entries
        news = list(takewhile(lambda name: name != self._last, reversed(entries)))
        for name in reversed(news):
            found = self._telling_read(entries[name])
            if found is None:
                self._refreshed |= self._tags_of(_refreshed_path(entries[name]))
                continue
            note, event = found
            tag, base = _tag(note), self._base(entries[name], event)
            self._refreshed.discard(tag)
            known = self._answers.get(tag) or _Answer(tag, len(self._answers), note, event)
            if tag not in self._answers:
                self._in_order.setdefault(event.path, []).append(tag)
                self._given[_tag(replace(note, repeat=0))] = tag
            self._answers[tag] = replace(known, bases=known.bases | {base})
        self._last = news[0] if news else self._last

    def _tags_of(self, path: str) -> set[str]:
        return set(self._in_order.get(path, ()))

    def _base(self, entry: Entry, event: FileRead) -> frozenset[str]:
        """Return the receipts of earlier answers needed for this answer."""
        if event.mode in _PLAIN:
            return frozenset()
        base, place = set(), entry.parent
        while place is not None:
            before = self._session.journal.entry(place)
            found = self._telling_read(before)
            if found is not None and found[1].path == event.path:
                base.add(_tag(found[0]))
            place = before.parent
        return frozenset(base)

    def _telling_read(self, entry: Entry) -> tuple[ReadNote, FileRead] | None:
        """Return the entry's read, if it shows text of a file or tells of another version than the read before on its branch."""
        found = _read_note(entry)
        if found is None or found[1].emitted:
            return found
        place = entry.parent
        while place is not None:
            before = self._session.journal.entry(place)
            earlier = _read_note(before)
            if earlier is not None and earlier[1].path == found[1].path:
                return found if earlier[1].version != found[1].version else None
            place = before.parent
        return None


def _read_note(entry: Entry) -> tuple[ReadNote, FileRead] | None:
    """Return the entry's read of a file; None for another entry."""
    note = entry.body.note if isinstance(entry.body, NoteEntry) else None
    if not isinstance(note, ReadNote) or not isinstance(note.event, FileRead):
        return None
    return note, note.event


def _refreshed_path(entry: Entry) -> str:
    """Return the path to show again by this entry; "" for any other entry."""
    note = entry.body.note if isinstance(entry.body, NoteEntry) else None
    return note.event.path if isinstance(note, ReadNote) and isinstance(note.event, FileRefresh) else ""


def _tag(note: ReadNote) -> str:
    return entry_name(None, NoteEntry(*encode_note(note)))[:RECEIPT_DIGITS]

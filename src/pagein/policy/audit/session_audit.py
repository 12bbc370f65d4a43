"""The session audit: check each marker and diff of a stored session against the text shown before it.

The witness reads requests. A journal stores no requests, only events; so the audit follows a branch as the model did,
keeps a sheet of each file for a careful reader (`proof_sheets`), and compares the reader's idea of each later answer
with the stored bytes of its version, line by line. It shares no code with the policy: not its fold, its matching or its
trust table.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.model.names import ContentHash
from pagein.model.read_events import CompactionEvent, FileRead, FileWrite, ReadEvent
from pagein.model.spans import NO_LINES
from pagein.policy.audit.proof_sheets import MisledReader, Sheet, numbers_of


@dataclass(frozen=True, slots=True)
class UnfoundedAnswer:
    """An answer without proof in the branch before it.

    place: index of the event, from 0. line: first failing line, if at one line.
    """

    place: int
    path: str
    why: str
    line: int | None = None


def audit(events: Iterable[ReadEvent], stored: Callable[[ContentHash], bytes | None]) -> tuple[UnfoundedAnswer, ...]:
    """Return the objections against the events of one branch, in order; an empty tuple for a proven branch.

    stored: returns the bytes of a version; None for a lost version, which is an objection to every answer based on it.
    """
    going = Audit(stored)
    told = ((place, going.add_event(event)) for place, event in enumerate(events))
    return tuple(replace(one, place=place) for place, one in told if one is not None)


class Audit:
    """An audit in progress, with the reader's sheets at one point of a branch.

    Where branches part, continue with a `copy` for each.
    """

    def __init__(self, stored: Callable[[ContentHash], bytes | None]) -> None:
        self._stored = stored
        self._sheets: dict[str, Sheet] = {}
        self._truth: dict[ContentHash, list[str] | None] = {}

    def copy(self) -> "Audit":
        """Return a copy, for another branch from here."""
        other = Audit(self._stored)
        other._truth = self._truth  # stored versions are the same on every branch
        other._sheets = {path: sheet.copy() for path, sheet in self._sheets.items()}
        return other

    def add_event(self, event: ReadEvent) -> UnfoundedAnswer | None:
        """Process another event, and return any objection against the event, with place 0."""
        match event:
            case CompactionEvent():
                self._sheets = {}
            case FileRead() | FileWrite():
                try:
                    self._take(event)
                except MisledReader as objection:
                    return UnfoundedAnswer(0, event.path, objection.why, objection.line)
            case _:
                pass  # a request for a fresh read does not hide any seen text
        return None

    def _take(self, event: FileRead | FileWrite) -> None:
        sheet = self._sheets.setdefault(event.path, Sheet())
        truth = self._lines(event.version)
        if truth is None:
            raise MisledReader("the bytes of the version are not in the store")
        if len(truth) != event.total:
            raise MisledReader(f"the version has {len(truth)} lines, not {event.total}")
        if isinstance(event, FileWrite):
            self._check_write(event, sheet, truth)
            return
        seen = self._lines_of_answer(event, sheet, truth)
        for n in sorted(seen):
            if n > len(truth) or seen[n] != truth[n - 1]:
                raise MisledReader("what it stands for says something else by now", n)
        if event.mode == "diff":
            sheet.taken = {}
        kept = max(event.copies, key=lambda copy: copy.at, default=None)
        if event.mode == "range_diff" and kept is not None and kept.at + kept.count - 1 == event.last:
            sheet.shifts(kept.first + kept.count - 1, event.last)
        sheet.reads(seen, numbers_of(event.emitted or NO_LINES), _length(event), _expected_length(event, sheet))

    def _lines_of_answer(self, event: FileRead, sheet: Sheet, truth: Sequence[str]) -> dict[int, str]:
        shown = _lines_by_number(event.emitted or NO_LINES, truth)
        match event.mode:
            case "full" | "baseline_fallback":
                return shown
            case "unchanged":
                return sheet.whole(event.total)
            case "unchanged_range":
                return sheet.in_place(event.first, event.last)
            case "diff":
                return self._by_diff(event, sheet, truth)
            case "range_diff":
                return self._by_range_diff(event, sheet, truth)
            case "moved" | "partly_known":
                seen = shown
                for copy in event.copies:
                    last = copy.at + copy.count - 1
                    seen |= (
                        sheet.in_place(copy.at, last)
                        if copy.first == copy.at
                        else sheet.shown_as(copy.at, last, copy.first)
                    )
                if event.mode == "moved":
                    _cover(event, seen)
                return seen

    def _by_diff(self, event: FileRead, sheet: Sheet, truth: Sequence[str]) -> dict[int, str]:
        """Return the lines after a diff of the whole file; the reader must believe in its whole base."""
        base = self._base(event)
        if sheet.length not in (None, len(base)):
            raise MisledReader(f"a diff of {len(base)} lines, where the file was last said to have {sheet.length}")
        _check_base_lines(sheet, base, 1, len(base))
        if event.emitted is not None:
            shown = _lines_by_number(event.emitted, truth)
            rest = iter(base)
            # the empty line after a last newline is not a line of a diff: it comes with the line before it
            last = len(truth) - (not truth[-1] and len(truth) - 1 in shown)
            for n, text in enumerate(truth[:last], start=1):
                # lines outside the diff must be in the base, in the same order
                if n not in shown and text not in rest:
                    raise MisledReader("a diff leaves out a line that is not in its base", n)
        return dict(enumerate(truth, start=1))

    def _by_range_diff(self, event: FileRead, sheet: Sheet, truth: Sequence[str]) -> dict[int, str]:
        """Return the lines after a diff of a range; the reader must believe in its base from the first kept line to the
        last.
        """
        base = self._base(event)
        first = min((copy.first for copy in event.copies), default=1)
        last = max((copy.first + copy.count - 1 for copy in event.copies), default=0)
        # the empty line after a last newline is not a line of a diff, and comes and goes with that newline
        is_unseen = base[-1] == "" and len(base) >= sheet.end
        _check_base_lines(sheet, base, first, min(last, len(base) - is_unseen))
        seen = _lines_by_number(event.emitted or NO_LINES, truth)
        for copy in event.copies:
            seen |= {copy.at + k: base[copy.first + k - 1] for k in range(copy.count) if copy.first + k <= len(base)}
        _cover(event, seen)
        sheet.learns({n: seen[n] for n in range(event.first, event.last + 1)}, event.total)
        return seen

    def _base(self, event: FileRead) -> list[str]:
        base = None if event.base is None else self._lines(event.base)
        if base is None:
            raise MisledReader("a diff without a base")
        return base

    def _check_write(self, event: FileWrite, sheet: Sheet, truth: Sequence[str]) -> None:
        own = _lines_by_number(event.authored, truth)
        if event.whole and event.authored.holds(1, event.total):
            sheet.writes(own)
            return
        for copy in event.copies:
            base = self._lines(copy.base)
            for k in range(copy.count if base is not None else 0):
                n = copy.at + k
                if base is not None and base[copy.first + k - 1 : copy.first + k] != list(truth[n - 1 : n]):
                    raise MisledReader("said to be left alone by an edit, and says something else", n)
        before = self._lines(event.copies[0].base) if event.copies else None
        sheet.edits(event.copies, own, None if before is None else event.total - len(before))

    def _lines(self, version: ContentHash) -> list[str] | None:
        if version not in self._truth:
            content = self._stored(version)
            self._truth[version] = None if content is None else content.decode("utf-8", "replace").split("\n")
        return self._truth[version]


def _check_base_lines(sheet: Sheet, base: Sequence[str], first: int, last: int) -> None:
    """Raise MisledReader where the reader's lines differ from the base of a diff."""
    for n in range(first, last + 1):
        if n not in sheet.taken:
            raise MisledReader("a diff against a version of which a line was never shown", n)
        if sheet.taken[n] != base[n - 1]:
            raise MisledReader("a diff against a version of which a line was shown otherwise since", n)


def _length(event: FileRead) -> int | None:
    """Return the file's length if the answer states it; the marker of a range in a changed file does not."""
    return None if event.mode == "unchanged_range" and event.base not in (None, event.version) else event.total


def _expected_length(event: FileRead, sheet: Sheet) -> int | None:
    """Return the length of the file by earlier answers, where an answer about a range names the new length only in
    passing.
    """
    if sheet.length is None or event.last >= event.total:
        return None
    if event.mode == "unchanged_range":
        return sheet.length
    if event.mode == "range_diff":
        # the journal shows how far the diff moves later lines only where the last line of the range stayed
        moved = (copy.at - copy.first for copy in event.copies if copy.at + copy.count - 1 == event.last)
        return next((sheet.length + by for by in moved), None)
    return None


def _lines_by_number(runs: Iterable[tuple[int, int]], truth: Sequence[str]) -> dict[int, str]:
    seen: dict[int, str] = {}
    for first, last in runs:
        if last > len(truth):
            raise MisledReader("said to show lines that the version does not have", len(truth) + 1)
        seen |= {n: truth[n - 1] for n in range(first, last + 1)}
    return seen


def _cover(event: FileRead, seen: Mapping[int, str]) -> None:
    missing = next((n for n in range(event.first, event.last + 1) if n not in seen), None)
    if missing is not None:
        raise MisledReader("asked for, and neither shown nor stood for", missing)

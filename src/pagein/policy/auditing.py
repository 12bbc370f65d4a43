"""The audit: was every marker and diff that a kept session tells of borne out by what it had shown before?

The witness reads requests. A journal keeps no requests, only events; so this goes down a branch as the model did, keeps for each
file the lines that stood as text in an answer or in the model's own writes, and compares what each later answer stands for with the
stored bytes of its version, line by line. It shares no code with the policy: not its fold, its matching or its trust table.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pagein.model.names import ContentHash
from pagein.model.reading import Compacted, Copy, FileAuthored, ReadEvent, ReadServed


@dataclass(frozen=True, slots=True)
class Unfounded:
    """An answer that the branch before it does not bear out. place: which event it is, from 0. line: where it fails, if at one line."""

    place: int
    path: str
    why: str
    line: int | None = None


class _Objection(Exception):
    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@dataclass(slots=True)
class _Sheet:
    """What has been seen of one file. printed: the text that stood last under each number. under: what was said last of each number,
    in text or otherwise. of: lines seen of each version.
    """

    printed: dict[int, str] = field(default_factory=dict)
    under: dict[int, str] = field(default_factory=dict)
    of: dict[ContentHash, dict[int, str]] = field(default_factory=dict)


def audit(events: Iterable[ReadEvent], stored: Callable[[ContentHash], bytes | None]) -> tuple[Unfounded, ...]:
    """Objections against the events of one branch, in their order; none means that every claim was borne out.

    stored: the bytes of a version, None where they are lost; then nothing can be told of what rests on them, and that is objected to.
    """
    going = Audit(stored)
    told = ((place, going.heard(event)) for place, event in enumerate(events))
    return tuple(replace(one, place=place) for place, one in told if one is not None)


class Audit:
    """An audit under way: what has been seen where a branch stands. Where branches part, go on with a `copy` for each."""

    def __init__(self, stored: Callable[[ContentHash], bytes | None]) -> None:
        self._stored = stored
        self._sheets: dict[str, _Sheet] = {}
        self._truth: dict[ContentHash, list[str] | None] = {}

    def copy(self) -> "Audit":
        """The same, to go on from here another way."""
        other = Audit(self._stored)
        other._truth = self._truth  # what is true does not depend on the way
        other._sheets = {
            path: _Sheet(dict(sheet.printed), dict(sheet.under), {name: dict(page) for name, page in sheet.of.items()})
            for path, sheet in self._sheets.items()
        }
        return other

    def heard(self, event: ReadEvent) -> Unfounded | None:
        """One event more. Returns the objection against it, if there is one; its place is 0."""
        match event:
            case Compacted():
                self._sheets = {}
            case ReadServed() | FileAuthored():
                try:
                    self._take(event)
                except _Objection as objection:
                    return Unfounded(0, event.path, objection.why, objection.line)
            case _:
                pass  # asking for a fresh read takes nothing away that was seen
        return None

    def _take(self, event: ReadServed | FileAuthored) -> None:
        sheet = self._sheets.setdefault(event.path, _Sheet())
        truth = self._lines(event.version)
        if truth is None:
            raise _Objection("the bytes of the version are not in the store")
        if len(truth) != event.total:
            raise _Objection(f"the version has {len(truth)} lines, not {event.total}")
        if isinstance(event, FileAuthored):
            seen = self._authored(event, sheet, truth)
        else:
            seen = self._served(event, sheet, truth)
        sheet.under |= seen
        sheet.printed |= _printed(event, truth)
        page = sheet.of.setdefault(event.version, {})
        page |= seen
        tells = (
            isinstance(event, FileAuthored) or event.mode != "unchanged_range" or event.base in (None, event.version)
        )
        if tells:  # where the file ends
            sheet.under = {n: text for n, text in sheet.under.items() if n <= event.total}

    def _served(self, event: ReadServed, sheet: _Sheet, truth: Sequence[str]) -> dict[int, str]:
        shown = _shown(event.emitted or (), truth)
        match event.mode:
            case "full" | "baseline_fallback":
                return shown
            case "unchanged" | "unchanged_range":
                return self._in_place(event, sheet, truth)
            case "diff":
                return self._by_diff(event, sheet, truth)
            case "range_diff":
                seen = shown | self._copied(event.copies, lambda copy: sheet.of.get(copy.base, {}), truth)
                _cover(event, seen)
            case "moved" | "partly_known":
                seen = shown | self._copied(event.copies, lambda _: sheet.printed, truth)
                if event.mode == "moved":
                    _cover(event, seen)
        return seen

    def _in_place(self, event: ReadServed, sheet: _Sheet, truth: Sequence[str]) -> dict[int, str]:
        """A marker that names lines means the text that stood last under their numbers; one for the whole file names none."""
        seen: dict[int, str] = {}
        page = sheet.under if event.whole else sheet.printed
        for n in range(event.first, event.last + 1):
            text = page.get(n)
            if text is None:
                raise _Objection("said to be unchanged, and never shown", n)
            if text != truth[n - 1]:
                raise _Objection("said to be unchanged, and shown otherwise", n)
            seen[n] = text
        beyond = min((n for n in sheet.under if n > event.total), default=None) if event.whole else None
        if beyond is not None:
            raise _Objection("the whole file is said to be unchanged, and had more lines", beyond)
        return seen

    def _by_diff(self, event: ReadServed, sheet: _Sheet, truth: Sequence[str]) -> dict[int, str]:
        base = None if event.base is None else self._lines(event.base)
        if event.base is None or base is None:
            raise _Objection("a diff without a base")
        page = sheet.of.get(event.base, {})
        missing = next((n for n in range(1, len(base) + 1) if n not in page), None)
        if missing is not None:
            raise _Objection("a diff against a version of which a line was never shown", missing)
        if event.emitted is not None:
            shown = _shown(event.emitted, truth)
            rest = iter(base)
            for n, text in enumerate(truth, start=1):
                # what the diff does not show must stand in the base, in the same order
                if n not in shown and text not in rest:
                    raise _Objection("a diff leaves out a line that is not in its base", n)
        return dict(enumerate(truth, start=1))

    def _copied(
        self, copies: Iterable[Copy], page_of: Callable[[Copy], Mapping[int, str]], truth: Sequence[str]
    ) -> dict[int, str]:
        seen: dict[int, str] = {}
        for copy in copies:
            page = page_of(copy)
            for k in range(copy.count):
                n = copy.at + k
                text = page.get(copy.first + k)
                if text is None:
                    raise _Objection(f"rests on line {copy.first + k}, which was never shown", n)
                if n > len(truth) or truth[n - 1] != text:
                    raise _Objection(f"rests on line {copy.first + k}, which says something else", n)
                seen[n] = text
        return seen

    def _authored(self, event: FileAuthored, sheet: _Sheet, truth: Sequence[str]) -> dict[int, str]:
        seen = _shown(event.authored, truth)
        kept: set[int] = set()
        for copy in event.copies:
            page = sheet.of.get(copy.base, {})
            for k in range(copy.count):
                n, text = copy.at + k, page.get(copy.first + k)
                kept.add(n)
                if text is not None and (n > len(truth) or truth[n - 1] != text):
                    raise _Objection("said to be left alone by an edit, and says something else", n)
                if text is not None:
                    seen[n] = text
        if event.copies or event.authored.holds(1, event.total):
            sheet.under = {n: text for n, text in sheet.under.items() if n in kept}
        return seen

    def _lines(self, version: ContentHash) -> list[str] | None:
        if version not in self._truth:
            content = self._stored(version)
            self._truth[version] = None if content is None else content.decode("utf-8", "replace").split("\n")
        return self._truth[version]


def _printed(event: ReadServed | FileAuthored, truth: Sequence[str]) -> dict[int, str]:
    """The lines that stand under their numbers in an answer, or in a write of the whole file; the text of an edit has none."""
    if isinstance(event, ReadServed):
        return _shown(event.emitted or (), truth)
    return _shown(event.authored, truth) if event.whole else {}


def _shown(runs: Iterable[tuple[int, int]], truth: Sequence[str]) -> dict[int, str]:
    seen: dict[int, str] = {}
    for first, last in runs:
        if last > len(truth):
            raise _Objection("said to show lines that the version does not have", len(truth) + 1)
        seen |= {n: truth[n - 1] for n in range(first, last + 1)}
    return seen


def _cover(event: ReadServed, seen: Mapping[int, str]) -> None:
    missing = next((n for n in range(event.first, event.last + 1) if n not in seen), None)
    if missing is not None:
        raise _Objection("asked for, and neither shown nor stood for", missing)

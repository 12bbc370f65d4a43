"""What the model knows of a file because it wrote it: events from its own write and edit calls that succeeded.

Only text that stands in the call's arguments counts, in whole lines. Short runs of an edit's new text are left out on
purpose: a model that reads again after a small edit wants to see that it took, and is shown the new lines as text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.model.names import ContentHash
from pagein.model.reading import Copy, FileAuthored
from pagein.model.spans import Spans
from pagein.policy.knowledge import PathKnown
from pagein.policy.request import DEFAULTS

_GUESSES: Final = 16  # places of the new text that are tried when the text before the edit is not at hand
_REGIONS: Final = 256  # more replacements by one call are not followed line by line


@dataclass(frozen=True, slots=True)
class Edit:
    """One exact replacement. everywhere: of all occurrences, not of the only one."""

    old: str
    new: str
    everywhere: bool = False


def written(path: str, text: str) -> FileAuthored:
    """The model wrote the whole file, and this is its text now."""
    total = text.count("\n") + 1
    return FileAuthored(path, ContentHash.of(text.encode()), total, Spans.of((1, total)), whole=True)


def edited(
    path: str,
    after: str,
    edit: Edit,
    known: PathKnown,
    *,
    before: str | None = None,
    min_run: int = DEFAULTS.min_run,
) -> FileAuthored | None:
    """The model replaced `edit.old` by `edit.new`, and `after` is the text now. None where that cannot be what happened.

    before: the text before the edit. Without it, it is worked out from `after`, and used if it is a version that
    the branch knows; else only the new text counts.
    """
    if before is None:
        before = _worked_out(after, edit, known)
    version = ContentHash.of(after.encode())
    total = after.count("\n") + 1
    if before is None:
        places = _places(after, edit.new)[:2]
        # the new text may stand in the file more than once: which of them the edit made is not known
        regions = [(0, 0, places[0], len(edit.new))] if len(places) == 1 and edit.new else []
        authored = _long(_authored(after, regions), min_run)
        return FileAuthored(path, version, total, authored) if edit.new and places else None
    regions = _regions(before, after, edit)
    if not regions:
        return None
    authored = _long(_authored(after, regions), min_run)
    return FileAuthored(path, version, total, authored, _left_alone(before, after, regions))


def _worked_out(after: str, edit: Edit, known: PathKnown) -> str | None:
    if edit.everywhere:
        guesses: Iterable[str] = [after.replace(edit.new, edit.old)] if edit.new else []
    else:
        places = _places(after, edit.new)[:_GUESSES] if edit.new else []
        guesses = (after[:at] + edit.old + after[at + len(edit.new) :] for at in places)
    versions = {version for version, _ in known.versions}
    return next((guess for guess in guesses if ContentHash.of(guess.encode(errors="surrogatepass")) in versions), None)


def _places(text: str, part: str) -> list[int]:
    found: list[int] = []
    at = text.find(part) if part else -1
    while at >= 0:
        found.append(at)
        at = text.find(part, at + len(part))
    return found


def _regions(before: str, after: str, edit: Edit) -> list[tuple[int, int, int, int]]:
    """Where the edit happened, in characters: (place before, length before, place after, length after)."""
    places = _places(before, edit.old)
    if edit.everywhere:
        if not 0 < len(places) <= _REGIONS or before.replace(edit.old, edit.new) != after:
            return []
        grown = len(edit.new) - len(edit.old)
        return [(at, len(edit.old), at + k * grown, len(edit.new)) for k, at in enumerate(places)]
    for at in places:
        if before[:at] + edit.new + before[at + len(edit.old) :] == after:
            return [(at, len(edit.old), at, len(edit.new))]
    return []


def _authored(after: str, regions: Sequence[tuple[int, int, int, int]]) -> Spans:
    """Lines of `after` that lie wholly inside new text."""
    runs: list[tuple[int, int]] = []
    for _, _, at, length in regions:
        stop = at + length
        starts = at if at == 0 or after[at - 1] == "\n" else after.find("\n", at, stop) + 1
        ends = stop if stop == len(after) or after[stop] == "\n" else after.rfind("\n", at, stop)
        # found at all, and in order: otherwise the new text lies inside one line
        if (starts > 0 or at == 0) and ends >= starts:
            first = after.count("\n", 0, starts) + 1
            runs.append((first, first + after.count("\n", starts, ends)))
    return Spans.of(*runs)


def _long(spans: Spans, min_run: int) -> Spans:
    return Spans(tuple((first, last) for first, last in spans if last - first + 1 >= min_run))


def _left_alone(before: str, after: str, regions: Sequence[tuple[int, int, int, int]]) -> tuple[Copy, ...]:
    """Whole lines between the regions, as copies of the version before."""
    base = ContentHash.of(before.encode())
    copies: list[Copy] = []
    i = j = 1  # the first lines not yet spoken of, before and after
    for at_old, length_old, at_new, length_new in regions:
        # lines that end before the region; one that only touches it may have grown
        touched = before.count("\n", 0, at_old) + 1
        if touched > i:
            copies.append(Copy(base, i, touched - i, j))
        end_old, end_new = at_old + length_old, at_new + length_new
        clean = _begins_line(before, end_old) and _begins_line(after, end_new)
        i = before.count("\n", 0, end_old) + (1 if clean else 2)
        j = after.count("\n", 0, end_new) + (1 if clean else 2)
    total = before.count("\n") + 1
    if i <= total:
        copies.append(Copy(base, i, total - i + 1, j))
    return tuple(copies)


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"

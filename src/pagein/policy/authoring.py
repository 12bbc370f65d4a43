"""What a model's own edit proves: the version it makes, the lines it wrote, the lines it left alone.

The call carries the old and the new text, so the result can be computed from the version before without asking the
disk. All texts must be encodable as UTF-8. Only lines that stand whole in the new text count as written; a line that begins or ends outside it does not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pagein.model.names import ContentHash
from pagein.model.reading import Copy, FileAuthored
from pagein.model.spans import Spans


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old` by `new`: where it stands only once, or everywhere."""

    old: str
    new: str
    everywhere: bool = False

    def applied(self, before: str) -> str | None:
        """The text afterwards; None where `old` is empty, is not there, or its place is not certain."""
        count = before.count(self.old) if self.old else 0
        if count == 0 or (count > 1 and not self.everywhere):
            return None
        return before.replace(self.old, self.new)


def written(path: str, text: str) -> FileAuthored:
    """The model gave the file's whole text."""
    total = text.count("\n") + 1
    return FileAuthored(path, _version(text), total, Spans.of((1, total)), whole=True)


def edited(path: str, before: str, edit: Edit) -> FileAuthored | None:
    """The model's edit of a version with the text `before`; None where the edit does not fit it."""
    after = edit.applied(before)
    if after is None:
        return None
    places = _places(before, edit)
    base, version = _version(before), _version(after)
    if base == version:
        return None
    return FileAuthored(
        path,
        version,
        after.count("\n") + 1,
        Spans.of(*(_whole_lines(after, start, start + len(edit.new)) for _, start in places)),
        tuple(_untouched(before, after, places, edit, base)),
    )


def seen_after(path: str, after: str, edit: Edit) -> FileAuthored | None:
    """The same, where only the text afterwards is to be had: the version before is unknown, so nothing carries over."""
    if edit.everywhere or not edit.new or after.count(edit.new) != 1:
        return None
    start = after.index(edit.new)
    lines = Spans.of(_whole_lines(after, start, start + len(edit.new)))
    if not lines:
        return None
    return FileAuthored(path, _version(after), after.count("\n") + 1, lines)


def _version(text: str) -> ContentHash:
    return ContentHash.of(text.encode())


def _places(before: str, edit: Edit) -> list[tuple[int, int]]:
    """Where each replaced piece begins, in the text before and in the text after."""
    found: list[tuple[int, int]] = []
    grown = len(edit.new) - len(edit.old)
    at = before.find(edit.old)
    while at >= 0:
        found.append((at, at + grown * len(found)))
        at = before.find(edit.old, at + len(edit.old))
    return found


def _line(text: str, at: int) -> int:
    """The line that the character at `at` belongs to."""
    return text.count("\n", 0, at) + 1


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """First and last line that lie whole within `text[start:end]`; empty (last < first) where none does.

    What follows a line feed at the very end is no line of the piece, also where the text has an empty line there.
    """
    if start == end:
        return 1, 0
    first = _line(text, start) + (not _begins_line(text, start))
    cut = text[end - 1] == "\n" or (end < len(text) and text[end] != "\n")
    return first, _line(text, end) - cut


def _untouched(before: str, after: str, places: list[tuple[int, int]], edit: Edit, base: ContentHash) -> Iterator[Copy]:
    """Runs of lines that the edit neither wrote nor touched."""
    first = at = 1  # the next line that may be untouched, in the version before and in the one after
    for old_start, new_start in places:
        touched = _line(before, old_start)
        if touched > first:
            yield Copy(base, first, touched - first, at)
        old_end, new_end = old_start + len(edit.old), new_start + len(edit.new)
        joined = not (_begins_line(before, old_end) and _begins_line(after, new_end))
        first, at = _line(before, old_end) + joined, _line(after, new_end) + joined
    total = _line(before, len(before))
    if first <= total:
        yield Copy(base, first, total - first + 1, at)

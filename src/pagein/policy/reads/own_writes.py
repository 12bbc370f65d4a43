"""Knowledge of a file from the model's own successful write and edit calls.

Only text in the call's arguments counts, in whole lines. Short runs of an edit's new text are left out on purpose: a
model that reads again after a small edit wants to see that it took effect, and is shown the new lines as text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pagein.model.names import ContentHash
from pagein.model.read_events import FileWrite, LineCopy
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads.knowledge import PathKnown
from pagein.policy.reads.line_diff import LineChange, changes
from pagein.policy.reads.read_request import DEFAULTS
from pagein.policy.reads.text_edit import TextEdit

_GUESSES: Final = 16  # places of the new text that are tried when the text before the edit is not at hand
_REGIONS: Final = 256  # more replacements by one call are not followed line by line


def write_event(path: str, text: str) -> FileWrite:
    """Return the event of a write of the whole file with this text."""
    total = text.count("\n") + 1
    return FileWrite(path, ContentHash.of(text.encode()), total, Spans.of((1, total)), whole=True)


def follow_edit(
    event: FileWrite, before: str, known: PathKnown, fetch: Callable[[ContentHash], bytes | None]
) -> FileWrite:
    """Return the edit with the earlier places of its untouched lines, including lines never shown as part of the text
    `before`.

    The model expects them to move with its edit, whether or not it was told that they belong to the version that was
    edited.
    """
    lines = before.split("\n")
    base = ContentHash.of(before.encode(errors="surrogatepass"))
    more: list[LineCopy] = []
    texts: dict[ContentHash, Sequence[str]] = {}
    for copy in event.copies:
        for piece in known.view:
            first, last = max(piece.first, copy.first), min(piece.last, copy.first + copy.count - 1)
            if piece.is_of(base) or first > last or copy.base != base:
                continue
            if piece.source not in texts:
                texts[piece.source] = (fetch(piece.source) or b"").decode(errors="surrogatepass").split("\n")
            part = piece.part(first, last)
            theirs = texts[piece.source][part.start - 1 : part.start - 1 + part.count]
            more += [
                LineCopy(piece.source, part.start + a - first, b - a + 1, copy.at + a - copy.first)
                for a, b in Spans.lines(n for n, text in enumerate(theirs, first) if lines[n - 1] == text)
            ]
    return replace(event, copies=(*event.copies, *more)) if more else event


def reported_edit_event(
    path: str,
    text: str,
    edit: TextEdit,
    known: PathKnown,
    fetch: Callable[[ContentHash], bytes | None],
    *,
    min_run: int = DEFAULTS.min_run,
) -> tuple[FileWrite, str] | None:
    """Return the event of an edit reported by the model, with the file's new text; None if the file shows no such edit.

    The report does not say whether the edit replaced every occurrence, nor whether the file has changed by now.

    text: the file now.
    fetch: returns stored versions.
    """
    for one in (edit, replace(edit, everywhere=True)):
        event = edit_event(path, text, one, known, min_run=min_run)
        if event is not None and event.copies:
            content = fetch(event.copies[0].base)
            if content is not None:
                event = follow_edit(event, content.decode(errors="replace"), known, fetch)
            return event, text
    # the file has yet to change; or it was changed by others, and the edit fits the version that the model knows
    now = ContentHash.of(text.encode())
    likely = [now] if known.lines_known(now) is not None else []
    likely += [version for version, _ in reversed(known.versions) if known.is_taken_for(version)]
    for version in likely if edit.old else ():
        content = text.encode() if version == now else fetch(version)
        before = "" if content is None else content.decode(errors="replace")
        if before.count(edit.old) == 1:
            after = before.replace(edit.old, edit.new)
            event = edit_event(path, after, edit, known, before=before, min_run=min_run)
            if event is not None:
                return follow_edit(event, before, known, fetch), after
    event = edit_event(path, text, edit, known, min_run=min_run)
    if event is None and known.view:
        event = unplaced_edit_event(path, text)
    return None if event is None else (event, text)


def trace_text(edits: Sequence[TextEdit]) -> str:
    """Return the text by which a call with these edits is recognised among its arguments: the first new text."""
    return next((edit.new for edit in edits if edit.new), "")


def reported_edits_event(
    path: str,
    text: str,
    edits: Sequence[TextEdit],
    known: PathKnown,
    fetch: Callable[[ContentHash], bytes | None],
    *,
    min_run: int = DEFAULTS.min_run,
) -> tuple[FileWrite, str] | None:
    """Return the event of one or more edits by one call (see `reported_edit_event`).

    Each of several edits replaces a text that occurs once in the file before the call.
    """
    if len(edits) == 1:
        return reported_edit_event(path, text, edits[0], known, fetch, min_run=min_run)
    for version, _ in reversed(known.versions):
        before = (fetch(version) or b"").decode(errors="replace")
        regions = _regions_of_all(before, text, edits)
        if regions:
            total, copies = text.count("\n") + 1, _unchanged_lines(before, text, regions)
            event = FileWrite(path, ContentHash.of(text.encode()), total, NO_LINES, copies)
            return follow_edit(event, before, known, fetch), text
    return (unplaced_edit_event(path, text), text) if known.view else None


def unplaced_edit_event(path: str, after: str) -> FileWrite:
    """Return the event of an edit at an unknown place: no line number of the file is certain afterwards."""
    return FileWrite(path, ContentHash.of(after.encode()), after.count("\n") + 1, NO_LINES)


def edit_event(
    path: str,
    after: str,
    edit: TextEdit,
    known: PathKnown,
    *,
    before: str | None = None,
    min_run: int = DEFAULTS.min_run,
) -> FileWrite | None:
    """Return the event of an edit from `edit.old` to `edit.new` with the result `after`; None for an impossible edit.

    before: the text before the edit. Without it, the text is worked out from `after`, and used if it is a version that
        the branch knows; else only the new text counts.
    """
    if before is None:
        before = _worked_out(after, edit, known)
    version = ContentHash.of(after.encode())
    total = after.count("\n") + 1
    if before is None:
        places = _places(after, edit.new)[:2]
        # the new text may occur in the file more than once: the place of the edit is then unknown
        regions = [(0, 0, places[0], len(edit.new))] if len(places) == 1 and edit.new else []
        authored = _long(_lines_in_new_text(after, regions), min_run)
        return FileWrite(path, version, total, authored) if edit.new and places else None
    regions = _regions(before, after, edit)
    if not regions:
        return None
    authored = _long(_lines_in_new_text(after, regions), min_run)
    return FileWrite(path, version, total, authored, _unchanged_lines(before, after, regions))


def _worked_out(after: str, edit: TextEdit, known: PathKnown) -> str | None:
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


def _regions(before: str, after: str, edit: TextEdit) -> list[tuple[int, int, int, int]]:
    """Return the places of an edit, in characters: (place before, length before, place after, length after)."""
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


def _regions_of_all(before: str, after: str, edits: Sequence[TextEdit]) -> list[tuple[int, int, int, int]]:
    """Return the places of several edits, as `_regions`; none if these do not lead from `before` to `after`."""
    if not all(edit.old and before.count(edit.old) == 1 for edit in edits):
        return []
    regions: list[tuple[int, int, int, int]] = []
    made, done = "", 0
    for at, edit in sorted(((before.index(edit.old), edit) for edit in edits), key=lambda one: one[0]):
        if at < done:
            return []
        made += before[done:at]
        regions.append((at, len(edit.old), len(made), len(edit.new)))
        made += edit.new
        done = at + len(edit.old)
    return regions if made + before[done:] == after else []


def _lines_in_new_text(after: str, regions: Sequence[tuple[int, int, int, int]]) -> Spans:
    """Return the lines of `after` that lie wholly inside new text."""
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


def _unchanged_lines(before: str, after: str, regions: Sequence[tuple[int, int, int, int]]) -> tuple[LineCopy, ...]:
    """Return whole lines that are the same before and after, as copies of the version before.

    These are the lines between the regions, and within the regions the lines that the new text repeats.
    """
    base = ContentHash.of(before.encode())
    old, new = before.split("\n"), after.split("\n")
    copies: list[LineCopy] = []
    i = j = 1  # the first lines not yet handled, before and after
    for at_old, length_old, at_new, length_new in regions:
        # lines that end before the region; one that only touches it may have grown
        touched = before.count("\n", 0, at_old) + 1
        if touched > i:
            copies.append(LineCopy(base, i, touched - i, j))
        end_old, end_new = at_old + length_old, at_new + length_new
        clean = _begins_line(before, end_old) and _begins_line(after, end_new)
        begin, other = max(touched, i), max(j + touched - i, j)
        i = before.count("\n", 0, end_old) + (1 if clean else 2)
        j = after.count("\n", 0, end_new) + (1 if clean else 2)
        copies += _copies_of_repeated(base, old[begin - 1 : i - 1], new[other - 1 : j - 1], begin, other, ended=clean)
    if i <= len(old):
        copies.append(LineCopy(base, i, len(old) - i + 1, j))
    return tuple(copies)


def _copies_of_repeated(
    base: ContentHash, old: Sequence[str], new: Sequence[str], first: int, at: int, *, ended: bool
) -> Iterator[LineCopy]:
    """Yield the lines that an edit removes and inserts again.

    ended: whether it removes and inserts whole lines at its end.
    The lines in which it begins and ends may keep a part of the old lines that was never shown: these are left out.
    """
    if not old or not new:
        return
    tail = 0 if ended else 1
    if old[0] == new[0]:
        yield LineCopy(base, first, 1, at)
    inner_old, inner_new = old[1 : len(old) - tail], new[1 : len(new) - tail]
    i = j = 0
    for change in (*changes(inner_old, inner_new), LineChange(len(inner_old), len(inner_old), 0, 0)):
        if change.i1 > i:
            yield LineCopy(base, first + 1 + i, change.i1 - i, at + 1 + j)
        i, j = change.i2, change.j2
    if tail and min(len(old), len(new)) > 1 and old[-1] == new[-1]:
        yield LineCopy(base, first + len(old) - 1, 1, at + len(new) - 1)


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"

"""The echo guard: detect stubs and markers in text that a call is about to write into a file (law 8).

Models copy what they see, and a stub or marker that lands in a file destroys the text that it stood for. The check
looks at the text that a write or edit call is about to write. Only *owned* text counts: a stub whose id carries the tag
of this store, or a marker or hint with which this branch has answered a read or a recall. The same form from another
source, or already in the file, is text like any other.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.errors import BadName
from pagein.model.journal_notes import RecallNote
from pagein.model.messages import ToolCall
from pagein.model.objects import ObjectId
from pagein.model.read_events import FileRead, ReadEvent
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads import markers
from pagein.policy.reads.echo_forms import MARKER, STUB

_NUMBER: Final = re.compile(r"\d+")
_PATCH: Final = "*** Begin Patch"
_DEEPEST: Final = 50

Facts: TypeAlias = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Echo:
    """Owned text that is about to be written.

    text: its beginning. object_id: the object behind a stub.
    """

    kind: Literal["stub", "marker"]
    text: str
    object_id: str | None = None


@dataclass(frozen=True, slots=True)
class OwnTexts:
    """The texts that pagein itself produced.

    made_here: whether this store made an id. served: markers and hints in the branch's answers to reads and recalls.
    """

    made_here: Callable[[ObjectId], bool]
    served: Container[Facts] = frozenset()

    def echoes(self, text: str) -> Iterator[Echo]:
        """Yield the owned stubs in a text, then the owned markers, each in order of place."""
        for match in STUB.finditer(text):
            name = next(group for group in match.groups() if group)
            if self._is_ours(name):
                yield Echo("stub", match[0], name)
        for match in MARKER.finditer(text):
            if facts_of(match[0]) in self.served:
                yield Echo("marker", match[0])

    def _is_ours(self, name: str) -> bool:
        try:
            return self.made_here(ObjectId.parse(name))
        except BadName:  # cannot happen while the pattern is as strict as the parser; else the match is plain text
            return False


def facts_of_read(event: ReadEvent) -> Iterator[Facts]:
    """Yield the markers of a read's answer, reduced to wording and numbers; for a diff without the count."""
    if isinstance(event, FileRead):
        yield from _of(event)


def facts_of_recall(recall: RecallNote) -> Iterator[Facts]:
    """Yield the hints below a recalled part."""
    yield from map(facts_of, recall.hints)


def echoes(call: ToolCall, owned: OwnTexts, before: str = "") -> tuple[Echo, ...]:
    """Return the owned text in a write or edit, on its way into the file.

    before: the file's present text, where the host knows it. Text in the file, or in the text that an edit replaces, is
        no echo. A call with arguments that are not JSON is judged by their text.
    """
    written, replaced = _texts(call)
    found = [echo for text in written for echo in owned.echoes(text)]
    if not found:
        return ()
    there = Counter(echo for text in (*replaced, before) for echo in owned.echoes(text))
    fresh: list[Echo] = []
    for echo in found:
        if there[echo] > 0:
            there[echo] -= 1
        else:
            fresh.append(echo)
    return tuple(fresh)


def remedy(found: Iterable[Echo], *, peek: str = "peek", read: str = "read") -> str:
    """Return the message for the model in place of carrying out the call."""
    stubs = list(dict.fromkeys(echo.object_id for echo in found if echo.object_id is not None))
    marked = list(dict.fromkeys(echo.text for echo in found if echo.kind == "marker"))
    lines = ["This call would write text into a file that only stands for other text. Nothing was written."]
    lines += [f'- get the text behind {one} with {peek}("{one}") and write that' for one in stubs]
    lines += [f"- {one} stands for text that is not here: {read} or {peek} it again and write that" for one in marked]
    return "\n".join(lines)


def facts_of(marker: str) -> Facts:
    """Reduce a marker to wording and numbers, without the count of changed lines, as no journal keeps the count."""
    numbers = tuple(int(number) for number in _NUMBER.findall(marker))
    wording = _NUMBER.sub("#", marker)
    return wording, numbers[1:] if "lines changed" in marker else numbers


def _of(event: FileRead) -> Iterator[Facts]:
    first, last, total = event.first, event.last, event.total
    match event.mode:
        case "unchanged":
            yield facts_of(markers.unchanged_marker(total))
        case "unchanged_range":
            yield facts_of(markers.lines_unchanged_marker(first, last, total))
            yield facts_of(markers.inside_unchanged_marker(first, last))
        case "diff":
            yield facts_of(markers.changed_marker(1, total))
        case "range_diff":
            yield facts_of(markers.lines_changed_marker(1, first, last, total))
        case "moved" | "partly_known":
            yield from _runs(event)
            yield from _gaps(event)


def _runs(event: FileRead) -> Iterator[Facts]:
    """Yield a marker for each run of adjacent copies, as one marker may rest on several copies."""
    runs: list[tuple[int, int, int]] = []
    for copy in sorted(event.copies, key=lambda one: one.at):
        if runs and (copy.at, copy.first) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + copy.count)
        else:
            runs.append((copy.at, copy.first, copy.count))
    for at, first, count in runs:
        last = at + count - 1
        if at == first:
            yield facts_of(markers.lines_unchanged_marker(at, last, event.total))
        else:
            yield facts_of(markers.moved_marker(at, last, event.total, first))


def _gaps(event: FileRead) -> Iterator[Facts]:
    """Yield the marker of each run of lines that the answer leaves out."""
    copied = Spans.of(*((copy.at, copy.at + copy.count - 1) for copy in event.copies))
    said = copied.unite(event.emitted or NO_LINES)
    for first, last in Spans.of((event.first, event.last)).subtract(said):
        yield facts_of(markers.left_out_marker(first, last, event.total))


# --- the text that a call writes ---


def _texts(call: ToolCall) -> tuple[list[str], list[str]]:
    """Return the texts in a call's arguments: texts to write, and texts already in the file."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return [call.arguments], []
    written: list[str] = []
    replaced: list[str] = []
    for name, text in _leaves("", arguments, _DEEPEST):
        if _PATCH in text:
            new, old = _of_patch(text)
            written.append(new)
            replaced.append(old)
        else:
            (replaced if name.lower().startswith("old") else written).append(text)
    return written, replaced


def _leaves(name: str, value: object, deep: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif deep > 0 and isinstance(value, dict):
        for inner, one in value.items():
            yield from _leaves(inner, one, deep - 1)
    elif deep > 0 and isinstance(value, list):
        for one in value:
            yield from _leaves(name, one, deep - 1)


def _of_patch(text: str) -> tuple[str, str]:
    """Return the added lines of a patch, and its removed or unchanged lines."""
    lines = text.split("\n")
    added = [line[1:] for line in lines if line.startswith("+")]
    there = [line[1:] for line in lines if line.startswith(("-", " "))]
    return "\n".join(added), "\n".join(there)

"""Split a text that is larger than a child's window into parts, and show a part to a child.

Rules of this file
------------------
1. The parts themselves follow one another without a gap and without overlap: each character belongs to exactly one.
2. A part is shown with some lines before and behind it. They are labelled as context, so that nothing is counted twice.
3. A cut stands at the strongest edge in the second half of the room, else at the end of a line, else between two
   characters. A record is cut only if it is larger than the room; then the part behind the cut says that it begins inside.
4. The labels carry a tag that does not occur in the text, so no text can imitate them.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pagein.errors import BadInput
from pagein.policy.delegation.part_edges import Edges

OVERLAP: Final = 400
"""Default number of characters of context on each side of a part."""
_LEAST_OWN: Final = 4  # the room is this many times the context on one side, at least


@dataclass(frozen=True, slots=True)
class TargetPart:
    """A part of a text: characters `start` to `end`. The context around it goes from `before` to `behind`.

    number: from 1. first, last: lines of the part, from 1.
    is_inside: the part begins in the middle of a unit, which belongs to the part before.
    """

    number: int
    of: int
    start: int
    end: int
    before: int
    behind: int
    first: int
    last: int
    is_inside: bool


def split_text(text: str, edges: Edges, room: int, overlap: int = OVERLAP) -> tuple[TargetPart, ...]:
    """Return the parts of a text; a single part for a short text.

    room: most characters that a child is shown of the text, context included.
    overlap: characters of context on each side; less if the room is small.
    Raises BadInput for a room below 1.
    """
    if room < 1:
        raise BadInput(f"a child has no room for its target: {room} characters are left beside the instructions")
    if len(text) <= room:
        last = max(1, text.count("\n") + (not text.endswith("\n")))
        return (TargetPart(1, 1, 0, len(text), 0, len(text), 1, last, is_inside=False),)
    side = min(overlap, room // _LEAST_OWN)
    cuts = _cuts(text, edges, room - 2 * side)
    begins = edges.begins
    parts: list[TargetPart] = []
    line = 1
    for number, (start, end) in enumerate(pairwise(cuts), start=1):
        feeds = text.count("\n", start, end)
        last = line + feeds - (feeds > 0 and text[end - 1] == "\n")
        is_inside = start > 0 and (start not in begins if edges.kind == "records" else text[start - 1] != "\n")
        parts.append(
            TargetPart(
                number, len(cuts) - 1, start, end, _before(text, start, side), _behind(text, end, side), line, last,
                is_inside,
            )
        )  # fmt: skip
        line += feeds
    return tuple(parts)


def part_text(text: str, part: TargetPart, name: str) -> str:
    """Return the text of a part for a child, with label and context.

    name: of the text, such as the id of the object.
    """
    own = text[part.start : part.end]
    if part.of == 1:
        return own
    tag = _tag(text[part.before : part.behind])
    shown = []
    if part.before < part.start:
        shown += [f"[{tag} context before this part; it belongs to another part]", text[part.before : part.start]]
    inside = "; it begins inside a unit that was counted in the part before" if part.is_inside else ""
    shown += [f"[{tag} part {part.number} of {part.of} of {name}, lines {part.first} to {part.last}{inside}]", own]
    if part.end < part.behind:
        shown += [f"[{tag} context behind this part; it belongs to another part]", text[part.end : part.behind]]
    shown.append(f"[{tag} end]")
    return "\n".join(one.removesuffix("\n") for one in shown)


def _cuts(text: str, edges: Edges, room: int) -> list[int]:
    cuts = [0]
    while len(text) - cuts[-1] > room:
        cuts.append(_cut(text, edges, cuts[-1], room))
    cuts.append(len(text))
    return cuts


def _cut(text: str, edges: Edges, start: int, room: int) -> int:
    """Return where the part from `start` ends: behind `start`, and within the room."""
    limit, half = start + room, start + room // 2
    for level in edges.levels:
        if (edge := _last_edge(level, limit)) > half:
            return edge
    if edges.kind == "records" and (edge := _last_edge(edges.levels[0], limit)) > start:
        return edge
    line = text.rfind("\n", start, limit) + 1
    if line > start:
        return line
    is_split_end = text[limit - 1] == "\r" and text[limit] == "\n" and limit - 1 > start
    return limit - 1 if is_split_end else limit


def _last_edge(level: Sequence[int], limit: int) -> int:
    place = bisect_right(level, limit)
    return level[place - 1] if place else 0


def _before(text: str, start: int, side: int) -> int:
    """Return where the context before a part begins: at a line, if there is one."""
    reach = max(0, start - side)
    if reach == 0 or text[reach - 1] == "\n":
        return reach
    line = text.find("\n", reach, start) + 1
    return line or reach


def _behind(text: str, end: int, side: int) -> int:
    reach = min(len(text), end + side)
    line = text.rfind("\n", end, reach) + 1
    return reach if reach == len(text) or not line else line


def _tag(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    length = 8
    while digest[:length] in text and length < len(digest):
        length += 1
    return digest[:length]

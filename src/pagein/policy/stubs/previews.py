"""Previews: a big output enters the window as head, tail and an id from its first send on, never whole.

Only outputs of successful calls that are not reads of files. A preview shows the text's own words: its head, its tail,
and between them lines that report a problem, each unchanged and in order. A preview is a function of text, id and way of recall:
no clock, no position, so that it is always the same.
"""

import re
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final

from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.stubs.match_texts import shows_matches
from pagein.policy.stubs.recall_ways import Way
from pagein.policy.stubs.result_stubs import description, one_line

# Words by which test runs, compilers and logs report a problem. No quantifiers: linear in the text.
_TELLING: Final = re.compile(
    r"(?i)\b(?:error|errors|failed|failure|failures|fatal|panic|exception|traceback|warning)\b"
)
_TELLING_LINES: Final = 12
_TELLING_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class Previews:
    """Settings of previews.

    chars: minimum length of an output to enter as a preview, in characters; 0: never.
    shown: about how many characters a preview shows: a third at the head, a third at the tail, and up to a third of
        lines that report a problem.
    """

    chars: int = 8000
    shown: int = 3000


@dataclass(frozen=True, slots=True)
class Preview:
    """A text in place of a bigger one.

    head, tail: number of its characters at the beginning and at the end.
    """

    text: str
    head: int
    tail: int


def is_previewed(call: ToolCall, result: ToolResult, settings: Previews) -> bool:
    """Return whether this result enters as a preview."""
    if not settings.chars or len(result.text) < settings.chars or result.is_error or result.images:
        return False
    if _brings_back(call, result):  # a preview of a recalled text would be recalled again, for ever
        return False
    return not any(access.op == "read" for access in call.accesses)


def _brings_back(call: ToolCall, result: ToolResult) -> bool:
    """Return whether a recall tool produced this result, under any name from any host."""
    name = call.name.lower()
    if name == "peek" or name.startswith("rlm_") or "pagein" in name:
        return True
    return shows_matches(result.text)


def preview(object_id: str, tool: str, tokens: int, text: str, settings: Previews, way: Way) -> Preview:
    """Return the preview of a wholly stored text with this id.

    way: how the model recalls.
    """
    part = settings.shown // 3
    head = _head(text, part)
    tail = _head(text[::-1], part) if len(text) > head else 0
    middle = text[head : len(text) - tail]
    first = text.count("\n", 0, head) + 1
    telling = _trouble_lines(middle, first, part)
    notice = (
        f"[pagein: {object_id} | {one_line(tool) or 'tool'} | {tokens:,} tokens | {description(text)}]\n"
        f"[{len(middle):,} characters in the middle are kept and not shown. "
        f"{way.recall_words(object_id, ' them')} {way.part_words(object_id, first)}]"
    )
    begins = text[:head] if not head or text[head - 1] == "\n" else text[:head] + "\n"
    parts = [begins + notice]
    if telling:
        parts.append("\n".join(["[lines of the middle that tell of trouble, by number:]", *telling]))
    parts.append("[the end:]")
    return Preview("\n".join(parts) + "\n" + text[len(text) - tail :], head, tail)


def behind_head(standing: str, object_id: str, text: str) -> int:
    """Return the length of the shown beginning of a text in its preview; 0 for no preview of this text."""
    end = standing.find(f"[pagein: {object_id} | ")
    for head in (end, end - 1):  # a head that ends within a line is followed by an added line feed
        if head > 0 and text.startswith(standing[:head]):
            return head
    return 0


def _head(text: str, most: int) -> int:
    """Return the length of whole lines from the beginning, at most `most`; of a longer first line, a part."""
    cut = text.rfind("\n", 0, most) + 1
    return cut if cut > most // 2 else min(most, len(text))


def _trouble_lines(middle: str, first: int, most: int) -> list[str]:
    """Return lines with signs of a problem, with numbers, up to `most` characters.

    first: number of the line in which `middle` begins.
    """
    numbered = enumerate(middle.split("\n"), start=first)
    found = (f"{number}: {line.strip()[:_TELLING_CHARS]}" for number, line in numbered if _TELLING.search(line))
    lines = list(islice(found, _TELLING_LINES))
    room = accumulate(len(line) + 1 for line in lines)
    return [line for line, chars in zip(lines, room, strict=True) if chars <= most]

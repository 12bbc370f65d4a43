"""Histories of one file that a careful reader follows, through the policy alone."""

import random

from tests.policy.reads.careful_reader import CarefulReader

from pagein.policy.reads.read_request import DEFAULTS, ReadingSettings
from pagein.testing.read_script import ReadScript

FILE = "f"


class Script:
    """A session of which every answer is put before the reader at once."""

    def __init__(self, text: str, settings: ReadingSettings = DEFAULTS) -> None:
        self.script = ReadScript(settings).changes(FILE, text)
        self.reader = CarefulReader()

    @property
    def text(self) -> str:
        return self.script.files[FILE]

    def forks(self) -> "Script":
        other = Script(self.text)
        other.script, other.reader = self.script.forks(), self.reader.copy()
        return other

    def changes(self, text: str) -> None:
        self.script.changes(FILE, text)

    def reads(self, first: int | None = None, count: int | None = None) -> str:
        answer = self.script.reads(FILE, first, count)
        baseline = self.script.baselines[-1]
        if baseline.shown > 0:
            answered(self.reader, answer.text, baseline.notice, first, count, self.text)
        assert self.script.objections() == (), (answer.text, self.script.objections())
        return answer.text

    def edits(self, old: str, new: str, *, seen_before: bool = True) -> None:
        before = self.text
        assert before.count(old) == 1
        self.script.edits(FILE, old, new, seen_before=seen_before)
        self.reader.edited(old, new, before)

    def writes(self, text: str) -> None:
        self.script.writes(FILE, text)
        self.reader.wrote(text)

    def refreshes(self, first: int, last: int) -> None:
        self.script.refreshes(FILE, first, last)

    def compacts(self) -> None:
        self.script.compacts()
        self.reader.forgot()


def answered(reader: CarefulReader, answer: str, notice: str, first: int | None, count: int | None, text: str) -> None:
    """What the reader makes of an answer in the host's own form."""
    truth = text.split("\n")
    start = first or 1
    last = len(truth) if count is None else min(start + count - 1, len(truth))
    core = answer.removesuffix(notice) if notice else answer
    rows = core.split("\n")
    if len(rows) > 1 and rows[1].startswith("--- a/"):
        rows = rows[:-1]  # a diff ends its last line
    reader.answered(rows, start, last, truth)


def changed(draw: random.Random, text: str) -> str:
    """A text as somebody else leaves it: some lines inserted, deleted, replaced, moved, or cut off."""
    lines = text.split("\n")
    for _ in range(draw.randrange(1, 3)):
        at, size = draw.randrange(len(lines) + 1), draw.randrange(1, 9)
        match draw.randrange(6):
            case 0 | 1:
                lines[at:at] = fresh(draw, size)
            case 2:
                del lines[at : at + size]
            case 3:
                lines[at : at + size] = fresh(draw, size)
            case 4:
                block = lines[at : at + 3 * size]
                del lines[at : at + 3 * size]
                to = draw.randrange(len(lines) + 1)
                lines[to:to] = block
            case _:
                lines = lines[: max(3, len(lines) - size)]
    return "\n".join(lines)


def fresh(draw: random.Random, size: int) -> list[str]:
    """Lines, some of which stand elsewhere too."""
    return [
        draw.choice(["", "}", "    return", f"line {draw.randrange(60)} lorem ipsum dolor"])
        if draw.random() < 0.3
        else f"line {draw.randrange(10**6)} lorem ipsum dolor"
        for _ in range(size)
    ]


def part_of(draw: random.Random, text: str) -> tuple[str, str] | None:
    """An edit that a tool would take: a text that stands once in the file, and what comes in its place."""
    lines = text.split("\n")
    at, size = draw.randrange(len(lines)), draw.randrange(1, 8)
    old = "\n".join(lines[at : at + size])
    if draw.random() < 0.3:
        old = old[draw.randrange(len(old) + 1) :]
    if not old.strip() or text.count(old) != 1:
        return None
    kept = old.split("\n")
    match draw.randrange(3):
        case 0:
            new = [*kept[:1], *fresh(draw, draw.randrange(1, 12)), *kept[1:]]
        case 1:
            new = fresh(draw, draw.randrange(1, 9))
        case _:
            new = kept[:1]
    return old, "\n".join(new)

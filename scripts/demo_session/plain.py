"""Make real tool output the same on every run and every machine, without local paths, durations, addresses and patch versions."""

import re
from collections.abc import Callable
from dataclasses import dataclass

_TESTS = re.compile(r"(\d+) (?:passed|failed|errors?)\b")
_SECONDS = re.compile(r"\bin \d+\.\d\ds(?: \(\d:\d\d:\d\d\))?")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
_PYTHON = re.compile(r"\bPython 3\.(\d+)\.\d+")
_BAR = re.compile(r"^=+ (.*\bin \d+\.\d\ds.*?) =+$")
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Plain:
    """Replaces `paths` (longest first), then whatever else differs between two runs."""

    paths: tuple[tuple[str, str], ...]

    def __call__(self, text: str) -> str:
        for real, shown in self.paths:
            text = text.replace(real, shown)
        text = _PYTHON.sub(r"Python 3.\1", text)
        text = _ADDRESS.sub(_numbered(), text)
        return "\n".join(_steady(line) for line in text.split("\n"))


def _numbered() -> Callable[[re.Match[str]], str]:
    """Addresses become ordinals, so that equal ones stay equal within one output."""
    seen: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"0x7f00000{len(seen):05x}")

    return name


def _steady(line: str) -> str:
    """A pytest summary with a duration derived from its test count, its rule drawn to the same width."""
    if not _SECONDS.search(line):
        return line
    tests = sum(int(count) for count in _TESTS.findall(line))
    line = _SECONDS.sub(f"in {0.08 + tests * 0.0021:.2f}s", line)
    bar = _BAR.match(line)
    return f" {bar[1]} ".center(_WIDTH, "=") if bar else line

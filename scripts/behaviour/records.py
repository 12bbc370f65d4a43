"""Records of behaviour: named observations in order, and the comparison with such a record.

A record is a text file, `sha256 name` a line. Beside it `FILE.bytes` has the bytes themselves, each item as its difference from the one
before it, so that a comparison can show what was there.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

_HEAD: Final = "# pagein behaviour: "
_AROUND: Final = 240


class Witness(Protocol):
    """Sees what happens."""

    def see(self, name: str, data: bytes) -> None:
        """An item. No name comes twice; the part in front of the first slash is its section."""
        ...


@dataclass
class Recording:
    """Writes a record."""

    file: Path
    head: dict[str, str]
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._lines = [_HEAD + json.dumps(self.head, sort_keys=True)]
        self._bytes = gzip.GzipFile(beside(self.file, "bytes"), "wb", compresslevel=6, mtime=0)
        self._before = b""

    def see(self, name: str, data: bytes) -> None:
        """Write it down."""
        self.counts[section_of(name)] += 1
        self._lines.append(f"{sha256(data).hexdigest()} {name}")
        front, back = _shared(self._before, data)
        middle = data[front : len(data) - back]
        frame = {"name": name, "front": front, "back": back, "size": len(middle)}
        self._bytes.write(json.dumps(frame).encode() + b"\n" + middle + b"\n")
        self._before = data

    def close(self) -> None:
        """All was seen."""
        self._bytes.close()
        self.file.write_text("\n".join(self._lines) + "\n", encoding="utf-8")


@dataclass
class Comparison:
    """Compares with a record. same, other: items of each section."""

    file: Path
    sections: frozenset[str]
    same: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        head, *lines = self.file.read_text(encoding="utf-8").splitlines()
        self.head: dict[str, str] = json.loads(head.removeprefix(_HEAD))
        split = (line.split(" ", 1) for line in lines)
        self._left = {name: digest for digest, name in split if section_of(name) in self.sections}

    def see(self, name: str, data: bytes) -> None:
        """Compare it. The first difference is shown at once."""
        section = section_of(name)
        recorded = self._left.pop(name, None)
        if recorded == sha256(data).hexdigest():
            self.same[section] += 1
            return
        self.other[section] += 1
        if self.other.total() == 1:
            self._show(name, data, is_known=recorded is not None)

    def close(self) -> bool:
        """All was seen. Whether all is as it was."""
        for name in self._left:
            self.other[section_of(name)] += 1
            if self.other.total() == 1:
                say(f"FIRST DIFFERENCE: {name}\n  was recorded, and is not there any more")
        return not self.other

    def _show(self, name: str, data: bytes, *, is_known: bool) -> None:
        say(f"FIRST DIFFERENCE: {name}")
        before = next((was for known, was in items_of(self.file) if known == name), None) if is_known else None
        if not is_known:
            say(f"  was not recorded; now: {_excerpt(data, 0)}")
        elif before is None:
            say("  its digest differs (the recorded bytes are not at hand)")
        else:
            at, _ = _shared(before, data)
            say(f"  at byte {at} of {len(before)} before, {len(data)} now")
            say(f"  before: {_excerpt(before, at)}")
            say(f"  now:    {_excerpt(data, at)}")


def say(words: str) -> None:
    """Tell whoever looks on, at once."""
    print(words, flush=True)


def section_of(name: str) -> str:
    """The section that an item belongs to."""
    return name.split("/", 1)[0]


def beside(file: Path, what: str) -> Path:
    """A file that belongs to a record."""
    return file.with_name(f"{file.name}.{what}")


def items_of(file: Path) -> Iterator[tuple[str, bytes]]:
    """The items of a record, with their bytes; nothing where these are not at hand."""
    path = beside(file, "bytes")
    if not path.is_file():
        return
    data = b""
    with gzip.open(path, "rb") as stream:
        while line := stream.readline():
            frame = json.loads(line)
            middle = stream.read(frame["size"])
            stream.read(1)
            data = data[: frame["front"]] + middle + data[len(data) - frame["back"] :]
            yield frame["name"], data


def _excerpt(data: bytes, at: int) -> str:
    start = max(0, at - _AROUND)
    text = data[start:at].decode("utf-8", "replace") + ">>>" + data[at : at + _AROUND].decode("utf-8", "replace")
    return repr(text)


def _shared(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes these have in common at their beginnings, and behind those at their ends."""
    most = min(len(one), len(other))
    front = _longest(most, lambda size: one[:size] == other[:size])
    back = _longest(most - front, lambda size: one[len(one) - size :] == other[len(other) - size :])
    return front, back


def _longest(most: int, holds: "Holds") -> int:
    """The largest size up to `most` for which it holds; it holds for all sizes below that."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


class Holds(Protocol):
    """Asks whether a size is one."""

    def __call__(self, size: int, /) -> bool:
        """Whether it is."""
        ...


def lines(rows: list[object]) -> bytes:
    """Plain values as JSON lines."""
    return b"".join(json.dumps(row, sort_keys=True, default=str).encode() + b"\n" for row in rows)

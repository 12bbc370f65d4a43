"""Objects with versions: the cost of a write, the size of a version, and the speed of reading content and metadata."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles

from pagein.model.writes import Query, Write
from pagein.ports import ObjectStore
from pagein.store.sql.packed_bytes import pack
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_store import a_file, object_number

VERSIONS = 10_000
OBJECTS = 100
SIZE = 4_000
EDITED = 30_000


def measure() -> dict[str, float]:
    """Times in milliseconds, sizes as ratios to one version compressed alone."""
    with tempfile.TemporaryDirectory() as folder:
        grown = SqliteStore(Path(folder) / "grown.pagein")
        edited = SqliteStore(Path(folder) / "edited.pagein")
        figures = {**_appending(grown), **_asking(grown), **_editing(edited)}
        grown.close()
        edited.close()
    return figures


def _appending(store: ObjectStore) -> dict[str, float]:
    texts = [_lines(number, SIZE) for number in range(OBJECTS)]
    took = []
    for number in range(VERSIONS):
        which = number % OBJECTS
        _edit(texts[which], number)
        write = Write(f"{number}", a_file(which, "\n".join(texts[which])), float(number), number // OBJECTS)
        began = time.perf_counter()
        store.write(write)
        took.append(1e3 * (time.perf_counter() - began))
    cuts = quantiles(took, n=100)
    return {
        f"{VERSIONS} versions of 4 KB, s": sum(took) / 1e3,
        "write, p50 ms": cuts[49],
        "write, p99 ms": cuts[98],
    }


def _asking(store: ObjectStore) -> dict[str, float]:
    last = store.history(object_number(1))[-1]
    return {
        "content of the 100th version, ms": _best(lambda: store.content(last)),
        "all newest versions, ms": _best(lambda: store.objects(Query())),
        "one by its path, ms": _best(lambda: store.objects(Query(where={"path": "/folder/1.txt"}))),
        "as of a time, ms": _best(lambda: store.as_of(last.id, VERSIONS / 2)),
    }


def _editing(store: SqliteStore) -> dict[str, float]:
    lines = _lines("edited", EDITED)
    for number in range(100):
        _edit(lines, number)
        store.write(Write(f"edit {number}", a_file(1, "\n".join(lines)), float(number)))
    _, taken = store.figures()
    return {"100 versions of an edited file / one of them": taken / len(pack("\n".join(lines).encode())[1])}


def _edit(lines: list[str], number: int) -> None:
    lines[number * 7 % len(lines)] = " ".join(_words(("edit", number), 6))


def _lines(seed: object, size: int) -> list[str]:
    words = list(_words(seed, 300))
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        place = len(lines)
        lines.append(" ".join(words[place * step % len(words)] for step in range(1, 9)))
    return lines


def _words(seed: object, count: int) -> Iterator[str]:
    for place in range(count):
        digest = hashlib.sha256(f"{seed} {place}".encode()).hexdigest()
        yield digest[: 3 + int(digest[-1], 16) % 7]


def _best(work: Callable[[], object], rounds: int = 20) -> float:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        took.append(1e3 * (time.perf_counter() - began))
    return min(took)

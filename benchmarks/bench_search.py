"""Search in a store of 100 MB: selective, common and exhaustive patterns, beside ripgrep over the same text as plain files.

The text is the Python files of this machine, each under a first line of its own, again and again until there is enough.
"""

import contextlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pagein.archive import Archive, archive_of
from pagein.model.search_query import Search
from pagein.model.versions import Draft
from pagein.model.writes import Query, Write
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

MEGABYTES = float(os.environ.get("PAGEIN_BENCH_MB", "100"))
ROUNDS = 5
LITERALS = ("asyncio.create_task", "no such text anywhere")
COMMON = (("return", False), (r"\breturn\b", True))
EXHAUSTIVE = (
    r"[A-Z]{3}_[0-9]{2,}[a-z]",
    r"[\w.+-]+@[\w-]+\.[\w.-]+",
    r"class \w+Error\(Exception\)",
    r"def \w+_test\w*\(self",
)


def measure() -> dict[str, float]:
    """Milliseconds (the best of a few), and ratios to ripgrep in the same run."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        figures = {}
        texts = list(_texts())
        figures["megabytes of text"] = sum(map(len, texts)) / 1e6
        figures["contents"] = float(len(texts))
        store = SqliteUpkeep(folder / "store.pagein")
        stack.callback(store.close)
        figures["store, MB/s written"] = figures["megabytes of text"] / _once(lambda: _fill(store, texts))
        archive = stack.enter_context(archive_of(store))
        figures["index, MB/s built"] = figures["megabytes of text"] / _once(lambda: _build(archive))
        sizes = {path.suffix: path.stat().st_size for path in folder.iterdir()}
        figures["index, part of the text"] = sizes[".pagein-search"] / 1e6 / figures["megabytes of text"]
        figures |= _pages(archive)
        figures |= _metadata(store)
        files = _files(folder / "files", texts)
        if ripgrep() is not None:
            figures |= _beside_ripgrep(archive, files)
        return figures


def _pages(archive: Archive) -> dict[str, float]:
    figures = {}
    for literal in LITERALS:
        figures[f"all of literal {literal!r}, ms"] = _best(partial(_all, archive, Search(pattern=literal)))
    for pattern, regex in COMMON:
        figures[f"first page of {pattern!r}, ms"] = _best(partial(archive.search, Search(pattern=pattern, regex=regex)))
    return figures


def _metadata(store: SqliteUpkeep) -> dict[str, float]:
    listing = Query(types=frozenset({"toolcall"}), limit=1000)
    return {"metadata of 1000 objects, ms": _best(lambda: store.objects(listing))}


def _beside_ripgrep(archive: Archive, files: Path) -> dict[str, float]:
    figures = {}
    for pattern in EXHAUSTIVE:
        asked = Search(pattern=pattern, regex=True, versions="all", limit=10_000, fields=frozenset({"content"}))
        grepped = partial(_grepped, files, pattern)
        grepped()  # from now on the files are warm
        ours, theirs = _interleaved(partial(_all, archive, asked), grepped)
        figures[f"all of {pattern!r}, ms"] = ours[0]
        figures[f"all of {pattern!r}, ratio to a warm ripgrep"] = ours[0] / theirs[0]
        figures[f"all of {pattern!r}, the same in processor time"] = ours[1] / theirs[1]
    return figures


def ripgrep() -> str | None:
    """The program, installed first where it is missing and this machine lets us."""
    if shutil.which("rg") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "ripgrep"]):
            subprocess.run(command, check=False, capture_output=True)
    return shutil.which("rg")


def _grepped(files: Path, pattern: str) -> int:
    command = [shutil.which("rg") or "rg", "--no-heading", "-n", "--no-ignore", "-e", pattern, str(files)]
    return len(subprocess.run(command, check=False, capture_output=True).stdout)


def _texts() -> Iterator[bytes]:
    places = {sysconfig.get_path(name) for name in ("stdlib", "purelib")}
    files = sorted(path for place in places for path in Path(place).rglob("*.py") if path.stat().st_size > 0)
    size, turn = 0, 0
    while size < MEGABYTES * 1e6:
        for path in files:
            text = f"# copy {turn} of {path.name}\n".encode() + path.read_bytes().replace(b"\0", b" ")
            size += len(text)
            yield text
            if size >= MEGABYTES * 1e6:
                return
        turn += 1


def _fill(store: SqliteUpkeep, texts: list[bytes]) -> None:
    with store.exclusive():
        for number, text in enumerate(texts):
            draft = Draft(
                id=f"toolu_{number}",
                type="toolcall",
                content=text.decode("utf-8", "replace"),
                metadata={"tool": "read", "args": {"path": f"src/module_{number}.py"}, "status": "ok"},
            )
            store.write(Write(f"r{number}", draft, 1.7e9 + number))


def _build(archive: Archive) -> None:
    archive.index.catch_up()


def _files(folder: Path, texts: list[bytes]) -> Path:
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.py").write_bytes(text)
    return folder


def _all(archive: Archive, asked: Search) -> int:
    """How many hits all pages have."""
    after, count = None, 0
    while True:
        results = archive.search(replace(asked, after=after))
        count += len(results.hits)
        after = results.next
        if after is None:
            return count


def _once(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _best(act: Callable[[], object], rounds: int = ROUNDS) -> float:
    return min(_once(act) for _ in range(rounds)) * 1000


def _interleaved(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Milliseconds on the clock and of processors, the best of each, turn by turn: a busy machine is as busy for both."""
    rounds = [(_timed(ours), _timed(theirs)) for _ in range(3)]
    return (
        [min(one[side] for one, _ in rounds) for side in (0, 1)],
        [min(other[side] for _, other in rounds) for side in (0, 1)],
    )


def _timed(act: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds on the clock, and of processors in this process and its children."""
    began, used = time.perf_counter(), sum(os.times()[:4])
    act()
    return (time.perf_counter() - began) * 1000, (sum(os.times()[:4]) - used) * 1000

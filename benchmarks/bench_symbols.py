"""The symbols of a tree of 5,000 files, beside plain tree-sitter parses of the same files on as many processes.

The files are Python's own library, over and over, each with a comment of its own, so that no two have the same content.
`PAGEIN_SYMBOL_TREE` names another folder to measure, which is only read.
"""

import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from itertools import cycle
from pathlib import Path

from pagein.workspace.symbols.languages import language_of
from pagein.workspace.symbols.symbol_index import SymbolIndex
from pagein.workspace.symbols.symbol_reader import SymbolReader

FILES = 5_000
JOBS = os.cpu_count() or 1
LARGEST = 200_000
PLAIN = """
import sys
from pagein.workspace.symbols.grammars import load_grammar
from pagein.workspace.symbols.languages import language_of
for path in sys.stdin.read().split("\\0"):
    with open(path, "rb") as file:
        load_grammar(language_of(path).name).parser.parse(file.read())
"""


def measure() -> dict[str, float]:
    given = os.environ.get("PAGEIN_SYMBOL_TREE")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(given) if given else fill(Path(place))
        files = [path for path in sorted(folder.rglob("*")) if language_of(path.name) is not None and path.is_file()]
        used = cpu_seconds()
        plain = seconds_of_plain(files)
        plain_cpu = cpu_seconds() - used
        with SymbolIndex(str(folder), jobs=JOBS) as index:
            before, start = peak(), time.perf_counter()
            scan = index.refresh()
            cold = time.perf_counter() - start
            index.close()  # the processor time of a child is known once it has ended
            cold_cpu = cpu_seconds() - used - plain_cpu
            after_first = peak()
            start = time.perf_counter()
            again = index.refresh()
            warm = time.perf_counter() - start
            edits = [] if given else [edit(index, files[number]) for number in range(100)]
            after_edits = peak()
            reader = SymbolReader(index)
            start = time.perf_counter()
            reader.map("parse the header of a request", characters=4_000)
            first_map = time.perf_counter() - start
            start = time.perf_counter()
            reader.map("open a socket", characters=4_000)
            next_map = time.perf_counter() - start
            definitions = sum(len(one.definitions) for one in index.state.files.values())
            return {
                "files": float(scan.files),
                "megabytes": sum(path.stat().st_size for path in files) / 1e6,
                "definitions": float(definitions),
                "plain parses, seconds": plain,
                "cold map, seconds": cold,
                "cold map / plain parses": cold / plain,
                "cold map / plain parses, processor time": cold_cpu / plain_cpu,
                "second look, seconds": warm,
                "files parsed by the second look": float(again.parsed),
                "look after one edit, milliseconds": 1e3 * sorted(one[1] for one in edits)[50] if edits else 0.0,
                "files parsed after one edit": float(max(one[0] for one in edits)) if edits else 0.0,
                "first ranked map, seconds": first_map,
                "next ranked map, seconds": next_map,
                "memory of the cold map, megabytes": after_first - before,
                "memory that a second look and 100 edits add, megabytes": after_edits - after_first,
                "memory that ranked maps add, megabytes": peak() - after_edits,
                "largest worker, megabytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
            }


def fill(folder: Path) -> Path:
    """Write the tree, and return its folder."""
    library = [
        path for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")) if "site-packages" not in path.parts
    ]
    sources = [path.read_bytes() for path in library if path.stat().st_size < LARGEST]
    for number, content in zip(range(FILES), cycle(sources), strict=False):
        path = folder / f"part{number // 100}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content + f"\n# {number}\n".encode())
    return folder


def seconds_of_plain(files: list[Path]) -> float:
    """Return the seconds of parsing every file once, without anything else."""
    start = time.perf_counter()
    workers = [subprocess.Popen([sys.executable, "-c", PLAIN], stdin=subprocess.PIPE) for _ in range(JOBS)]
    for number, worker in enumerate(workers):
        if worker.stdin is not None:
            worker.stdin.write("\0".join(map(str, files[number::JOBS])).encode())
            worker.stdin.close()
    if any(worker.wait() for worker in workers):
        raise RuntimeError("a plain parse failed")
    return time.perf_counter() - start


def edit(index: SymbolIndex, path: Path) -> tuple[int, float]:
    """Change a file; return how many files the index then parses, and the seconds of that."""
    path.write_bytes(path.read_bytes() + b"\ndef added(): pass\n")
    start = time.perf_counter()
    parsed = index.update([str(path)]).parsed
    return parsed, time.perf_counter() - start


def cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in uses)


def peak() -> float:
    """Return the most memory that this process had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

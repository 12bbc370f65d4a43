"""A cold search over a store of many messages: `pagein search` as a whole process, its time and its peak of memory.

PAGEIN_BENCH_MESSAGES    how many messages the store has; 20,000 if not set
PAGEIN_BENCH_STORE       the store's file, made where it is missing and kept; a temporary one if not set

The messages are sessions of turns: words of the user, answers, calls and results, as objects in versions. The words are lines of the Python
files of this machine, each with a word and a number of its own, so that no text occurs twice.
"""

import contextlib
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pagein.archive import archive_of
from pagein.model.chats import page_name
from pagein.model.identifiers import uuid7
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import NO_FIELDS
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Write, Written
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

MESSAGES = int(os.environ.get("PAGEIN_BENCH_MESSAGES", "20000"))
STORE = os.environ.get("PAGEIN_BENCH_STORE")
TURNS = 5
CALLS = 9
"""Calls of a turn. Each is two messages, an answer and a result; with the user's words and the last answer a turn has 20."""
EVERY = 16
"""Steps after which a chat gets a version."""
FIFTH, TENTH = "connection refused", "permission denied"
NOWHERE = ("import the results of selfish classes", "qqzxv jkwqz")
"""Literals that are in no message: of trigrams that most messages have, and of such that none has."""
ASKED = (
    ("0 %", (NOWHERE[0],)),
    ("0 %", (NOWHERE[1],)),
    ("20 %", (FIFTH,)),
    ("10 %", (TENTH,)),
    ("20 %, none of the user", (FIFTH, "--type", "user")),
    ("words of the user", ("import", "--type", "user")),
)
ROUNDS = 3
_SEARCH = """
import atexit, pathlib, runpy, sys
atexit.register(lambda: sys.stderr.write(pathlib.Path("/proc/self/status").read_text()))
sys.argv[1:1] = ["search"]
runpy.run_module("pagein", run_name="__main__", alter_sys=True)
"""
"""Tells its peak of memory itself: that of `wait4` is the peak of this process, if that is higher."""
_AT_ONCE = 20
"""Sessions of one transaction."""


def measure() -> dict[str, float]:
    """Seconds and megabytes of whole processes, the best time and the highest peak of a few."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(STORE) if STORE else Path(folder) / "store.pagein"
        figures = {} if path.exists() else make_store(path, MESSAGES)
        figures["messages"] = float(MESSAGES)
        figures["store, MB"] = path.stat().st_size / 1e6
        figures["index, MB"] = path.with_name(path.name + "-search").stat().st_size / 1e6
        for share, asked in ASKED:
            runs = zip(*(run(path, asked) for _ in range(ROUNDS)), strict=True)
            seconds, processor, megabytes, hits = runs
            name = f"first page of {' '.join(asked)!r} ({share})"
            figures |= {f"{name}, s": min(seconds), f"{name}, processor s": min(processor)}
            figures |= {f"{name}, MB": max(megabytes), f"{name}, lines": float(max(hits))}
        return figures


def run(store: Path, asked: tuple[str, ...]) -> tuple[float, float, float, int]:
    """Seconds until the last hit is printed, processor seconds, peak megabytes, and the number of lines printed."""
    command = [sys.executable, "-c", _SEARCH, *asked, "--store", str(store)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = process.stdout.read().splitlines() if process.stdout is not None else []
        seconds = time.perf_counter() - began
        told = process.stderr.read() if process.stderr is not None else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    peak = float(told.rpartition("VmHWM:")[2].split()[0])
    return seconds, used.ru_utime + used.ru_stime, peak / 1024, len(lines)


def make_store(path: Path, messages: int) -> dict[str, float]:
    """Write the sessions, and build the index."""
    began = time.perf_counter()
    words = write_store(path, messages)
    written = time.perf_counter() - began
    return {"text, MB": words.chars / 1e6, "written, s": written, "index built, s": build_index(path)}


def write_store(path: Path, messages: int) -> "_Words":
    """Write the sessions, and compress them as the pauses between calls do."""
    words, sessions = _Words(), max(1, messages // (TURNS * (2 + 2 * CALLS)))
    with contextlib.closing(SqliteUpkeep(path)) as store:
        for first in range(0, sessions, _AT_ONCE):
            with store.exclusive():
                for number in range(first, min(first + _AT_ONCE, sessions)):
                    _Session(store, words, number).write()
            while store.bundle_more(rest=first + _AT_ONCE >= sessions):
                pass
            sys.stderr.write(f"\r{first} of {sessions} sessions")
    return words


def build_index(path: Path) -> float:
    """Build the index, and return how many seconds that took."""
    began = time.perf_counter()
    store = SqliteUpkeep(path)
    with contextlib.closing(store), archive_of(store) as archive:
        archive.index.catch_up()
    return time.perf_counter() - began


class _Words:
    """Texts of messages. Every fifth has one literal, every tenth another."""

    def __init__(self) -> None:
        self._random = random.Random(1)  # noqa: S311 - made texts
        self._lines = list(_lines())
        self.count = self.chars = 0

    def text(self, lines: int) -> str:
        self.count += 1
        chosen = self._random.choices(self._lines, k=lines)
        made = [f"{line} {self._random.getrandbits(24):x}" for line in chosen]
        made[0] += f" {self.count}"
        if self.count % 5 == 0:
            made.append(f"error: {FIFTH} by {self.count}")
        if self.count % 10 == 3:  # noqa: PLR2004 - another tenth
            made.append(f"error: {TENTH} for {self.count}")
        text = "\n".join(made)
        self.chars += len(text)
        return text


def _lines() -> Iterator[str]:
    size = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for line in path.read_text("utf-8", "replace").splitlines():
            if line.strip() and not any(words in line for words in (FIFTH, TENTH)):
                yield line
                size += len(line)
        if size > 8_000_000:  # noqa: PLR2004 - enough to choose from
            return


class _Session:
    """Writes a session's objects."""

    def __init__(self, store: SqliteUpkeep, words: _Words, number: int) -> None:
        self._store, self._words, self._number = store, words, number
        self._name = f"session-{number:08x}"
        self._at = 1.7e9 + number * 3600
        self._made = self._steps = 0
        self._pages: dict[str, ContentHash] = {}
        self._session, self._chat = self._id(), self._id()

    def write(self) -> None:
        chat = Reference(self._chat)
        self._put(self._session, "session", {"session_id": self._name, "harness": "claude-code", "chat_ref": chat})
        for turn in range(1, TURNS + 1):
            self._turn(turn)

    def _turn(self, number: int) -> None:
        words, steps = self._words.text(3), list[object]()
        said: list[object] = [_message("user", words)]
        self._keep(number, said, steps)
        about = {"chat_ref": Reference(self._chat, field=page_name(number, 1)), "turn": number}
        self._put(self._id(), "user", about, words)
        for _ in range(CALLS):
            steps.append({"message": _message("assistant", self._words.text(2))})
            steps.append({"toolcall": self._call({**about, "place": len(steps)})})
            if len(steps) % EVERY == 0:
                self._keep(number, said, steps)
        steps.append({"message": _message("assistant", self._words.text(6))})
        self._keep(number, said, steps)

    def _call(self, about: dict[str, object]) -> dict[str, object]:
        args = {"command": f"python -m pytest tests/test_{self._made}.py", "timeout": self._number}
        metadata = {**about, "tool": "Bash", "args_display": args["command"], "status": "ok"}
        name = f"toolu_{self._number:08x}{self._made:06x}"
        self._put(name, "toolcall", metadata, self._words.text(20), {"args": args})
        return {"call_id": name, "tool": "Bash", "args": args["command"], "status": "ok", "object": Reference(name)}

    def _keep(self, turn: int, said: list[object], steps: list[object]) -> None:
        name = page_name(turn, 1)
        page = {name: [{"said": said, "steps": steps}]}
        metadata = {"session_ref": Reference(self._session), "turn_count": turn}
        carried = {other: kept for other, kept in self._pages.items() if other != name}
        self._pages = dict(self._put(self._chat, "chat", metadata, None, page, carried).additional)

    def _put(
        self,
        name: str,
        type_: str,
        metadata: dict[str, object],
        content: str | None = None,
        additional: Mapping[str, object] = NO_FIELDS,
        carried: Mapping[str, ContentHash] | None = None,
    ) -> Version:
        self._made += 1
        self._at += 1
        draft = Draft(
            id=name, type=type_, content=content, metadata=metadata, additional=additional, carried=carried or {}
        )
        writer = Writer("index", "made", self._name)
        written = self._store.write(Write(f"{self._name} {self._made}", draft, self._at, writer=writer))
        assert isinstance(written, Written)  # noqa: S101 - nobody else writes
        return written.version

    def _id(self) -> str:
        self._made += 1
        return uuid7(int(self._at * 1000), (self._number * 1000 + self._made).to_bytes(10, "big"))


def _message(role: str, text: str) -> dict[str, object]:
    return {"v": 1, "role": role, "blocks": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    for figure, value in measure().items():
        print(f"{figure:70} {value:12.3f}")

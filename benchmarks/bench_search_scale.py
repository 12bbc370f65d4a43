"""A cold search over a store of many messages: `pagein search` as a whole process, its time and its peak of memory.

PAGEIN_BENCH_MESSAGES    how many messages the store has; 20,000 if not set
PAGEIN_BENCH_STORE       the store's file, made where it is missing and kept; a temporary one if not set

The messages are sessions of turns: words of the user, answers, calls and results, as objects in versions. The words are lines of the Python
files of this machine, each with a word and a number of its own, so that no text occurs twice.
"""

import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pagein.archive import archive_of
from pagein.model.chats import PAGE_STEPS, ChatCall, ChatTurn, Step, page_name, turns_to_value
from pagein.model.identifiers import uuid7
from pagein.model.messages import Message, Text
from pagein.model.references import Reference
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
ROUNDS = 3


def measure() -> dict[str, float]:
    """Seconds and megabytes of whole processes, the best time and the highest peak of a few."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(STORE) if STORE else Path(folder) / "store.pagein"
        figures = {} if path.exists() else make_store(path, MESSAGES)
        figures["messages"] = float(MESSAGES)
        figures["store, MB"] = path.stat().st_size / 1e6
        figures["index, MB"] = path.with_name(path.name + "-search").stat().st_size / 1e6
        for share, literal in (("0 %", NOWHERE[0]), ("0 %", NOWHERE[1]), ("20 %", FIFTH), ("10 %", TENTH)):
            seconds, megabytes, hits = zip(*(run(path, literal) for _ in range(ROUNDS)), strict=True)
            name = f"first page of {literal!r} ({share})"
            figures |= {f"{name}, s": min(seconds), f"{name}, MB": max(megabytes), f"{name}, hits": float(max(hits))}
        return figures


def run(store: Path, literal: str) -> tuple[float, float, int]:
    """Seconds until the last hit is printed, peak megabytes, and the number of lines printed."""
    command = [sys.executable, "-m", "pagein", "search", literal, "--store", str(store)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        lines = process.stdout.read().splitlines() if process.stdout is not None else []
        seconds = time.perf_counter() - began
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return seconds, used.ru_maxrss / 1024, len(lines)


def make_store(path: Path, messages: int) -> dict[str, float]:
    """Write the sessions, and build the index."""
    store = SqliteUpkeep(path)
    words = _Words()
    began = time.perf_counter()
    sessions = max(1, messages // (TURNS * (2 + 2 * CALLS)))
    for number in range(sessions):
        with store.exclusive():
            _Session(store, words, number).write()
        if sys.stderr.isatty() and number % 100 == 0:
            sys.stderr.write(f"\r{number} of {sessions} sessions")
    written = time.perf_counter() - began
    with archive_of(store) as archive:
        began = time.perf_counter()
        if archive.builder is not None:
            archive.builder.start()
            archive.builder.wait()
        built = time.perf_counter() - began
    store.close()
    return {"text, MB": words.chars / 1e6, "written, s": written, "index built, s": built}


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
    def __init__(self, store: SqliteUpkeep, words: _Words, number: int) -> None:
        self._store, self._words, self._number = store, words, number
        self._name = f"session-{number:08x}"
        self._at = 1.7e9 + number * 3600
        self._writes = 0
        self._turns: list[ChatTurn] = []
        self._session, self._chat = self._id(), self._id()

    def write(self) -> None:
        metadata = {"session_id": self._name, "harness": "claude-code", "chat_ref": Reference(self._chat), "models": ()}
        self._put(Draft(id=self._session, type="session", metadata=metadata))
        for turn in range(1, TURNS + 1):
            self._turn(turn)

    def _turn(self, number: int) -> None:
        words = self._words.text(3)
        self._turns.append(ChatTurn((Message("user", (Text(words),)),), ()))
        chat = self._keep()
        self._put(
            Draft(id=self._id(), type="user", content=words, metadata={"chat_ref": chat.static(), "turn": number})
        )
        for call in range(CALLS):
            place = 2 * call + 1
            self._step(Message("assistant", (Text(self._words.text(2)),)))
            self._step(self._call(chat, number, place))
        self._step(Message("assistant", (Text(self._words.text(6)),)))
        self._keep()

    def _call(self, chat: Version, turn: int, place: int) -> ChatCall:
        field = page_name(turn, place // PAGE_STEPS + 1)
        args = {"command": f"python -m pytest tests/test_{self._writes}.py", "timeout": self._number}
        metadata = {
            "tool": "Bash",
            "args_display": args["command"],
            "status": "ok",
            "chat_ref": chat.static(field),
            "turn": turn,
            "place": place,
        }
        name = f"toolu_{self._number:08x}{self._writes:06x}"
        made = self._put(
            Draft(id=name, type="toolcall", content=self._words.text(20), metadata=metadata, additional={"args": args})
        )
        return ChatCall(name, "Bash", str(args["command"]), "ok", made.static())

    def _step(self, step: Step) -> None:
        last = self._turns[-1]
        self._turns[-1] = ChatTurn(last.said, (*last.steps, step))
        if len(last.steps) % EVERY == EVERY - 1:
            self._keep()

    def _keep(self) -> Version:
        pages = {page_name(number, 1): turns_to_value([turn]) for number, turn in enumerate(self._turns, start=1)}
        metadata = {"session_ref": Reference(self._session), "turn_count": len(self._turns)}
        return self._put(Draft(id=self._chat, type="chat", metadata=metadata, additional=pages))

    def _put(self, draft: Draft) -> Version:
        self._writes += 1
        self._at += 1
        write = Write(f"{self._name}/{self._writes}", draft, self._at, writer=Writer("index", "made", self._name))
        done = self._store.write(write)
        if not isinstance(done, Written):
            raise TypeError(done.why)
        return done.version

    def _id(self) -> str:
        self._writes += 1
        return uuid7(int(self._at * 1000), (self._number * 1000 + self._writes).to_bytes(10, "big"))


if __name__ == "__main__":
    for figure, value in measure().items():
        print(f"{figure:70} {value:12.3f}")

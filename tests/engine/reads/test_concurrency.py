"""Threads of one turn, processes on one store, and a death at any point: the branch stays consistent."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from pagein.errors import StoreError
from pagein.model.entries import CompactionEntry, Entry, NoteEntry
from pagein.model.messages import Message, Text
from pagein.ports import JournalStore
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.desk import Desk, mode_of, numbered_text


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A fresh Python at work."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own code


def finished(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=300)
    return out


# --- threads ----------------------------------------------------------------------------------------------------


def test_parallel_reads_of_one_turn_show_a_file_once(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(200))
    session = desk.session()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: session.read("a.txt"), range(16)))
    modes = [mode_of(result) for result in results]
    assert sorted(map(str, modes)) == ["full"] + ["unchanged"] * 15


def test_parallel_reads_of_many_files_are_all_known_afterwards(desk: Desk) -> None:
    names = [f"f{n}.txt" for n in range(24)]
    for name in names:
        desk.put(name, numbered_text(60, name))
    session = desk.session()
    with ThreadPoolExecutor(8) as pool:
        assert {mode_of(result) for result in pool.map(session.read, names)} == {"full"}
    assert {mode_of(session.read(name)) for name in names} == {"unchanged"}
    assert {mode_of(desk.session().read(name)) for name in names} == {"unchanged"}
    assert len(session.journal.branch(session.leaf)) == 48


def test_reads_may_come_while_messages_are_appended(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    stop = threading.Event()

    def talk() -> int:
        said = 0
        while not stop.is_set():
            session.append(Message("user", (Text(f"message {said}"),)))
            said += 1
        return said

    with ThreadPoolExecutor(1) as pool:
        talking = pool.submit(talk)
        for _ in range(40):
            mode_of(session.read("a.txt"))
        stop.set()
        said = talking.result()
    branch = session.journal.branch(session.leaf)
    assert len(branch) == said + 40
    assert len([entry for entry in branch if isinstance(entry.body, NoteEntry)]) == 40


def test_different_sessions_of_one_engine_read_at_once(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    engine_session = desk.session("s0")
    engine = desk.engines[-1]
    sessions = [engine_session, *(engine.session(f"s{n}", workspace=desk.folder) for n in range(1, 8))]
    with ThreadPoolExecutor(8) as pool:
        assert {mode_of(result) for result in pool.map(lambda one: one.read("a.txt"), sessions)} == {"full"}


# --- processes --------------------------------------------------------------------------------------------------

READER = """
    import sys, pagein
    store, folder, name, *files = sys.argv[1:]
    with pagein.open(store=store) as engine:
        session = engine.session(name, workspace=folder)
        for file in files:
            result = session.read(file)
            assert result.failure is None, result.failure
            print(result.details["readcache"]["mode"])
"""


def test_processes_on_one_store_do_not_disturb_each_other(desk: Desk) -> None:
    names = [f"f{n}.txt" for n in range(12)]
    for name in names:
        desk.put(name, numbered_text(60, name))
    processes = [run(READER, desk.store, desk.folder, f"s{n}", *names, *names) for n in range(4)]
    for process in processes:
        assert finished(process).split() == ["full"] * 12 + ["unchanged"] * 12
        assert process.returncode == 0
    store = SqliteStore(desk.store)
    assert len(list(store.names())) == 12
    assert all(store.get(name) for name in store.names())
    store.close()


def test_processes_in_one_session_show_each_file_once_between_them(desk: Desk) -> None:
    names = [f"f{n}.txt" for n in range(12)]
    for name in names:
        desk.put(name, numbered_text(60, name))
    processes = [run(READER, desk.store, desk.folder, "shared", *names) for _ in range(3)]
    modes = [mode for process in processes for mode in finished(process).split()]
    assert sorted(modes) == ["full"] * 12 + ["unchanged"] * 24
    session = desk.session("shared")
    assert len(session.journal.branch(session.leaf)) == 36


def test_what_another_process_forgets_is_forgotten_here(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    here, there = desk.session("s"), desk.session("s")
    here.read("a.txt")
    assert mode_of(there.read("a.txt")) == "unchanged"
    there.compact()
    assert mode_of(here.read("a.txt")) == "full"
    there.refresh("a.txt")
    assert mode_of(here.read("a.txt")) == "full"
    assert mode_of(there.read("a.txt")) == "unchanged"


def test_what_another_process_forgets_holds_also_behind_messages_not_kept_yet(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    here, there = desk.session("s"), desk.session("s")
    here.read("a.txt")
    here.append(Message("user", (Text("not kept until the next request"),)))
    there.compact()
    assert mode_of(here.read("a.txt")) == "full"
    # and whoever comes next finds one branch with all of it
    bodies = [entry.body for entry in desk.session("s").journal.branch(desk.session("s").leaf)]
    assert sum(isinstance(body, CompactionEntry) for body in bodies) == 1
    assert len(bodies) == 4


def test_a_session_that_went_back_on_purpose_stays_there(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.put("b.txt", numbered_text(60, "b"))
    here, there = desk.session("s"), desk.session("s")
    here.read("a.txt")
    before = here.leaf
    here.read("b.txt")
    here.move(before)
    there.read("b.txt")
    assert mode_of(here.read("b.txt")) == "full"
    assert mode_of(desk.session("s").read("b.txt")) == "unchanged"


# --- death ------------------------------------------------------------------------------------------------------

DIES_BETWEEN = """
    import os, signal, sys
    from pathlib import Path
    from pagein.engine.engine import Engine
    from pagein.engine.reads.read_resources import Outside
    from pagein.store.sqlite.sqlite_store import SqliteStore
    from pagein.wiring import default_counter
    from pagein.workspace.folder import Folder

    class Dying(SqliteStore):
        def append(self, session, entries):
            if os.environ["DIES"] == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            super().append(session, entries)
            if os.environ["DIES"] == "after":
                os.kill(os.getpid(), signal.SIGKILL)

    store, folder = Dying(Path(sys.argv[1])), sys.argv[2]
    outside = Outside(store, Folder, folder, lambda: 1.0)
    engine = Engine(blobs=store, journals=store, counter=default_counter(), outside=outside)
    engine.session("s").read("a.txt")
    print("not reached")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_death_between_storing_and_journaling_leaves_a_branch_that_claims_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    desk.put("a.txt", numbered_text(60))
    monkeypatch.setenv("DIES", when)
    process = run(DIES_BETWEEN, desk.store, desk.folder)
    assert finished(process) == ""
    assert process.returncode == -signal.SIGKILL
    # blob and entry are one transaction: neither is there
    store = SqliteStore(desk.store)
    assert (list(store.names()), store.leaf("s"), list(store.entries("s"))) == ([], None, [])
    store.close()
    session = desk.session("s")
    assert mode_of(session.read("a.txt")) == "full"
    assert mode_of(session.read("a.txt")) == "unchanged"


ENDLESS = """
    import sys, pagein
    from pathlib import Path
    store, folder = sys.argv[1], Path(sys.argv[2])
    engine = pagein.open(store=store)
    session = engine.session("s", workspace=folder)
    for n in range(10_000):
        (folder / "a.txt").write_text("".join(f"line {i} of version {n if i == n % 200 else 0}\\n" for i in range(200)))
        result = session.read("a.txt")
        print(result.details["readcache"]["mode"], flush=True)
"""


@pytest.mark.parametrize("reads", [1, 7, 30])
def test_a_death_at_any_moment_leaves_a_branch_whose_every_claim_was_answered(desk: Desk, reads: int) -> None:
    desk.put("a.txt", "")
    with run(ENDLESS, desk.store, desk.folder) as process:
        assert process.stdout is not None
        answered = [process.stdout.readline().strip() for _ in range(reads)]
        os.kill(process.pid, signal.SIGKILL)
        answered += process.stdout.read().split()
    store = SqliteStore(desk.store)
    entries = list(store.entries("s"))
    assert all(isinstance(entry, Entry) for entry in entries)
    # at most the one whose answer was on its way
    assert len(entries) - len(answered) in (0, 1)
    assert all(store.get(name) for name in store.names())
    store.close()
    session = desk.session("s")
    assert session.status().malformed == 0
    assert len(session.journal.branch(session.leaf)) == len(entries)
    assert mode_of(session.read("a.txt")) is not None


def test_a_session_whose_process_died_goes_on_in_the_next_one(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    code = READER + '    print("alive", flush=True)\n    import time; time.sleep(60)\n'
    with run(code, desk.store, desk.folder, "s", "a.txt") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "full\n"
        os.kill(process.pid, signal.SIGKILL)
    assert mode_of(desk.session("s").read("a.txt")) == "unchanged"


def test_a_store_that_fails_halfway_through_catching_up_makes_nothing_forgotten_known_again(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    here, there = desk.session("s"), desk.session("s")
    here.read("a.txt")
    there.compact()
    kept = here._log._journals
    assert isinstance(kept, SqliteStore)

    class LosesItsLeaf:
        """The store, but for one question that it cannot answer."""

        def __getattr__(self, name: str) -> object:
            return getattr(kept, name)

        def leaf(self, session: str) -> None:
            raise StoreError("the disk went away")

    here._log._journals = cast("JournalStore", LosesItsLeaf())
    assert here.read("a.txt").failure == "StoreError: the disk went away"
    here._log._journals = kept
    assert mode_of(here.read("a.txt")) == "full"

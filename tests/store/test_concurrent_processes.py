"""Several processes on one store at once: nothing is lost, nothing waits for ever."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Protocol

import pytest

from pagein.model.versions import Version
from pagein.model.writes import Write, WriteRefusal, Written
from pagein.store.postgres.postgres_store import PostgresStore
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store

ROUNDS = 40
PATIENCE = 300
Store = SqliteStore | PostgresStore


class Queue(Protocol):
    def put(self, item: object) -> None: ...
    def get(self, *, timeout: float) -> object: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is: a file, or an address with a schema."""

    path: str | None
    address: str = ""
    schema: str = ""

    def opened(self) -> Store:
        return SqliteStore(Path(self.path)) if self.path is not None else PostgresStore(self.address, self.schema)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, schema: Callable[[], str]) -> Place:
    if request.param == "sqlite":
        return Place(str(tmp_path / "one.pagein"))
    return Place(None, request.getfixturevalue("postgres"), schema())


def spawned(work: Callable[..., None], *arguments: object) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    return process


def ended(*processes: SpawnProcess) -> list[int | None]:
    for process in processes:
        process.join(PATIENCE)
    return [process.exitcode for process in processes]


def count_up(place: Place, who: int) -> None:
    """Count up a file's content, as an optimist: look, write, and look again where somebody was faster."""
    store = place.opened()
    done = 0
    while done < ROUNDS:
        current = store.current(object_number(1))
        assert current is not None
        draft = a_file(1, str(int(store.content(current) or "") + 1))
        outcome = store.write(Write(f"{who} {done} {current.number}", draft, 1.0, current.number))
        done += isinstance(outcome, Written)
    store.close()


def count_up_alone(place: Place, who: int) -> None:
    """Count up a file's content while nobody else writes."""
    store = place.opened()
    for done in range(ROUNDS):
        with store.exclusive():
            current = store.current(object_number(1))
            assert current is not None
            store.write(Write(f"{who} {done}", a_file(1, str(int(store.content(current) or "") + 1)), 1.0))
    store.close()


@pytest.mark.parametrize("work", [count_up, count_up_alone])
def test_no_update_is_lost(place: Place, work: Callable[[Place, int], None]) -> None:
    store = place.opened()
    put(store, a_file(1, "0"))
    assert ended(*(spawned(work, place, who) for who in range(2))) == [0, 0]
    history = store.history(object_number(1))
    assert [store.content(version) for version in history] == [str(number) for number in range(2 * ROUNDS + 1)]
    assert [version.number for version in history] == list(range(1, 2 * ROUNDS + 2))
    store.close()


def write_crosswise(place: Place, who: int) -> None:
    """Write the same things as the other, in the opposite order, many in one transaction."""
    store = place.opened()
    order = range(6) if who else range(5, -1, -1)
    for done in range(ROUNDS):
        store.put_many([f"blob {done} {number}".encode() for number in order])
        with store.exclusive():
            for number in order:
                assert isinstance(
                    store.write(Write(f"{who} {done} {number}", a_file(number, f"{who} {done}"), 1.0)), Written
                )
    store.close()


def test_writers_who_go_crosswise_do_not_lock_each_other_up(place: Place) -> None:
    assert ended(*(spawned(write_crosswise, place, who) for who in range(2))) == [0, 0]
    store = place.opened()
    assert len(store.log()) == 2 * ROUNDS * 6
    batches = [tuple(version.id for version in store.log(start, 6)) for start in range(0, 2 * ROUNDS * 6, 6)]
    assert {frozenset(batch) for batch in batches} == {frozenset(map(object_number, range(6)))}
    store.close()


def send_the_same(place: Place, who: int, answers: Queue) -> None:
    store = place.opened()
    for number in range(ROUNDS):
        outcome = store.write(Write(f"request {number}", a_file(1, f"content {number}"), float(who)))
        assert isinstance(outcome, Written)
        answers.put((number, outcome.version.sequence, outcome.repeated))
    store.close()


def test_a_request_that_two_send_is_carried_out_once(place: Place) -> None:
    answers = multiprocessing.get_context("spawn").Queue()
    processes = [spawned(send_the_same, place, who, answers) for who in range(2)]
    told = [answers.get(timeout=PATIENCE) for _ in range(2 * ROUNDS)]
    assert ended(*processes) == [0, 0]
    assert len({(number, sequence) for number, sequence, _ in told}) == ROUNDS
    assert sum(repeated for _, _, repeated in told) == ROUNDS
    store = place.opened()
    assert len(store.log()) == ROUNDS
    store.close()


def test_a_reader_of_the_log_misses_no_version(place: Place) -> None:
    store = place.opened()
    put(store, a_file(1, "0"))
    processes = [spawned(count_up_alone, place, who) for who in range(2)]
    seen: list[Version] = []
    while len(seen) < 2 * ROUNDS + 1:
        assert all(process.exitcode in (None, 0) for process in processes)
        seen += store.log(seen[-1].sequence if seen else 0)
    assert [version.sequence for version in seen] == list(range(1, 2 * ROUNDS + 2))
    assert ended(*processes) == [0, 0]
    store.close()


def stop_in_the_middle(place: Place, answers: Queue) -> None:
    store = place.opened()
    with store.exclusive():
        put(store, a_file(1, "half"))
        answers.put(os.getpid())
        threading.Event().wait()


def test_a_killed_writer_blocks_no_other_and_leaves_no_trace(place: Place) -> None:
    store = place.opened()
    first = put(store, a_file(1, "whole"))
    answers = multiprocessing.get_context("spawn").Queue()
    process = spawned(stop_in_the_middle, place, answers)
    answers.get(timeout=PATIENCE)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    assert ended(process) == [-signal.SIGKILL]
    assert store.log() == (first,)
    second = put(store, a_file(1, "next"))
    assert (second.number, second.sequence) == (2, 2)
    store.close()


def test_threads_share_a_store(place: Place) -> None:
    store = place.opened()
    problems: list[BaseException] = []

    def work(who: int) -> None:
        try:
            for number in range(ROUNDS):
                outcome = store.write(Write(f"{who} {number}", a_file(who, f"{number}"), 1.0, number))
                assert isinstance(outcome, Written)
                assert store.content(outcome.version) == f"{number}"
        except BaseException as problem:  # noqa: BLE001 -- handed to the test
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.log()) == 4 * ROUNDS
    assert isinstance(store.write(Write("late", a_file(0, "x"), 1.0, 3)), WriteRefusal)
    store.close()

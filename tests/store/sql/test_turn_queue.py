"""Threads of one store wait for each other, and get an error at once when another process blocks all of them."""

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from pagein.errors import StoreError
from pagein.store.sql.turn_queue import TurnLock
from pagein.store.sqlite.sqlite_database import SqliteDatabase

pytestmark = pytest.mark.damages_store

PATIENCE = 0.2


def test_threads_of_one_process_wait_for_each_other_however_long_that_is(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "s.pagein", patience=PATIENCE)
    problems: list[BaseException] = []

    def write() -> None:
        try:
            with database.open_writer():
                time.sleep(PATIENCE / 2)
        except StoreError as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write) for _ in range(8)]
    for one in writers:
        one.start()
    for one in writers:
        one.join(60)
    database.close()
    assert problems == []


def test_a_thread_that_keeps_the_store_longer_than_others_are_patient_is_waited_for(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "s.pagein", patience=PATIENCE)
    done = threading.Event()

    def write() -> None:
        with database.open_writer():
            done.set()

    with database.open_writer():
        other = threading.Thread(target=write)
        other.start()
        time.sleep(3 * PATIENCE)
    other.join(60)
    database.close()
    assert done.is_set()


def test_waiting_threads_fail_together_when_another_process_holds_the_file(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "s.pagein", patience=1)
    with database.open_writer():
        pass
    lock = sqlite3.connect(tmp_path / "s.pagein", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    refused: list[float] = []

    def write() -> None:
        try:
            with database.open_writer():
                pass
        except StoreError:
            refused.append(time.monotonic())

    began = time.monotonic()
    writers = [threading.Thread(target=write) for _ in range(8)]
    for one in writers:
        one.start()
    for one in writers:
        one.join(60)
    lock.execute("ROLLBACK")
    lock.close()
    database.close()
    assert len(refused) == 8
    assert max(refused) - began < 4  # one after the other it were 8


def test_turns_are_given_in_the_order_of_requests() -> None:
    queue, order = TurnLock(), list[int]()
    assert queue.acquire()
    threads: list[threading.Thread] = []

    def take(number: int) -> None:
        assert queue.acquire()
        order.append(number)
        queue.release()

    for number in range(6):
        threads.append(threading.Thread(target=take, args=(number,)))
        threads[-1].start()
        while len(queue._waiting) <= number:
            time.sleep(0.001)
    queue.release()
    for one in threads:
        one.join(60)
    assert order == list(range(6))


@pytest.mark.parametrize("depth", [1, 3])
def test_the_holder_of_a_turn_may_take_the_turn_again(depth: int) -> None:
    queue = TurnLock(0.1)
    for _ in range(depth):
        assert queue.acquire()
    other: list[bool] = []
    thread = threading.Thread(target=lambda: other.append(queue.acquire()))
    thread.start()
    thread.join(60)
    assert other == [False]
    for _ in range(depth):
        queue.release()
    assert queue.acquire()

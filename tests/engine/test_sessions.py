"""The open sessions of a process: bounded, one object per name, and no caller waits for the opening of another session."""

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

import pagein
from pagein.engine.session import Session
from pagein.engine.session_parts import SessionParts
from pagein.engine.sessions import Sessions
from pagein.model.messages import Message, Text

LIMIT = 3


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[SessionParts]:
    with pagein.open(tmp_path / "store.db", workspace=str(tmp_path)) as engine:
        yield engine._parts()


def opened(sessions: Sessions, parts: SessionParts, name: str) -> Session:
    return sessions.get(name, lambda: Session.resume(name, parts))


def test_a_session_that_was_idle_for_longest_is_let_go_and_taken_up_again(parts: SessionParts) -> None:
    sessions = Sessions(keeps=True, most=LIMIT)
    first = opened(sessions, parts, "first")
    first.append(Message("user", (Text("hello"),)))
    first.keep()
    leaf = first.leaf
    del first
    for number in range(LIMIT):
        opened(sessions, parts, f"s{number}")
    gc.collect()
    assert len(sessions) == LIMIT
    assert "first" not in sessions
    assert opened(sessions, parts, "first").leaf == leaf


def test_one_name_is_one_session_as_long_as_anybody_holds_it(parts: SessionParts) -> None:
    sessions = Sessions(keeps=True, most=LIMIT)
    first = opened(sessions, parts, "first")
    for number in range(2 * LIMIT):
        opened(sessions, parts, f"s{number}")
    assert opened(sessions, parts, "first") is first


def test_what_could_not_be_kept_yet_is_not_let_go(parts: SessionParts) -> None:
    sessions = Sessions(keeps=True, most=LIMIT)
    opened(sessions, parts, "first").append(Message("user", (Text("hello"),)))
    for number in range(2 * LIMIT):
        opened(sessions, parts, f"s{number}")
    gc.collect()
    assert "first" in sessions


def test_nobody_waits_for_the_opening_of_another_session(parts: SessionParts) -> None:
    sessions = Sessions(keeps=True)
    begun, go_on = Event(), Event()

    def slow() -> Session:
        begun.set()
        go_on.wait(120)
        return Session("slow", parts)

    found: list[Session] = []
    threads = [Thread(target=lambda: found.append(sessions.get("slow", slow))) for _ in range(2)]
    for one in threads:
        one.start()
    assert begun.wait(120)
    assert opened(sessions, parts, "quick").name == "quick"
    go_on.set()
    for one in threads:
        one.join(120)
    assert len(found) == 2
    assert found[0] is found[1]

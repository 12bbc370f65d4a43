"""A store that fails during a request's turn, or loses the session's journal: nothing of the decision stays, and the session goes on."""

import contextlib
import json
import re
import sqlite3
import time
from pathlib import Path

import pytest
from tests.engine import wire_clients as clients
from tests.engine.test_requests import EAGER, opened, walk, worked

from pagein.engine.engine import Engine, Settings
from pagein.engine.log import snapshots
from pagein.engine.prepared_request import PreparedRequest
from pagein.errors import StoreError
from pagein.memory.indexer import Indexer
from pagein.model.entries import Entry, MessageEntry, bridge
from pagein.policy.stubs.previews import Previews
from pagein.store.upkeep.collection import Retention
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.eager_residency import eager
from pagein.upkeep import check_store, garbage, reindex
from pagein.wiring import layers_of

LARGE = "a line of a large output\n" * 600


def refuse(folder: Path, trigger: str) -> None:
    """Have SQLite refuse a statement, as a failing disk does."""
    with contextlib.closing(sqlite3.connect(folder / "store.db")) as file:
        file.executescript(f"CREATE TRIGGER refusal BEFORE {trigger}; END")


def allow(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "store.db")) as file:
        file.executescript("DROP TRIGGER refusal")


def ask(engine: Engine, turns: int, large: str = "") -> PreparedRequest:
    talk = worked(turns) if not large else worked(1, worked(turns - 1), large)
    return engine.prepare(clients.body(talk, "anthropic"), "anthropic", at=10.0 * turns, hint="one")


def test_a_decision_whose_transaction_was_lost_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    settings = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60, previews=Previews()))
    with opened(tmp_path, settings) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        walk(engine, "anthropic", 4)
        count = len(list(store.paged_objects())) + 1  # the preview is stored, and what leaves after it is not
        refuse(
            tmp_path,
            f"INSERT ON object WHEN (SELECT count(*) FROM object) >= {count} BEGIN SELECT raise(ROLLBACK, 'disk')",  # noqa: S608 -- a number
        )
        assert "StoreError" in (ask(engine, 5, LARGE).failure or "")
        known = [entry.id for entry in engine.session("one").journal]
        assert [one.id for one in store.entries("one") if isinstance(one, Entry)] == known
        allow(tmp_path)
        after = ask(engine, 6, LARGE)
        assert after.failure is None
        shown = clients.results_of(json.loads(after.body), "anthropic").values()
        for name in re.findall(r"pg-[0-9a-f]{8}-[0-9a-f]{8}", "".join(shown)):
            assert engine.recall(name)
        assert check_store(store).findings == []


def test_a_session_goes_on_after_its_backlog_could_not_be_stored(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        walk(engine, "anthropic", 4)
        refuse(tmp_path, "UPDATE ON session BEGIN SELECT raise(ABORT, 'disk')")
        assert all("StoreError" in (ask(engine, turns).failure or "") for turns in (5, 6))
        allow(tmp_path)
        after = ask(engine, 7)
    assert (after.failure, after.placed) == (None, "continued")


def test_a_session_goes_on_after_a_turn_with_a_request_was_taken_back(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        walk(engine, "anthropic", 4)
        with contextlib.suppress(ZeroDivisionError), engine.session("one").turn():
            assert ask(engine, 5).failure is None
            raise ZeroDivisionError
        after = ask(engine, 5)
    assert (after.failure, after.placed) == (None, "continued")


def test_a_session_whose_journal_was_removed_meanwhile_begins_anew(tmp_path: Path) -> None:
    """By `pagein gc` or another gateway, while this one holds the session."""
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        walk(engine, "anthropic", 4)
        store.end_session("one")
        assert garbage(store, Retention(keep=0.0), time.time() + 9, apply=True).sessions
        assert "was removed" in (ask(engine, 5).failure or "")
        assert store.leaf("one") is None
        after = ask(engine, 6)
        assert (after.failure, after.placed) == (None, "new")
        assert ask(engine, 7).placed == "continued"
        assert check_store(store).findings == []
        shown = clients.results_of(json.loads(ask(engine, 8).body), "anthropic").values()
        for name in re.findall(r"pg-[0-9a-f]{8}-[0-9a-f]{8}", "".join(shown)):
            assert engine.recall(name)


@pytest.mark.parametrize("is_open", [True, False])
def test_the_objects_of_a_removed_session_stay_where_its_client_sends_all_of_it_again(
    tmp_path: Path, *, is_open: bool
) -> None:
    with contextlib.ExitStack() as open_, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        engine, indexer = open_.enter_context(opened(tmp_path, EAGER)), Indexer(store)
        walk(engine, "anthropic", 4)
        indexer.save_open_chats(time.time())
        past = {one.id for one in store.log() if one.writer.session == "one"}
        store.end_session("one")
        assert garbage(store, Retention(keep=0.0), time.time() + 9, apply=True).sessions
        if is_open:
            ask(engine, 5)  # finds that the journal is gone
        else:
            open_.close()
            engine, indexer = open_.enter_context(opened(tmp_path, EAGER)), Indexer(store)
        assert ask(engine, 6).placed == "new"
        indexer.save_open_chats(time.time())
        assert ask(engine, 7).placed == "continued"
        indexer.catch_up()
        assert check_store(store).findings == []
        reindex(store, layers_of(store))
        assert check_store(store).findings == []
        assert past
        assert past < {one.id for one in store.log() if one.writer.session == "one"}
        open_.close()


def test_a_journal_that_another_process_began_anew_is_not_gone_on_with(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        walk(engine, "anthropic", 4)
        store.drop_sessions(["one"])
        with opened(tmp_path, EAGER) as other:
            assert ask(other, 2).placed == "new"
        assert "was removed" in (ask(engine, 5).failure or "")
        assert ask(engine, 6).failure is None
        assert check_store(store).findings == []


def test_nothing_is_stored_behind_a_removed_journal_outside_a_turn(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        walk(engine, "anthropic", 4)
        session = engine.session("one")
        session.fork("child")
        store.drop_sessions(["one", "child"])
        session.compact()
        with pytest.raises(StoreError, match="was removed"):
            session.keep()
        body = clients.body(worked(5), "anthropic")
        asked = [engine.prepare(body, "anthropic", at=50.0, hint="child") for _ in range(2)]
        assert "was removed" in (asked[0].failure or "")
        assert (asked[1].failure, asked[1].placed) == (None, "new")
        assert check_store(store).findings == []


def test_a_session_whose_journal_was_removed_cannot_be_forked(tmp_path: Path) -> None:
    """The texts that left its window are gone."""
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        walk(engine, "anthropic", 6)
        store.end_session("one")
        assert garbage(store, Retention(keep=0.0), time.time() + 9, apply=True).objects
        with pytest.raises(StoreError, match="was removed"):
            engine.session("one").fork("child")
        assert engine.session("child").leaf is None


def test_a_state_of_a_removed_journal_is_not_kept_for_the_journal_that_began_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that owes a fact looks at the journal only later."""
    monkeypatch.setattr(snapshots, "EVERY", 1)
    usage = {"usage": {"input_tokens": 9, "output_tokens": 1}}
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        asked = walk(engine, "anthropic", 4)[-1]
        engine.forward(clients.body(worked(4), "anthropic"), "anthropic", at=41.0, hint="one")
        store.drop_sessions(["one"])
        with opened(tmp_path, EAGER) as other:
            ask(other, 2)
        engine.observe(asked, usage)
        with opened(tmp_path, EAGER) as other:
            assert [ask(other, turns).failure for turns in (3, 4)] == [None, None]


@pytest.mark.parametrize("fails", ["the turn around a request", "the store"])
def test_a_message_that_was_put_back_stays_lost_if_its_turn_was_taken_back(tmp_path: Path, fails: str) -> None:
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        walk(engine, "anthropic", 4)
        leaf, news = store.leaf("one"), list(store.news("one"))
        place, lost = [one for one in news if isinstance(one[1], Entry) and isinstance(one[1].body, MessageEntry)][3]
        assert isinstance(lost, Entry)
        store.put_entry("one", place, bridge(lost.id, lost.parent))
        store.stand("one", leaf or "")
    with opened(tmp_path, EAGER) as engine, contextlib.closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        engine.session("one").traffic._index.learn()  # as another request does that goes out without a decision
        if fails == "the store":
            refuse(tmp_path, "UPDATE ON session BEGIN SELECT raise(ABORT, 'disk')")
            assert "StoreError" in (ask(engine, 5).failure or "")
            allow(tmp_path)
        else:
            with contextlib.suppress(ZeroDivisionError), engine.session("one").turn():
                assert ask(engine, 5).failure is None
                raise ZeroDivisionError
        assert [one.kind for one in check_store(store).findings] == ["entry"]
        assert ask(engine, 6).failure is None
        assert check_store(store).findings == []

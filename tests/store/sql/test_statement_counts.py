"""Work counted: how many statements, and how many waits for an answer of the database, one more entry of a journal costs."""

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.memory.journal_stories import SessionStory, tell

from pagein.memory.indexer import Indexer
from pagein.store.sql.sql_rows import Row, Rows
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

_NUMBERS = itertools.count()


class Counts:
    """A database that counts what is asked of it. statements, waits: so far"""

    def __init__(self, database: Any) -> None:  # noqa: ANN401 - either database
        self.statements = self.waits = 0
        self._database = database

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[Rows]:
        with self._database.open_reader() as rows:
            yield CountedRows(self, rows)

    @contextlib.contextmanager
    def open_writer(self) -> Iterator[Rows]:
        with self._database.open_writer() as rows:
            yield CountedRows(self, rows)


class CountedRows:
    def __init__(self, counts: Counts, rows: Rows) -> None:
        self._counts, self._rows = counts, rows

    def execute(self, query: str, values: Sequence[Any] = (), /) -> "CountedAnswers":
        self._counts.statements += 1
        return CountedAnswers(self._counts, self._rows.execute(query, values))


class CountedAnswers:
    def __init__(self, counts: Counts, answers: Any) -> None:  # noqa: ANN401 - either database
        self._counts, self._answers = counts, answers

    def fetchone(self) -> Row | None:
        self._counts.waits += 1
        return self._answers.fetchone()  # type: ignore[no-any-return]

    def fetchall(self) -> list[Row]:
        self._counts.waits += 1
        return self._answers.fetchall()  # type: ignore[no-any-return]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteUpkeep | PostgresUpkeep]:
    opened: SqliteUpkeep | PostgresUpkeep = SqliteUpkeep(tmp_path / "one.pagein")
    if request.param == "postgres":
        opened = PostgresUpkeep(request.getfixturevalue("postgres"), f"counted_{next(_NUMBERS)}")
    with closing(opened):
        yield opened


def test_an_entry_costs_few_statements_whatever_was_stored_before(store: SqliteUpkeep | PostgresUpkeep) -> None:
    store.secret()  # makes the tables
    counts = Counts(store._database)
    store._database = counts  # type: ignore[assignment]
    dice = random.Random(3)  # noqa: S311 - not for secrets
    indexer, costs = Indexer(store), list[tuple[float, float]]()
    told = tell(store, [SessionStory("a", dice)], dice, 120)
    for steps in (40, 80):
        before, last = (counts.statements, counts.waits), store.last_place()
        for _ in itertools.islice(told, steps):
            indexer.catch_up()
        entries = store.last_place() - last
        costs.append(((counts.statements - before[0]) / entries, (counts.waits - before[1]) / entries))
    assert max(statements for statements, _ in costs) < 60, costs
    assert max(waits for _, waits in costs) < 45, costs


def test_nothing_new_costs_next_to_nothing(store: SqliteUpkeep | PostgresUpkeep) -> None:
    """A gateway asks after each request whether there is something to follow."""
    dice = random.Random(3)  # noqa: S311 - not for secrets
    indexer = Indexer(store)
    for _ in tell(store, [SessionStory("a", dice)], dice, 10):
        pass
    indexer.catch_up()
    counts = Counts(store._database)
    store._database = counts  # type: ignore[assignment]
    indexer.catch_up()
    assert counts.statements <= 3

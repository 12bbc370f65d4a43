"""Search in PostgreSQL, on a real server: the answers of the other stores, and an index that is used."""

import itertools
from contextlib import ExitStack
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.search.pattern_texts import patterns, texts
from tests.store.search.searched_stores import Desk, places, scanned

from pagein.archive import archive_of
from pagein.model.search_query import Search
from pagein.policy.recall.patterns import grams_needed
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.search.index_builder import grow
from pagein.store.search.searcher import Searcher
from pagein.store.search.shelves import VersionShelf
from pagein.store.search.sql_shelf import SqlShelf, database_of
from pagein.store.search.trigram_index import TrigramIndex

_NUMBERS = itertools.count()


def desk_at(postgres: str, stack: ExitStack) -> tuple[Desk, TrigramIndex]:
    from pagein.store.postgres.postgres_database import PostgresDatabase
    from pagein.store.search.postgres_index import PostgresIndex
    from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep

    store = PostgresUpkeep(postgres, f"search_{next(_NUMBERS)}")
    stack.callback(store.close)
    database = database_of(store)
    assert isinstance(database, PostgresDatabase)
    index = PostgresIndex(database)
    stack.callback(index.close)
    desk = Desk(store)
    desk.shelf = SqlShelf(store)
    desk.searcher = Searcher([desk.shelf], index)
    return desk, index


@settings(max_examples=25, deadline=None)
@given(
    contents=st.lists(st.tuples(st.integers(0, 3), texts), min_size=1, max_size=6),
    asked=st.lists(patterns, min_size=1, max_size=4),
    upto=st.integers(0, 6),
)
def test_postgres_finds_what_a_scan_of_everything_finds(
    postgres: str, contents: list[tuple[int, str]], asked: list[str], upto: int
) -> None:
    with ExitStack() as stack:
        desk, index = desk_at(postgres, stack)
        twin = Desk(MemoryStore())
        for number, (key, content) in enumerate(contents):
            if number == upto:
                while grow(index, desk.shelf):
                    pass
            for one in (desk, twin):
                one.put(content, key=f"call-{key}", metadata={"note": content[::2]})
        for pattern in asked:
            search = Search(pattern=pattern, regex=True, limit=2)
            for question in (search, replace(search, ignore_case=True, versions="all")):
                assert places(desk.pages(question)) == scanned(twin, question)


def test_the_index_leaves_out_what_cannot_match_and_is_asked_by_its_own_index(postgres: str) -> None:
    with ExitStack() as stack:
        desk, index = desk_at(postgres, stack)
        for number in range(300):
            desk.put(f"text of number {number:03} " + "filling words " * 30)
        while grow(index, desk.shelf):
            pass
        index.tidy(desk.shelf)
        assert desk.find("number 017").looked_into == 1
        assert desk.find(r"number 0(17|23)", regex=True).looked_into == 2
        assert desk.find("no such text").looked_into == 0
        assert len(desk.pages(Search(pattern="filling", limit=100))) == 300
        database = index._database
        with database.open_reader() as rows:
            rows.execute("BEGIN")
            rows.execute("SET LOCAL enable_seqscan = off")
            plan = rows.execute("EXPLAIN SELECT place FROM grams_v WHERE grams @> ?::integer[]", ([1, 2],)).fetchall()
            rows.execute("ROLLBACK")
        assert "grams_v_by_gram" in str(plan)


def test_an_index_of_another_store_is_not_believed(postgres: str) -> None:
    with ExitStack() as stack:
        desk, index = desk_at(postgres, stack)
        desk.put("one")
        while grow(index, desk.shelf):
            pass
        other = Desk(MemoryStore())
        other.put("needle")
        assert index.covered_place(desk.shelf) == 1
        assert index.covered_place(VersionShelf(other.store)) == 0
        index.forget(desk.shelf)
        assert list(index.candidates(desk.shelf, grams_needed("one"), 2)) == [1]


def test_an_archive_on_postgres_has_an_index(postgres: str) -> None:
    from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep

    with ExitStack() as stack:
        store = PostgresUpkeep(postgres, f"search_{next(_NUMBERS)}")
        stack.callback(store.close)
        desk = Desk(store)
        desk.put("needle")
        archive = stack.enter_context(archive_of(store))
        assert archive.index.catch_up().made == 1
        assert archive.search(Search(pattern="no such thing")).looked_into == 0
        assert len(archive.search(Search(pattern="needle")).hits) == 1

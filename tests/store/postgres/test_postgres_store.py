"""Failures of a database server, which no other store has."""

import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

import pagein
from pagein.errors import BadSetting, StoreError
from pagein.model.codec import encode_entry
from pagein.model.entries import Entry, NoteEntry
from pagein.model.messages import Message, Text
from pagein.model.names import ContentHash
from pagein.model.writes import Query
from pagein.store.postgres.postgres_database import PostgresDatabase
from pagein.store.postgres.postgres_schema import STEPS, dialect
from pagein.store.postgres.postgres_store import PostgresStore
from pagein.store.sql.short_names import entry_key
from pagein.store.sql.sql_lookups import key_number
from pagein.store.sql.sqlite_schema import ENTRY_KEY, KEY_NUMBER, MIGRATIONS, TARGET_KEY
from pagein.store.sql.target_keys import target_key
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store


@pytest.fixture
def name(schema: Callable[[], str]) -> str:
    return schema()


@pytest.fixture
def store(postgres: str, name: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres, name)
    yield store
    store.close()


def admin(address: str, query: str, *values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(query.encode(), values)
        return cursor.fetchall() if cursor.description else []


def test_opening_a_store_creates_nothing(postgres: str, name: str) -> None:
    PostgresStore(postgres, name).close()
    assert admin(postgres, "SELECT 1 FROM pg_namespace WHERE nspname = %s", name) == []


def test_schemas_of_one_database_do_not_see_each_other(postgres: str, schema: Callable[[], str]) -> None:
    one, other = PostgresStore(postgres, schema()), PostgresStore(postgres, schema())
    put(one, a_file(1))
    assert other.log() == ()
    assert one.secret() != other.secret()
    one.close()
    other.close()


def test_many_clients_may_be_the_first(postgres: str, name: str) -> None:
    stores = [PostgresStore(postgres, name) for _ in range(6)]
    secrets: list[bytes] = []
    threads = [threading.Thread(target=lambda one=one: secrets.append(one.secret())) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.close()
    assert len(secrets) == 6
    assert len(set(secrets)) == 1


def test_a_store_of_a_newer_pagein_is_refused(postgres: str, name: str, store: PostgresStore) -> None:
    store.put(b"body")
    admin(postgres, f"INSERT INTO {name}.migration VALUES({len(STEPS) + 1}, 'from the future')")
    newer = PostgresStore(postgres, name)
    with pytest.raises(StoreError, match="newer"):
        newer.put(b"more")
    newer.close()


def test_every_table_of_the_file_is_in_the_schema(postgres: str, name: str, store: PostgresStore) -> None:
    store.put(b"body")
    query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s"
    there = {(str(table), str(column)) for table, column in admin(postgres, query, name)}
    connection = sqlite3.connect(":memory:")
    connection.create_function(KEY_NUMBER, 2, key_number)
    connection.create_function(TARGET_KEY, 1, target_key)
    connection.create_function(ENTRY_KEY, 1, entry_key)
    for _, statements in MIGRATIONS:
        for statement in statements:
            connection.execute(statement)
    tables = [table for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    wanted = {(table, column[1]) for table in tables for column in connection.execute(f"PRAGMA table_info({table})")}
    connection.close()
    assert {one for one in wanted if one[0] != "sqlite_sequence"} - there == set()


def test_entries_of_an_older_schema_move_to_short_forms(postgres: str, name: str) -> None:
    step = next(place for place, (title, _) in enumerate(STEPS) if "entries in short forms" in title)
    entries = [Entry(one, None, NoteEntry("n", "{}")) for one in ("ab" * 16, "0123456789abcdef", "x")]
    with closing(PostgresDatabase(postgres, name, STEPS[:step])) as database, database.open_writer() as rows:
        for one in entries:
            values = ("a\\b", one.id, encode_entry(one))
            rows.execute("INSERT INTO entry(session, id, codec, line) VALUES(?, ?, 0, ?)", values)
    with closing(PostgresStore(postgres, name)) as store:
        assert list(store.news("a\\b")) == list(enumerate(entries, start=1))
        assert store.append("a\\b", [Entry("next", "x", NoteEntry("n", "{}"))]) == 4
        assert [store.entry("a\\b", one.id) for one in entries] == entries


def test_words_of_the_other_dialect_are_changed_and_no_others() -> None:
    made = dialect("CREATE TABLE a(number INTEGER PRIMARY KEY, b BLOB, c TEXT UNIQUE, d REAL, e INTEGER CHECK(e = 1))")
    assert made == (
        "CREATE TABLE a(number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, b BYTEA, "
        'c TEXT COLLATE "C" UNIQUE, d DOUBLE PRECISION, e BIGINT CHECK(e = 1))'
    )


def test_a_missing_server_is_a_store_error_at_once() -> None:
    store = PostgresStore("host=/nowhere/at/all user=somebody password=hush")
    began = time.monotonic()
    with pytest.raises(StoreError) as caught:
        store.put(b"body")
    assert time.monotonic() - began < 20  # a pool would try for 30 seconds
    assert "hush" not in str(caught.value)
    store.close()


@pytest.mark.parametrize(
    "address", ["postgresql://user:hush@host:port:port/db?x=1&&", "host=/x password='hush nonsense"]
)
def test_an_invalid_address_is_refused_without_being_printed(address: str) -> None:
    with pytest.raises(BadSetting, match="address") as caught:
        PostgresStore(address)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("wrong", ["", "Big", "a b", 'x"; DROP SCHEMA public; --', "1st", "x" * 64])
def test_an_invalid_schema_name_is_refused(postgres: str, wrong: str) -> None:
    with pytest.raises(BadSetting, match="schema"):
        PostgresStore(postgres, wrong)


def test_a_closed_store_is_a_store_error(store: PostgresStore) -> None:
    store.put(b"body")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.put(b"more")


def test_connections_that_were_cut_are_replaced(postgres: str, store: PostgresStore) -> None:
    first = put(store, a_file(1))
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pagein'"
    admin(postgres, cut)
    assert store.log() == (first,)
    admin(postgres, cut)
    assert put(store, a_file(1, "next")).number == 2


def test_a_connection_that_is_cut_in_a_transaction_is_a_store_error_and_leaves_nothing(
    postgres: str, store: PostgresStore
) -> None:
    first = put(store, a_file(1))
    with pytest.raises(StoreError):
        _write_and_cut(postgres, store)
    assert store.log() == (first,)
    assert put(store, a_file(2)).sequence == 2


def _write_and_cut(postgres: str, store: PostgresStore) -> None:
    with store.exclusive():
        put(store, a_file(1, "half"))
        admin(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pagein'")
        put(store, a_file(2, "half"))


def test_an_error_within_a_write_undoes_only_that_write(postgres: str, name: str, store: PostgresStore) -> None:
    store.put(b"first")
    admin(postgres, f"ALTER TABLE {name}.alone ADD CONSTRAINT small CHECK(length(packed) < 1000)")
    with store.exclusive():
        store.put(b"second")
        with pytest.raises(StoreError, match="small"):
            store.put_many([b"third", b"".join(hashlib.sha256(bytes([one])).digest() for one in range(40))])
    assert store.has(ContentHash.of(b"second"))
    assert not store.has(ContentHash.of(b"third"))


def test_questions_about_metadata_touch_no_content(postgres: str, name: str, store: PostgresStore) -> None:
    put(store, a_file(1, "text"))
    admin(postgres, f"DROP TABLE {name}.blob CASCADE")
    assert len(store.objects(Query(where={"path": "/folder/1.txt"}))) == 1
    assert store.current(object_number(1)) == store.log()[0]
    assert store.backlinks(object_number(1)) == ()


def test_an_engine_opens_on_the_address_of_a_database(postgres: str) -> None:
    host = dict(part.split("=") for part in postgres.split())["host"]
    address = f"postgresql:///postgres?host={host}&user=pagein"
    first, second = pagein.open(address), pagein.open(address)
    first.session("one").append(Message("user", (Text("hello"),)))
    assert [message.role for message in second.session("one").advance().tail] == ["user"]
    first.close()
    second.close()
    with pytest.raises(BadSetting):
        pagein.open("postgresql:///db?nonsense=1")

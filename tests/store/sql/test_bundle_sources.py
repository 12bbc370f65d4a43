"""Bundles compressed against what journals say: every answer as before, whatever happens to the journals."""

import contextlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.entries import Entry, MessageEntry
from pagein.model.json_text import encode_json
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.text_removal import PrivateSpan
from pagein.model.values import canonical, frozen
from pagein.store.sql import bundle_sources, packed_bytes
from pagein.store.sql.bundle_sources import (
    LINES,
    TEXTS,
    BundleSource,
    head_of,
    likely_sources,
    sources_in,
)
from pagein.store.sql.packed_bytes import BUNDLE, DIFFERENCE, SOURCED
from pagein.store.sql.pinned_texts import ShortContents
from pagein.store.sql.sql_bundles import BlobBundle, bundle_of
from pagein.store.sql.sql_lines import LINES as LINE_SEGMENTS
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store
Store = SqliteUpkeep | PostgresUpkeep


@cache
def words(seed: int) -> str:
    """Return words that no other seed gives, and that hardly compress alone."""
    return " ".join(sha256(b"%d %d" % (seed, number)).hexdigest()[:10] for number in range(60))


def said(number: int) -> Entry:
    return Entry(f"e{number}", None, MessageEntry(Message("user", (Text(words(number)),))), at=float(number))


def shown(number: int) -> Entry:
    text = words(number + 500)
    return Entry(f"e{number}", None, MessageEntry(Message("tool", (ToolResult(f"call-{number}", text, "bash"),))))


def pages(numbers: Sequence[int]) -> list[bytes]:
    """Return what objects say of entries: their words, and the texts of their results."""
    return [encode_json({"place": number, "said": words(number), "shown": words(number + 500)}) for number in numbers]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill bundles and segments with fewer bytes, so that few contents show the same."""
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 15)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._PACKED", 1 << 13)
    monkeypatch.setattr("pagein.store.sql.sql_lines.LINES", replace(LINE_SEGMENTS, most=20))


def seal(store: Store) -> None:
    while store.bundle_more():
        pass


def fill(store: Store, sessions: Sequence[str] = ("one", "two")) -> list[bytes]:
    """Journal some entries, compress the journals, then store contents that say the same. Return the contents."""
    for place, session in enumerate(sessions):
        numbers = range(place * 20, place * 20 + 20)
        store.append(session, [one(number + 40 * (one is shown)) for number in numbers for one in (said, shown)])
    seal(store)
    store.set_layer("memory", store.last_place(), "1")
    contents = [page for place in range(len(sessions)) for page in pages(range(place * 20, place * 20 + 20))]
    contents += [page + b" again" for page in contents]
    store.put_many(contents)
    seal(store)
    return contents


def bundles(store: Store) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return the sources of each bundle with sources."""
    with store._database.open_reader() as rows:
        found = rows.execute("SELECT number, data FROM blob WHERE codec = ?", (SOURCED,)).fetchall()
    return {int(number): sources_in(bytes(data)) for number, data in found}


def read(store: Store, contents: Sequence[bytes]) -> bool:
    """Return whether the store gives each of these contents, one by one and in bulk."""
    names = [ContentHash.of(one) for one in contents]
    return [store.get(name) for name in names] == list(contents) == store.load(names)


def test_sources_change_no_answer_and_take_less_room(store: Store) -> None:
    others = [one + b" before" for one in pages(range(40))]
    store.put_many(others)
    seal(store)
    assert bundles(store) == {}  # nothing was followed yet
    before = store.figures()[1]
    contents = fill(store)
    kinds = {kind for named in bundles(store).values() for kind, _ in named}
    assert kinds == {LINES, TEXTS}
    assert read(store, [*contents, *others])
    with store._database.open_reader() as rows:
        size = rows.execute("SELECT sum(length(data)) FROM blob WHERE codec = ?", (SOURCED,)).fetchone()
    assert size is not None
    assert size[0] < 0.6 * before
    assert set(store.names()) == set(store.blob_sizes())
    assert len(set(store.names())) == store.figures()[0]
    assert store.put_many(contents) == tuple(map(ContentHash.of, contents))


def test_a_delta_against_what_is_in_such_a_bundle_is_read(store: Store) -> None:
    contents = fill(store)
    with store._database.open_reader() as rows:
        query = "SELECT member.hash FROM blob AS member JOIN blob AS bundle ON bundle.number = member.base WHERE bundle.codec = ?"
        names = {bytes(name).hex() for (name,) in rows.execute(query, (SOURCED,)).fetchall()}
    base = next(one for one in contents if ContentHash.of(one).hex in names).decode()
    for text in (base, base + " and more"):
        put(store, a_file(1, text))
    with store._database.open_reader() as rows:
        assert rows.execute("SELECT count(*) FROM blob WHERE codec = ?", (DIFFERENCE,)).fetchone() == (1,)
    assert [store.content(one) for one in store.history(object_number(1))] == [base, base + " and more"]
    assert read(store, [*contents, (base + " and more").encode()])


def test_sources_that_do_not_help_are_not_used() -> None:
    sources = [BundleSource(LINES, 1, b"", b"".join(pages(range(20))))]
    made = [bundle_of(ShortContents(dict(enumerate(pages(some)))), sources) for some in (range(20), range(20, 40))]
    assert [one.sources for one in made] == [sources, ()]


def test_a_session_that_is_removed_takes_no_content_along(store: Store) -> None:
    contents = fill(store)
    store.drop_sessions(["one"])
    assert read(store, contents)
    for named in bundles(store).values():
        assert all(is_stored(store, kind, number) for kind, number in named)


def is_stored(store: Store, kind: int, number: int) -> bool:
    with store._database.open_reader() as rows:
        if kind == LINES:
            found = rows.execute("SELECT texts FROM line_segment WHERE first = ?", (number,)).fetchone()
            return found is not None and found[0] > 1
        return rows.execute("SELECT codec FROM blob WHERE number = ?", (number,)).fetchone() == (BUNDLE,)


def test_a_shared_text_that_is_removed_takes_no_content_along(store: Store) -> None:
    contents = fill(store)
    sources = {number for named in bundles(store).values() for kind, number in named if kind == TEXTS}
    with store._database.open_reader() as rows:
        ((name,), *_) = rows.execute("SELECT hash FROM blob WHERE base = ?", (min(sources),)).fetchall()
    assert store.drop_blobs([ContentHash(bytes(name).hex())]) == 1
    assert read(store, contents)
    assert min(sources) not in {number for named in bundles(store).values() for kind, number in named if kind == TEXTS}


def test_nothing_is_left_of_an_erased_text(store: Store) -> None:
    fill(store)
    secret = words(3)

    def finds(text: str) -> list[PrivateSpan]:
        return [PrivateSpan(at, at + len(secret), "words") for at in [text.find(secret)] if at >= 0]

    store.retell(store.secret(), finds)
    left = [store.get(name) for name in store.names()]
    assert not any(secret.encode() in one for one in left)
    assert all(is_stored(store, kind, number) for named in bundles(store).values() for kind, number in named)
    assert {page for page in pages(range(40)) if secret.encode() not in page} <= set(left)


def test_a_source_that_changes_while_a_bundle_is_made_is_not_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append("one", [one(number + 40 * (one is shown)) for number in range(20) for one in (said, shown)])
    seal(store)
    store.set_layer("memory", store.last_place(), "1")
    contents = [*pages(range(20)), *(page + b" again" for page in pages(range(20)))]
    store.put_many(contents)

    found: list[int] = []

    def remove_meanwhile(texts: ShortContents, likely: Sequence[BundleSource]) -> BlobBundle:
        made = bundle_of(texts, likely)
        if made.sources:
            found.append(len(made.sources))
            store.drop_sessions(["one"])
        return made

    with monkeypatch.context() as patched:
        patched.setattr("pagein.store.sql.sql_blobs.bundle_of", remove_meanwhile)
        seal(store)
    assert found
    assert (bundles(store), read(store, contents)) == ({}, True)


def test_what_is_compressed_against_a_damaged_source_is_noticed_and_healed(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        contents = fill(store)
        with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows, rows:
            rows.execute("UPDATE line_segment SET data = zeroblob(99) WHERE texts > 1")
        forget_unpacked()
        hurt = [one for one in contents if not is_readable(store, one)]
        assert len(hurt) >= 20
        store.put_many(contents)
        assert read(store, contents)


def is_readable(store: Store, content: bytes) -> bool:
    with contextlib.suppress(DamagedBlob):
        return store.get(ContentHash.of(content)) == content
    return False


def forget_unpacked() -> None:
    """Forget what was unpacked before, as another process would not know it."""
    packed_bytes._bundles.clear()
    bundle_sources._told.cache_clear()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(
    deeds=st.lists(
        st.tuples(st.sampled_from(["follow", "put", "seal", "drop text", "drop content", "forget"]), st.integers(0, 3)),
        min_size=4,
        max_size=14,
    )
)
def test_any_order_of_journaling_bundling_and_removing(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int]]
) -> None:
    kept: set[bytes] = set()
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("any") / "one.pagein")) as store:
        for deed, number in [("follow", 0), ("seal", 0), ("put", 0), ("seal", 0), *deeds]:
            numbers = range(number * 20, number * 20 + 20)
            forget_unpacked()
            match deed:
                case "follow":
                    store.append(f"s{number}", [one(place) for place in numbers for one in (said, shown)])
                    store.set_layer("memory", store.last_place(), "1")
                case "put":
                    some = [part + end for part in pages(numbers) for end in (b"", b" again")]
                    store.put_many(some)
                    kept.update(some)
                case "seal":
                    seal(store)
                case "drop text":
                    store.drop_blobs([ContentHash.of(words(number * 20 + 501).encode())])
                case "drop content":
                    gone = pages(numbers)[:3]
                    store.drop_blobs([ContentHash.of(one) for one in gone])
                    kept.difference_update(gone)
                case _:
                    store.drop_sessions([f"s{number}"])
            forget_unpacked()
            assert read(store, sorted(kept))


def test_the_sources_of_a_bundle_are_read_again() -> None:
    sources = [BundleSource(LINES, 1 << 40, b"", b""), BundleSource(TEXTS, 7, b"", b"")]
    assert sources_in(head_of(sources) + b"rest") == ((LINES, 1 << 40), (TEXTS, 7))


def test_arguments_and_files_are_told_as_objects_have_them(store: Store) -> None:
    code = [f'print("{words(number)[:30]}", "a\\n")' for number in range(60)]
    arguments = {"content": "\n".join(code), "file_path": "/src/a.py"}
    call = ToolCall("call-1", "write", encode_json(arguments).decode())
    numbered = "\n".join(f"{number:6}\N{RIGHTWARDS ARROW}{line}" for number, line in enumerate(code, start=1))
    entries = [
        MessageEntry(Message("assistant", (call,))),
        MessageEntry(Message("tool", (ToolResult("1", numbered, "r"),))),
    ]
    store.append("one", [Entry(f"e{number}", None, one) for number, one in enumerate(entries)] + [said(8), shown(9)])
    store.append("two", [said(number) for number in range(10, 30)])
    seal(store)
    while store.bundle_more(rest=True):
        pass
    store.set_layer("memory", store.last_place(), "1")
    contents = [canonical(frozen(arguments)).encode()[:-2], "\n".join(code).encode()]
    with store._database.open_reader() as rows:
        likely = likely_sources(rows)
    assert {one.kind for one in likely} == {LINES, TEXTS}
    told = b"".join(one.told for one in likely)
    assert [one in told for one in contents] == [True, True]


@pytest.mark.parametrize("data", [b"", b"\1", b"\2" + bytes(9), b"\1\7" + bytes(8)])
def test_a_damaged_beginning_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedBlob):
        sources_in(data)

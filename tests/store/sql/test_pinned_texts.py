"""Contents in bundles without the hashes of their references: the same bytes, whatever happens to what they refer to."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.text_removal import PrivateSpan
from pagein.model.versions import Draft, Writer
from pagein.model.writes import Write
from pagein.store.sql.bundle_sources import BundleSource
from pagein.store.sql.packed_bytes import PINNED
from pagein.store.sql.pinned_texts import ShortContents
from pagein.store.sql.sql_bundles import BlobBundle, bundle_of
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store
Store = SqliteUpkeep | PostgresUpkeep


@pytest.fixture(autouse=True)
def small_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 13)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._PACKED", 1 << 11)


def seal(store: Store) -> None:
    while store.bundle_more(rest=True):
        pass


def targets(store: Store, numbers: Sequence[int], round_: int = 0) -> list[Reference]:
    """Write a version of each of these files, as a layer does, and return references to them."""
    found = []
    for number in numbers:
        draft = a_file(number, f"text of {number} in round {round_}, which 'is' \"told\"")
        made = store.write(Write(f"r{number}-{round_}", draft, 1.5 + round_, writer=Writer("a layer")))
        found.append(made.version.static(relation="call"))  # type: ignore[union-attr]
    return found


def hold(store: Store, number: int, references: Sequence[Reference]) -> None:
    """Write versions of an object whose field has more and more references, as that of a chat has."""
    for count in range(4, len(references) + 1, 4):
        field = [{"step": place, "object": one} for place, one in enumerate(references[:count])]
        put(store, Draft(id=object_number(number), type="chat", additional={"turns": field}))


def contents(store: Store) -> dict[ContentHash, bytes]:
    return {name: store.get(name) for name in store.names()}


def read(store: Store, wanted: dict[ContentHash, bytes]) -> bool:
    """Return whether the store gives each of these contents, one by one and in bulk."""
    return contents(store) == wanted and store.load(list(wanted)) == list(wanted.values())


def in_short_form(store: Store) -> int:
    with store._database.open_reader() as rows:
        ((count,),) = rows.execute("SELECT count(*) FROM blob WHERE codec = ?", (PINNED,)).fetchall()
    return int(count)


def fill(store: Store) -> dict[ContentHash, bytes]:
    """Store objects with references, and bundle them. Return what the store has."""
    hold(store, 90, targets(store, range(1, 25)))
    hold(store, 91, targets(store, range(25, 41)))
    before = contents(store)
    seal(store)
    return before


def test_contents_come_out_as_they_were_and_take_less_room(store: Store) -> None:
    before = fill(store)
    assert in_short_form(store) >= 8
    assert read(store, before)
    assert store.figures()[1] < 64 * 40  # three hashes of each of 40 files would take more
    assert (set(store.blob_sizes()), store.figures()[0]) == (set(before), len(before))
    assert store.put_many(list(before.values())) == tuple(before)


def test_contents_outlive_the_versions_that_they_refer_to(store: Store) -> None:
    before = fill(store)
    assert store.drop_objects_of(("a layer", None)) == 40
    assert (in_short_form(store), read(store, before)) == (0, True)


def test_versions_that_nothing_refers_to_leave_bundles_as_they_are(store: Store) -> None:
    before = fill(store)
    store.write(Write("other", a_file(70), 1.0, writer=Writer("another layer")))
    count = in_short_form(store)
    assert store.drop_objects_of(("another layer", None)) == 1
    assert in_short_form(store) == count
    assert before.items() <= contents(store).items()


def test_what_refers_to_an_erased_text_can_be_read(store: Store) -> None:
    fill(store)
    before = {version.sequence: version.number for version in store.log()}

    def finds(text: str) -> list[PrivateSpan]:
        found = text.find("text of 7 in round")
        return [] if found < 0 else [PrivateSpan(found, found + 9, "words")]

    store.retell(store.secret(), finds)
    seal(store)
    assert {version.sequence: version.number for version in store.log()} == before
    for version in store.log():
        for link in store.references(version):
            assert link.resolved
    assert all(b"text of 7 " not in one for one in contents(store).values())


def test_a_lost_version_is_told_for_what_refers_to_it(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        before = fill(store)
        with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows, rows:
            rows.execute("DELETE FROM version WHERE sequence = 2")
        hurt = [name for name, content in before.items() if b'"turns"' in content or content[:9] == b'[{"object']
        first = [name for name in hurt if object_number(2).encode() in before[name]]
        for name, found in zip(first, store.load(first), strict=True):
            assert isinstance(found, DamagedBlob)
            with pytest.raises(DamagedBlob):
                store.get(name)
        assert first
        store.put_many([before[name] for name in first])
        assert read(store, before)


def test_what_only_looks_like_a_pin_stays_as_it_is(store: Store) -> None:
    (one, two, three) = targets(store, range(1, 4))
    forged = replace(one, pin=replace(one.pin, view=one.pin.object))  # type: ignore[type-var, union-attr]
    hold(store, 90, [one, forged, two, three] * 8)
    hold(store, 91, [forged] * 32)
    store.put_many([b'"pin":{ \x01 2;' + b"%d" % number * 40 for number in range(30)])
    before = contents(store)
    seal(store)
    assert (in_short_form(store) > 0, read(store, before)) == (True, True)


def test_a_version_that_goes_while_a_bundle_is_made_is_in_no_mark(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(store, 90, targets(store, range(1, 25)))
    before = contents(store)
    met: list[int] = []

    def remove_meanwhile(shorts: ShortContents, likely: Sequence[BundleSource]) -> BlobBundle:
        met.append(len(shorts.short))
        store.drop_objects_of(("a layer", None))
        return bundle_of(shorts, likely)

    with monkeypatch.context() as patched:
        patched.setattr("pagein.store.sql.sql_blobs.bundle_of", remove_meanwhile)
        store.bundle_more(rest=True)
    assert met[0] > 0
    assert (in_short_form(store), read(store, before)) == (0, True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(
    deeds=st.lists(st.tuples(st.sampled_from(["write", "hold", "seal", "drop"]), st.integers(0, 2)), max_size=10),
)
def test_any_order_of_writing_bundling_and_removing(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int]]
) -> None:
    known: dict[ContentHash, bytes] = {}
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("any") / "one.pagein")) as store:
        for place, (deed, number) in enumerate([("hold", 0), ("seal", 0), *deeds]):
            numbers = range(number * 8 + 1, number * 8 + 9)
            match deed:
                case "write":
                    targets(store, numbers, place)
                case "hold":
                    hold(store, 90 + number, targets(store, numbers, place))
                case "seal":
                    seal(store)
                case _:
                    store.drop_objects_of(("a layer", None))
            now = contents(store)
            assert known.items() <= now.items()
            known = now
            assert read(store, known)

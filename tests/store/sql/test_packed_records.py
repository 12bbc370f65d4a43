"""Records in their short forms: each comes back, and the hash of the content is stored once."""

import json
from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pagein.store.sql.packed_records import RECORDS, full_record, shorten_record
from pagein.store.sql.sql_blobs import raw
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, put

# few bytes, among them the marks, so that hashes are made of marks and equal one another
HASHES = st.one_of(
    st.binary(min_size=32, max_size=32), st.lists(st.sampled_from([1, 2]), min_size=32, max_size=32).map(bytes)
)


@given(st.lists(HASHES, max_size=4), st.one_of(st.none(), HASHES), st.integers(0, 1), st.text())
def test_a_record_comes_back_from_its_short_form(
    names: list[bytes], content: bytes | None, again: int, title: str
) -> None:
    named = [*names, *([content] * again if content is not None else [])]
    record = json.dumps(
        {
            "additional": {f"part {place}": one.hex() for place, one in enumerate(named)},
            "content": None if content is None else content.hex(),
            "metadata": {"title": title, "digits": "0" * 63, "content": [one.hex() for one in named]},
        }
    )
    assert full_record(shorten_record(record, content), content) == record
    assert full_record(shorten_record(record)) == record


def test_the_hash_of_a_content_is_in_the_row_of_its_version_alone(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        version = put(store, a_file(1, "a text"))
        assert version.content_hash is not None
        with store._database.open_reader() as rows:
            (short,) = RECORDS.load(rows, [version.sequence]).values()
        assert raw(version.content_hash) not in short
        assert store.log() == (version,)

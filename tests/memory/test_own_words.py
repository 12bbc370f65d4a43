"""Words of pagein's own records cannot be forgotten: with a tombstone of one, no object could be stored any more."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.memory.journal_stories import tell
from tests.memory.test_forgotten_objects import IndiscreetStory

from pagein import erasure
from pagein.errors import BadInput
from pagein.memory.indexer import Indexer
from pagein.model.version_hash import additional_in, record_of
from pagein.policy.privacy.own_words import FIELDS, VALUES
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep

FIXED = ("generator", "known", "op", "proof", "relation", "role", "status", "type")


def fields(value: object) -> Iterator[tuple[str, object]]:
    """Every field in a JSON value, with its value."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from fields(one)
    yield from value.items() if isinstance(value, dict) else ()


@pytest.mark.parametrize("seed", range(4))
def test_the_list_has_all_words_of_records(seed: int) -> None:
    store, chance = MemoryUpkeep(), random.Random(seed)  # noqa: S311 - not for secrets
    for _ in tell(store, [IndiscreetStory(name, chance) for name in "abc"], chance, 120):
        Indexer(store).catch_up()
    Indexer(store).save_open_chats(5_000.0)
    versions = store.log(0, 10_000)
    records = [json.loads(record_of(one)) for one in versions]
    said = [
        json.loads(store.get(name)) for one in versions if one.type == "chat" for name in additional_in(record_of(one))
    ]
    found = [*fields(records), *fields(said)]
    assert len(records) > 50
    assert {name for name, _ in found if not name.startswith("turns.")} <= FIELDS
    assert {value for name, value in found if name in FIXED and isinstance(value, str)} <= VALUES


@pytest.mark.parametrize("word", ["provenance", "session", "toolcall", "metadata_view", '"content":', "system_prompt"])
def test_such_a_word_is_refused_before_anything_changes(tmp_path: Path, word: str) -> None:
    with closing(SqliteUpkeep(tmp_path / "s.pagein")) as store, pytest.raises(BadInput, match="pagein's own records"):
        erasure.texts_of(store, word)


def test_a_text_around_such_a_word_can_be_forgotten(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "s.pagein")) as store:
        assert erasure.texts_of(store, "the session of monday") == ("the session of monday",)

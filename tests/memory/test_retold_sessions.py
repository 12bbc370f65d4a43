"""A session whose journal was removed, and that its client tells again at other times."""

from collections.abc import Sequence

import pytest
from tests.memory.told_journal import Journal

from pagein.engine.recall.named_objects import as_given, find_object
from pagein.memory.indexer import Indexer
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.tools.session_commands import chat

NAME = "3f2a9c1e-7b40-4c55-9d1e-000000000001"


@pytest.mark.parametrize("began", [(100.0, 5_000.0), (100.0, 5_000.0, 90_000.0)])
@pytest.mark.parametrize("name", [NAME, NAME[:8]])
def test_the_name_of_a_session_means_the_life_that_began_last(began: Sequence[float], name: str) -> None:
    store = MemoryUpkeep()
    for at in began:
        store.drop_sessions([NAME])
        told = Journal(store, NAME, at)
        told.say(f"begin at {at}")
        told.answer("yes")
        Indexer(store).save_open_chats(at + 50)

    lives = sorted(one.id for one in store.log() if one.type == "session")
    assert len(set(lives)) == len(began)
    assert find_object(store, name, as_given).id == lives[-1]
    assert f"begin at {began[-1]}" in str([*chat(store, name)[1]])
    assert f"begin at {began[0]}" in str([*chat(store, lives[0])[1]]), "by its id the earlier life is found"

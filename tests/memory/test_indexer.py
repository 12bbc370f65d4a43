"""Objects are a projection of the journals: the same however they grew."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.journal_stories import SessionStory, tell

from pagein.memory.followed_place import FORM, LAYER
from pagein.memory.indexer import Indexer
from pagein.model.chats import ChatCall, turns_from_value
from pagein.model.derived_versions import INDEXER
from pagein.model.references import Reference
from pagein.model.versions import Version, Writer
from pagein.model.writes import EVERYTHING, Outcome, Query, Write
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep

Facts = list[tuple[str, int, str, float]]


def versions(store: MemoryUpkeep | SqliteStore) -> Facts:
    """Every version by object and number, with its hash and time, whatever the order of all versions is."""
    ids = {one.id for one in store.objects(EVERYTHING)}
    return sorted((one.id, one.number, one.object_hash.hex, one.at) for name in ids for one in store.history(name))


def links(store: MemoryUpkeep | SqliteStore) -> list[tuple[str, str, str]]:
    """Every reference of a newest version, with its place and its target."""
    return sorted(
        (one.id, link.path, link.reference.target)
        for one in store.objects(EVERYTHING)
        for link in store.references(one)
    )


def stories_of(seed: int, count: int = 2) -> tuple[list[SessionStory], random.Random]:
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    return [SessionStory(f"s{number}", random_) for number in range(count)], random_


@given(st.integers(0, 2**32), st.integers(0, 60))
@settings(max_examples=40)
def test_objects_that_grew_are_those_that_are_made_again(seed: int, steps: int) -> None:
    store, (stories, random_) = MemoryUpkeep(), stories_of(seed)
    indexer = Indexer(store)
    for _ in tell(store, stories, random_, steps):
        if random_.random() < 0.3:
            indexer = Indexer(store)  # another process goes on
        if random_.random() < 0.5:
            indexer.catch_up()
        if random_.random() < 0.2:
            indexer.save_open_chats(5_000.0)
    indexer.catch_up()
    grown, linked = versions(store), links(store)
    assert indexer.drop(store) == len({one for one, *_ in grown})
    assert versions(store) == []
    indexer.catch_up()
    assert versions(store) == grown
    assert links(store) == linked
    assert Indexer(store).catch_up().followed == 0


class Killed(Exception):
    """The process ends here."""


@given(st.integers(0, 2**32))
@settings(max_examples=30)
def test_a_process_that_dies_while_indexing_loses_and_doubles_nothing(seed: int) -> None:
    store, (stories, random_) = MemoryUpkeep(), stories_of(seed)
    for _ in tell(store, stories, random_, 40):
        pass
    whole = MemoryUpkeep()
    stories, again = stories_of(seed)
    for _ in tell(whole, stories, again, 40):
        pass
    Indexer(whole).catch_up()
    indexer = Indexer(store)
    for _ in range(8):
        with contextlib.suppress(Killed), failing_write(store, random_.randrange(12)):
            indexer.catch_up()
    indexer.catch_up()
    assert versions(store) == versions(whole)


@contextlib.contextmanager
def failing_write(store: MemoryUpkeep, after: int) -> Iterator[None]:
    """Let a write fail after some writes, in the middle of a transaction."""
    write, left = store.write, [after]

    def failing(asked: Write) -> Outcome:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return write(asked)

    store.write = failing  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        del store.write


@pytest.mark.parametrize("seed", range(6))
def test_a_real_store_has_the_same_objects_as_one_in_memory(tmp_path: Path, seed: int) -> None:
    made = []
    for store in (MemoryUpkeep(), SqliteUpkeep(tmp_path / "one.pagein")):
        stories, random_ = stories_of(seed, 3)
        for _ in tell(store, stories, random_, 80):
            if random_.random() < 0.1:
                Indexer(store).catch_up()
        Indexer(store).catch_up()
        made.append((versions(store), links(store)))
        store.close()
    assert made[0] == made[1]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[SqliteUpkeep, list[SessionStory]]]:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    stories, random_ = stories_of(7, 3)
    for _ in tell(store, stories, random_, 150):
        pass
    Indexer(store).catch_up()
    yield store, stories
    store.close()


def newest(store: SqliteUpkeep, kind: str) -> list[Version]:
    return list(store.objects(Query(types=frozenset({kind}), deleted=None)))


def test_every_call_has_an_object_with_its_result(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, stories = told
    for story in stories:
        held = [store.content(one) for one in newest(store, "toolcall") if one.writer.session == story.name]
        assert sorted(str(one) for one in held) == sorted(text for _, text in story.calls)


def test_calls_of_one_id_are_told_apart(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, stories = told
    assert any(call_id == "call_0" for story in stories for call_id, _ in story.calls)
    calls = newest(store, "toolcall")
    assert {one.number for one in calls} == {1}
    assert len(calls) == sum(len(story.calls) for story in stories)


def test_everything_that_a_user_said_is_an_object(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, stories = told
    said = sorted(str(store.content(one)) for one in newest(store, "user"))
    assert said == sorted(words for story in stories for words in story.said)


def test_a_chat_and_its_calls_refer_to_one_another(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, _ = told
    places = set()
    for chat in newest(store, "chat"):
        for version in store.history(chat.id):
            pages = sorted(version.additional, key=lambda name: [int(part) for part in name.split(".")[1:]])
            place = 0
            for name in pages:
                (turn,) = turns_from_value(store.additional(version, name))
                place = 0 if name.endswith(".1") else place
                for step in turn.steps:
                    place += 1
                    if isinstance(step, ChatCall):
                        places.add((step.object.target, int(name.split(".")[1]), place))
    for call in newest(store, "toolcall"):
        assert (call.id, call.metadata["turn"], call.metadata["place"]) in places or not is_saved(store, call)
        back = call.metadata["chat_ref"]
        assert isinstance(back, Reference)
        assert back.pin is not None
        assert store.resolve(back).reference == back


def is_saved(store: SqliteUpkeep, call: Version) -> bool:
    """Whether a version of the chat was made after the call: the last steps of a turn wait for the next version."""
    back = call.metadata["chat_ref"]
    assert isinstance(back, Reference)
    return store.history(back.target)[-1].sequence > call.sequence


def test_what_is_told_late_about_an_earlier_request_is_no_rewind() -> None:
    store, story = MemoryUpkeep(), SessionStory("s", random.Random(1))  # noqa: S311 - not for secrets
    store.append("s", [*story.begin(), story.says()])
    before = story.leaf
    for _ in range(3):
        store.append("s", story.calls_tool())
        store.append("s", [story.late_note(before)])
    store.append("s", [story.answers()])
    Indexer(store).catch_up()
    (chat,) = store.objects(Query(types=frozenset({"chat"})))
    assert [one.metadata["step_count"] for one in store.history(chat.id)] == [0, 7]


def test_files_and_calls_refer_to_one_another(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, _ = told
    seen = 0
    for call in newest(store, "toolcall"):
        for reference in call.metadata.get("file_refs", ()):  # type: ignore[union-attr]
            assert isinstance(reference, Reference)
            assert any(back.source.id == call.id for back in store.backlinks(reference.target, ever=True))
            seen += 1
    assert seen
    for file in (*newest(store, "file"), *newest(store, "note")):
        back = file.metadata["call"]
        assert isinstance(back, Reference)
        found = store.current(back.target)
        assert found is not None
        assert found.type == "toolcall"


def test_a_whole_content_is_never_claimed_without_a_proof(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, _ = told
    for file in (*newest(store, "file"), *newest(store, "note")):
        for version in store.history(file.id):
            known, content = version.metadata["known"], store.content(version)
            assert (known == "name") == (content is None)
            assert (known == "part") == ("spans" in version.additional)


def test_the_place_is_kept_with_the_objects(told: tuple[SqliteUpkeep, list[SessionStory]]) -> None:
    store, _ = told
    assert store.layer(LAYER) == (store.last_place(), FORM)
    assert Indexer(store).behind() == 0


def test_objects_of_an_older_form_are_dropped_and_made_again(tmp_path: Path) -> None:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    stories, random_ = stories_of(3)
    for _ in tell(store, stories, random_, 60):
        pass
    Indexer(store).catch_up()
    made = versions(store)
    older = next(one for one in store.log() if one.type == "chat")
    draft = replace(older.draft(None), additional={}, metadata={"title": "as it was told before"})
    writer = Writer(INDEXER, "turn", stories[0].name)
    store.write(Write("of-an-older-form", draft, 1.0, writer=writer))
    assert versions(store) != made
    store.set_layer(LAYER, store.last_place(), "0")
    Indexer(store).catch_up()
    assert versions(store) == made
    store.close()


def test_a_limit_of_time_leaves_the_rest_for_later(tmp_path: Path) -> None:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    stories, random_ = stories_of(3)
    for _ in tell(store, stories, random_, 300):
        pass
    calls: list[tuple[int, int]] = []
    report = Indexer(store).catch_up(stop=lambda: len(calls) >= 2, tell=lambda place, last: calls.append((place, last)))
    assert 0 < report.behind < store.last_place()
    assert len(calls) == 2
    assert Indexer(store).catch_up().behind == 0
    store.close()

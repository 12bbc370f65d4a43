"""Words of users and assistants, arguments and results are found as people see them, with their place in the chat."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.search.remembered_sessions import Remembered, answered, said

from pagein.archive import archive_of
from pagein.errors import BadInput
from pagein.model.chats import PAGE_STEPS, ChatCall, turns_as_text, turns_from_value
from pagein.model.references import Reference
from pagein.model.search_query import ChatPlace, Hit, Search, Which
from pagein.model.versions import Draft
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.search.index_builder import grow
from pagein.store.search.searcher import MOST_SESSIONS, Searcher
from pagein.store.search.shelves import VersionShelf
from pagein.store.search.store_search import StoreSearch
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

BUILT = pytest.mark.parametrize("built", [False, True], ids=["scanned", "indexed"])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "store.pagein")
    yield store
    store.close()


def build(search: StoreSearch) -> None:
    assert search.index is not None
    for shelf in search.shelves:
        while grow(search.index, shelf):
            pass


def hits(store: SqliteUpkeep, pattern: str, *, built: bool = False, **asked: object) -> list[Hit]:
    with archive_of(store) as archive:
        if built:
            build(archive.searcher)
        return list(archive.search(Search(pattern=pattern, **asked)).hits)  # type: ignore[arg-type]


def fields(found: list[Hit]) -> list[tuple[str, str]]:
    return [(hit.where.type, hit.field) for hit in found]


@BUILT
def test_words_are_found_as_people_see_them_with_turn_and_step(store: SqliteUpkeep, *, built: bool) -> None:
    one = Remembered(store, "fix")
    one.say('please say "quoted"\nand a second line', answered("line one\nline \u00e9 two\n\tindented"))
    one.say("next", *(answered(f"step {number}") for number in range(PAGE_STEPS + 3)))
    [user] = hits(store, 'say "quoted"', built=built, limit=1)
    [chat] = hits(store, "two\n\tind", built=built)
    assert (user.where.type, user.place, user.where.chat) == ("user", ChatPlace(1), one.chat)
    assert (chat.field, chat.place) == ("turns.1.1", ChatPlace(1, 1, "assistant"))
    assert chat.match.text == "line \u00e9 two"
    [late] = hits(store, f"step {PAGE_STEPS + 1}", built=built)
    assert (late.field, late.place) == ("turns.2.2", ChatPlace(2, PAGE_STEPS + 2, "assistant"))
    assert late.where.current


@BUILT
def test_arguments_are_found_as_text_values(store: SqliteUpkeep, *, built: bool) -> None:
    one = Remembered(store, "fix")
    one.say("go", answered("ok"))
    args: dict[str, object] = {"file_path": "/w/a.py", "new_string": 'def f():\n    return "x"\n'}
    call = one.call("toolu_1", "Edit", args, "done: 1 change", place=1)
    one.go_on(call)
    [hit] = hits(store, 'f():\n    return "x"', built=built)
    assert (hit.where.id, hit.field, hit.place) == ("toolu_1", "args", ChatPlace(1, 1))
    assert hit.match.text == "new_string: def f():"
    [result] = hits(store, "done: 1 change", built=built)
    assert (result.where.id, result.field, result.place) == ("toolu_1", "content", ChatPlace(1, 1))


@BUILT
def test_a_page_belongs_to_the_version_that_brought_it(store: SqliteUpkeep, *, built: bool) -> None:
    one = Remembered(store, "fix")
    first = one.say("the first needle", answered("ok"))
    for number in range(20):
        one.say(f"more {number}", answered("ok"))
    [hit] = hits(store, "first needle", built=built, types=frozenset({"chat"}))
    assert (hit.where.version, hit.where.at, hit.where.current) == (first.number, first.at, True)
    assert hits(store, "first needle", built=built, types=frozenset({"chat"}), since=first.at + 1) == []
    [current] = hits(store, "first needle", built=built, types=frozenset({"chat"}), versions="current")
    assert current == hit
    [everywhere] = hits(store, "first needle", built=built, types=frozenset({"chat"}), versions="all")
    assert everywhere == hit


@BUILT
def test_words_that_a_rewind_left_behind_are_found_and_said_to_be_old(store: SqliteUpkeep, *, built: bool) -> None:
    one = Remembered(store, "fix")
    one.say("begin", answered("ok"))
    one.say("a needle", answered("hm"))
    one.turns.pop()
    one.say("another way", answered("good"))
    [chat] = hits(store, "a needle", built=built, types=frozenset({"chat"}))
    assert (chat.field, chat.where.current) == ("turns.2.1", False)
    assert hits(store, "a needle", built=built, types=frozenset({"chat"}), versions="current") == []


def test_a_long_chat_is_indexed_and_scanned_once(store: SqliteUpkeep) -> None:
    one = Remembered(store, "fix")
    for number in range(30):
        one.say(f"words {number}", answered(f"answer {number}"))
    with archive_of(store) as archive:
        shelf = archive.searcher.shelves[0]
        parts = [name for item in shelf.between(0, shelf.last()) for name, _ in item.parts if name.startswith("turns.")]
        assert len(parts) == 30
        build(archive.searcher)
        assert archive.search(Search(pattern="answer 17")).looked_into <= 2


@pytest.mark.parametrize("limit", [1, 50])
def test_the_users_words_come_first_then_the_assistants_files_arguments_and_results(
    store: SqliteUpkeep, limit: int
) -> None:
    one = Remembered(store, "fix")
    one.say("about needle one", answered("I look for needle two"))
    one.go_on(one.call("toolu_1", "Grep", {"pattern": "needle three"}, "needle four", place=1))
    one.file(1, "/w/a.py", "# needle five\n")
    found = hits(store, "needle", fields=frozenset({"content", "args", "turns"}))
    assert fields(found) == [
        ("user", "content"),
        ("chat", "turns.1.1"),
        ("file", "content"),
        ("chat", "turns.1.1"),
        ("toolcall", "args"),
        ("toolcall", "content"),
    ]
    assert [hit.match.text for hit in found][:2] == ["about needle one", "I look for needle two"]
    paged: list[Hit] = []
    after = None
    with archive_of(store) as archive:
        while True:
            results = archive.search(Search(pattern="needle", limit=limit, after=after))
            paged += results.hits
            after = results.next
            if after is None:
                break
    assert {(hit.where.id, hit.field) for hit in found} <= {(hit.where.id, hit.field) for hit in paged}


def test_a_newer_day_comes_before_a_better_kind(store: SqliteUpkeep) -> None:
    one = Remembered(store, "old")
    one.say("a needle", answered("ok"))
    two = Remembered(store, "new", number=2, at=1_700_200_000.0)
    two.say("go", answered("here is a needle"))
    assert [hit.where.session for hit in hits(store, "needle")] == ["new", "old"]


@BUILT
def test_filters_by_session_agent_chat_and_time(store: SqliteUpkeep, *, built: bool) -> None:
    one = Remembered(store, "0199-aa-fix")
    one.say("a needle", answered("ok"))
    one.go_on(one.call("toolu_1", "Bash", {"command": "ls"}, "needle out", place=1))
    one.file(1, "/w/a.py", "needle = 1")
    two = Remembered(store, "0199-bb-fix", harness="codex", number=2, at=1_700_200_000.0)
    two.say("a needle", answered("ok"))

    def sessions(**asked: object) -> set[str | None]:
        return {hit.where.session for hit in hits(store, "needle", built=built, **asked)}

    assert sessions() == {"0199-aa-fix", "0199-bb-fix"}
    assert sessions(session="0199-aa") == {"0199-aa-fix"}
    assert sessions(agent="codex") == {"0199-bb-fix"}
    assert sessions(agent="codex", session="0199-aa-fix") == set()
    assert sessions(since=1_700_100_000.0) == {"0199-bb-fix"}
    of_chat = hits(store, "needle", built=built, chat=one.chat)
    assert {hit.where.type for hit in of_chat} == {"user", "toolcall", "file"}
    assert {hit.where.chat for hit in of_chat} == {one.chat}
    with pytest.raises(BadInput, match="several sessions begin with '0199': 0199-aa-fix, 0199-bb-fix"):
        hits(store, "needle", session="0199")
    with pytest.raises(BadInput, match="there are sessions of: claude-code, codex"):
        hits(store, "needle", agent="gemini")
    assert hits(store, "needle", session="nobody") == []


@BUILT
@pytest.mark.parametrize("count", [MOST_SESSIONS, MOST_SESSIONS + 1], ids=["few", "many"])
def test_an_agent_with_many_sessions_is_searched_as_one_with_few(
    store: SqliteUpkeep, count: int, *, built: bool
) -> None:
    for number in range(count):
        Remembered(store, f"mine-{number}", number=2 * number + 1).say("a needle", answered("ok"))
        Remembered(store, f"other-{number}", harness="codex", number=2 * number + 2).say("a needle", answered("ok"))

    def sessions(**asked: object) -> set[str | None]:
        return {hit.where.session for hit in hits(store, "needle", built=built, limit=1000, **asked)}

    assert sessions(agent="codex") == {f"other-{number}" for number in range(count)}
    assert sessions(agent="codex", session="other-1") == {"other-1"}
    assert sessions(agent="codex", session="mine-1") == set()


def test_a_search_of_an_agent_does_not_read_all_its_sessions(store: SqliteUpkeep) -> None:
    steps: list[int] = []
    with store._database.open_reader() as rows:
        rows.set_progress_handler(lambda: steps.append(1), 1)
    taken = []
    for count in (range(12), range(12, 60)):
        for number in count:
            Remembered(store, f"one-{number}", number=number + 1).say("a needle", answered("ok"))
        with archive_of(store) as archive:
            build(archive.searcher)
            steps.clear()
            assert archive.search(Search(pattern="needle", agent="claude-code", limit=5)).hits
            taken.append(len(steps))
    assert taken[1] < 1.5 * taken[0]


# --- the law, for chats: whatever the index knows, the answer is that of a full scan of every page ---

_WORDS = st.text(alphabet='ab \n"\\\u00e9', max_size=8)
_TURNS = st.lists(st.tuples(_WORDS, st.lists(_WORDS, max_size=3)), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(
    turns=_TURNS,
    more=st.lists(_WORDS, max_size=3),
    again=_TURNS,
    pattern=st.text(alphabet='ab \n"\\\u00e9-', min_size=1, max_size=4),
    upto=st.integers(0, 8),
    limit=st.integers(1, 4),
    versions=st.sampled_from(["newest", "all", "current"]),
)
def test_every_page_of_every_version_is_found(  # noqa: PLR0917 - all that varies
    tmp_path_factory: pytest.TempPathFactory,
    turns: list[tuple[str, list[str]]],
    more: list[str],
    again: list[tuple[str, list[str]]],
    pattern: str,
    upto: int,
    limit: int,
    versions: Which,
) -> None:
    store = SqliteUpkeep(tmp_path_factory.mktemp("chats") / "store.pagein")
    twin = MemoryStore()
    search = StoreSearch(store)
    for kept in (store, twin):
        one = Remembered(kept, "s")
        for number, (words, steps) in enumerate([*turns, *again]):
            if number == upto and kept is store:
                build(search)
            if number == len(turns):  # a rewind
                one.turns[1:] = []
            one.say(words, *map(answered, steps))
        one.go_on(*map(answered, more))
    asked = Search(
        pattern=pattern, types=frozenset({"chat"}), limit=limit, versions=versions, fields=frozenset({"turns"})
    )
    texts: dict[str, set[str]] = {}
    history = twin.history(one.chat)
    for version in history if versions != "current" else history[-1:]:
        for name in version.additional:
            text = turns_as_text(turns_from_value(twin.additional(version, name)))
            if pattern in text:
                texts.setdefault(name, set()).add(text)
    found = _all(search, asked)
    assert {hit.field for hit in found} == texts.keys()
    assert {_key(hit) for hit in found} == {_key(hit) for hit in _all(Searcher([VersionShelf(twin)]), asked)}
    search.close()
    store.close()


def _all(search: StoreSearch | Searcher, asked: Search) -> list[Hit]:
    found: list[Hit] = []
    after = None
    while True:
        results = search.search(replace(asked, after=after))
        found += results.hits
        after = results.next
        if after is None:
            return found


def _key(hit: Hit) -> tuple[str, int, int, ChatPlace | None, bool]:
    return hit.field, hit.where.version, hit.match.line, hit.place, hit.where.current


def test_places_are_those_of_the_steps() -> None:
    """The place of each line of a page is that of the step that says it."""
    store = MemoryStore()
    one = Remembered(store, "s")
    one.say("u1\nu2", answered("a1\na2"), ChatCall("c", "t", "x", "ok", Reference("toolu_1")), said("u3"))
    found = _all(
        Searcher([VersionShelf(store)]), Search(pattern=r"^[ua]\d|tool=t", regex=True, types=frozenset({"chat"}))
    )
    assert {(hit.match.text[:2], hit.place) for hit in found} == {
        ("u1", ChatPlace(1, None, "user")),
        ("u2", ChatPlace(1, None, "user")),
        ("a1", ChatPlace(1, 1, "assistant")),
        ("a2", ChatPlace(1, 1, "assistant")),
        ("--", ChatPlace(1, 2, "toolcall")),
        ("u3", ChatPlace(1, 3, "user")),
    }


def test_pages_of_another_form_are_searched_as_values(store: SqliteUpkeep) -> None:
    one = Remembered(store, "fix")
    metadata = {"session_ref": Reference(one.session), "turn_count": 1}
    one.put(Draft(id=one.chat, type="chat", metadata=metadata, additional={"turns.1.1": {"odd": "a needle"}}))
    [hit] = hits(store, "a needle")
    assert (hit.field, hit.place, hit.match.text) == ("turns.1.1", ChatPlace(1), "odd: a needle")

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.search.pattern_texts import patterns, texts
from tests.store.search.searched_stores import Desk, indexed, places, scanned

from pagein.errors import BadInput, StoreError
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.search_query import Search, Which
from pagein.model.versions import Draft, Writer
from pagein.model.writes import Write
from pagein.policy.recall.patterns import grams_needed
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.search.searcher import Searcher
from pagein.store.search.shelves import ShelfItem, VersionShelf
from pagein.store.search.sqlite_index import SqliteIndex, fts_query
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_drafts import object_number


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- the law: whatever the index knows, the answer is that of a full scan ---


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=st.lists(st.tuples(st.integers(0, 3), texts), min_size=1, max_size=8),
    asked=st.lists(st.tuples(patterns, st.booleans()), min_size=1, max_size=6),
    literal=texts.filter(bool),
    upto=st.integers(0, 8),
    limit=st.integers(1, 4),
    versions=st.sampled_from(["newest", "all"]),
)
def test_an_indexed_search_finds_what_a_scan_of_everything_finds(
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[tuple[int, str]],
    asked: list[tuple[str, bool]],
    literal: str,
    upto: int,
    limit: int,
    versions: Which,
) -> None:
    desk = indexed(tmp_path_factory.mktemp("index"))
    for number, (key, content) in enumerate(contents):
        if number == upto:
            desk.build()
        desk.put(content, key=f"call-{key}", metadata={"note": content[::2]})
    for pattern, regex in [*((pattern, True) for pattern, _ in asked), (literal, False)]:
        for ignore_case in (False, True):
            search = Search(
                pattern=pattern,
                regex=regex,
                ignore_case=ignore_case,
                versions=versions,
                limit=limit,
            )
            assert places(desk.pages(search)) == scanned(desk, search)


def test_results_are_complete_before_the_index_has_caught_up(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    desk.put("needle one")
    desk.build()
    desk.put("needle two")
    assert [hit.match.text for hit in desk.find("needle").hits] == ["needle two", "needle one"]


# --- the traps of trigrams in SQLite ---


def test_a_literal_of_many_characters_is_asked_for_without_phrases(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    desk.put('t = asyncio.create_task(go("x"))')
    desk.build()
    for literal in ("create_task", '(go("x"', "tas", '"x"'):
        assert len(desk.find(literal).hits) == 1
        assert desk.find(literal).looked_into == 1


def test_the_index_leaves_out_what_cannot_match(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    for number in range(50):
        desk.put(f"text of number {number:03}")
    desk.build()
    assert desk.find("number 017").looked_into == 1
    assert desk.find(r"number 0(17|23)$", regex=True).looked_into == 2
    assert desk.find("no such text").looked_into == 0
    assert desk.find(r"\d\d\d", regex=True).looked_into == 50


def test_a_rare_type_is_not_sought_among_all_items_with_a_frequent_text(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    for number in range(900):
        rare = {} if number % 150 else {"type": "user", "key": object_number(number)}
        desk.put(f"frequent {number}", **rare)
    desk.build()
    counting = CountingShelf(desk.store)
    searcher = Searcher([counting], desk.index)
    found = searcher.search(Search(pattern="frequent", types=frozenset({"user"})))
    assert [hit.match.text for hit in found.hits] == [f"frequent {number}" for number in range(750, -1, -150)]
    assert counting.handed <= 8
    both = searcher.search(Search(pattern="frequent", types=frozenset({"user", "toolcall"}), limit=5))
    assert [hit.match.text for hit in both.hits] == [f"frequent {number}" for number in range(899, 894, -1)]


def test_what_lies_between_items_with_a_frequent_text_is_not_read(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    for number in range(900):
        desk.put(f"{'other' if number % 5 else 'frequent'} {number}")
    desk.build()
    counting = CountingShelf(desk.store)
    found = Searcher([counting], desk.index).search(Search(pattern="frequent"))
    assert len(found.hits) == 50
    assert counting.handed <= 180  # those that have it


@pytest.mark.parametrize(
    "asked",
    [
        {"path": "docs/read_me.md"},
        {"path": "/w/docs"},
        {"path": "docs/**/r[ef]ad_*.md"},
        {"path": ".\\docs\\read_me.md"},
        {"chat": object_number(7)},
        {"session": "rare one"},
    ],
    ids=str,
)
def test_what_a_filter_leaves_is_not_sought_among_all_items_with_a_frequent_text(
    tmp_path: Path, asked: dict[str, str]
) -> None:
    desk = indexed(tmp_path)
    for number in range(900):
        about: dict[str, object] = {"path": f"/w/src/file_{number}.py"}
        if number % 150 == 0:
            about = {"path": "/w/docs/read_me.md", "chat_ref": Reference(object_number(7))}
        desk.put(f"frequent {number}", metadata=about, session="one" if number % 150 else "rare one")
    chat = Draft(id=object_number(7), type="chat", content="a frequent word of the chat itself")
    desk.store.write(Write("chat", chat, 1.0, writer=Writer(session="rare one")))
    desk.build()
    counting = CountingShelf(desk.store)
    found = Searcher([counting], desk.index).search(Search(pattern="frequent", **asked))  # type: ignore[arg-type]
    words = [hit.match.text for hit in found.hits]
    assert words[-6:] == [f"frequent {number}" for number in range(750, -1, -150)]
    assert words[:-6] == ([] if "path" in asked else ["a frequent word of the chat itself"])
    assert counting.handed <= 8


class CountingShelf(VersionShelf):
    """A shelf that counts the items that it hands out."""

    handed = 0

    def between(self, above: int, upto: int) -> Sequence[ShelfItem]:
        found = super().between(above, upto)
        self.handed += len(found)
        return found


@pytest.mark.parametrize("is_indexed", [False, True])
def test_half_a_surrogate_pair_in_a_name_hides_no_object(tmp_path: Path, *, is_indexed: bool) -> None:
    """A program that cuts a text in the middle of an emoji stores one."""
    with contextlib.closing(SqliteIndex(tmp_path / "index")) as index:
        desk = Desk(index=index)
        desk.put("a needle", path="cut\ud83d.md")
        desk.put("another needle", metadata={"title": "cut \ud83d", "path": "whole.md"})
        desk.put("a third needle", nickname="cut\ud83d")
        desk.put("a fourth needle", session="cut\ud83d")
        if is_indexed:
            desk.build()
        found = desk.find("needle")
        assert (len(found.hits), found.unsearched) == (4, ())
        (hit,) = desk.find("needle", path="cut\ud83d.md").hits
        assert hit.where.path == "cut\ud83d.md"
        (hit,) = desk.find("needle", session="cut\ud83d").hits
        assert hit.where.session == "cut\ud83d"


def test_text_behind_a_nul_is_found(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    desk.put("head\0tail of it\0end")
    desk.build()
    assert [hit.match.column for hit in desk.find("tail of").hits] == [6]
    assert len(desk.find("head\0tail").hits) == 1


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("\u212aELVIN", "kelvin"),
        ("mi\u017ft", "MIST"),
        ("\u03a3\u0399\u03a3\u03a5", "\u03c3\u03b9\u03c3\u03c5"),
        ("STRASSE", "strasse"),
    ],
)
def test_case_is_folded_as_the_engine_folds_it(tmp_path: Path, stored: str, asked: str) -> None:
    desk = indexed(tmp_path)
    desk.put(stored)
    desk.build()
    assert len(desk.find(asked, ignore_case=True).hits) == 1
    assert len(desk.find(f"(?i){asked}", regex=True).hits) == 1
    assert desk.find(asked).hits == ()


def test_short_literals_and_classes_of_another_dialect_are_scanned_for(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    desk.put("xfoo")
    desk.put("ab")
    desk.build()
    assert len(desk.find("[[:alpha:]]foo", regex=True).hits) == 1
    assert len(desk.find("ab").hits) == 1


def test_many_alternatives_are_one_question_to_the_index(tmp_path: Path) -> None:
    words = [f"word{number:03}" for number in range(140)]
    desk = indexed(tmp_path)
    desk.put("a word077 here")
    desk.put("nothing")
    desk.build()
    assert desk.find("|".join(words[:100]), regex=True).looked_into == 1


def test_an_expression_for_the_index_is_quoted_twice_over() -> None:
    assert fts_query(grams_needed('a"b')) == '"a""b"'


# --- the index as a file ---


def test_the_index_is_readable_by_the_user_alone(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    desk.put("secret text")
    desk.build()
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_a_damaged_index_costs_time_and_no_hits(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    for number in range(300):
        desk.put(f"some text {number}")
    desk.build()
    assert desk.index is not None
    desk.index.close()
    path = tmp_path / "store.pagein-search"
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 64):
        data[place] ^= 0x55
    path.write_bytes(data)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    again = Desk(desk.store, SqliteIndex(path))
    assert len(again.find("some text 123").hits) == 1
    path.write_bytes(b"no database at all" * 100)
    assert len(Desk(desk.store, SqliteIndex(path)).find("some text 123").hits) == 1


def test_an_index_of_another_store_is_not_believed_and_begun_anew(tmp_path: Path) -> None:
    first = indexed(tmp_path)
    first.put("one text")
    first.put("two text")
    first.build()
    second = Desk(MemoryStore(), first.index)
    second.put("another text")
    second.put("needle text")
    assert len(second.find("needle").hits) == 1
    second.build()
    assert second.find("needle").looked_into == 1
    assert second.find("one text").hits == ()


def test_a_store_put_back_to_an_older_state_is_not_searched_by_the_newer_index(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    for number in range(5):
        desk.put(f"text {number}")
    desk.build()
    older = Desk(MemoryStore(), desk.index)
    older.put("text 0")
    older.put("needle")
    assert len(older.find("needle").hits) == 1


def test_an_index_emptied_during_a_search_hides_no_version(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    for _ in range(200):
        desk.put("the same words")
    desk.build()
    index = desk.index
    assert index is not None
    asked = index.candidates(desk.shelf, grams_needed("same"), 201)
    first = [next(asked) for _ in range(64)]
    index.forget(desk.shelf)
    assert [*first, *asked] == list(range(200, 0, -1))


def test_two_builders_of_one_index_add_nothing_twice(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    desk.put("text one")
    second = SqliteIndex(tmp_path / "store.pagein-search")
    assert desk.index is not None
    assert desk.index.add(desk.shelf, 0, [(1, "text one")], 1)
    assert not second.add(desk.shelf, 0, [(1, "text one")], 1)
    assert second.covered_place(desk.shelf) == 1
    with sqlite3.connect(second.path) as connection:
        assert connection.execute("SELECT count(*) FROM grams_v WHERE grams_v MATCH '\"tex\"'").fetchone() == (1,)


# --- what is found ---


def test_hits_tell_object_version_line_column_and_context(desk: Desk) -> None:
    made = desk.put("first\nsecond needle here\r\nthird\n", path="src/a.py", session="s1", at=12.5)
    [hit] = desk.find("needle", context=1).hits
    assert (hit.where.id, hit.where.version, hit.where.type, hit.where.path, hit.where.session, hit.where.at) == (
        made.id,
        1,
        "toolcall",
        "src/a.py",
        "s1",
        12.5,
    )
    assert (hit.field, hit.where.current, hit.where.sequence) == ("content", True, made.sequence)
    match = hit.match
    assert (match.line, match.column, match.offset, match.matched) == (2, 8, 13, "needle")
    assert (match.before, match.text, match.after) == (("first",), "second needle here\r", ("third",))


def test_columns_and_offsets_count_characters(desk: Desk) -> None:
    desk.put("\u00e4\u00f6\U0001f600\n\u4e2d needle")
    [hit] = desk.find("needle").hits
    assert (hit.match.line, hit.match.column, hit.match.offset) == (2, 3, 6)


def test_a_line_with_several_matches_is_one_hit(desk: Desk) -> None:
    desk.put("a a a\nb\na a")
    assert [hit.match.line for hit in desk.find("a").hits] == [1, 3]


def test_anchors_are_those_of_lines(desk: Desk) -> None:
    desk.put("import os\nx = 1  # import\ndef f():\n")
    assert [hit.match.line for hit in desk.find("^import", regex=True).hits] == [1]
    assert [hit.match.line for hit in desk.find("import$", regex=True).hits] == [2]
    assert [hit.match.line for hit in desk.find(r"1.*\n^def", regex=True).hits] == [2]
    assert [hit.match.line for hit in desk.find("^", regex=True).hits] == [1, 2, 3]


def test_a_match_over_several_lines_is_told_where_it_begins(desk: Desk) -> None:
    desk.put("one\ntwo\nthree\n")
    [hit] = desk.find("two\nthr").hits
    assert (hit.match.line, hit.match.text, hit.match.matched) == (2, "two", "two\nthr")


def test_of_a_long_line_only_the_part_near_the_match_is_shown(desk: Desk) -> None:
    desk.put("x" * 100_000 + "needle" + "y" * 100_000)
    [hit] = desk.find("needle").hits
    assert len(hit.match.text) < 400
    assert "xxxneedleyyy" in hit.match.text
    assert hit.match.text.startswith("\u2026x")
    assert hit.match.text.endswith("y\u2026")
    assert hit.match.column == 100_001


def test_bytes_that_are_no_text_are_searched_as_shown(desk: Desk) -> None:
    desk.put("half \ud800 pair")
    assert len(desk.find("half .{1,3} pair", regex=True).hits) == 1


def test_metadata_and_additional_fields_are_searched_and_named(desk: Desk) -> None:
    desk.put(
        "output",
        metadata={"tool": "bash", "args": {"command": "pytest -k needle"}, "tags": ["needle", "x"], "done": True},
        additional={"summary": "the needle was\nfound", "steps": [{"text": "look for a needle"}]},
        nickname="needle-run",
    )
    found = [(hit.field, hit.match.text) for hit in desk.find("needle").hits]
    assert found == [
        ("steps", "text: look for a needle"),
        ("summary", "the needle was"),
        ("metadata", "nickname: needle-run"),
        ("metadata", "args.command: pytest -k needle"),
        ("metadata", "tags: needle"),
    ]
    assert [hit.field for hit in desk.find("needle", fields=frozenset({"summary"})).hits] == ["summary"]


# --- which versions ---


def test_by_default_each_object_answers_with_its_newest_match(desk: Desk) -> None:
    desk.put("needle 1", key="a")
    desk.put("needle 2", key="a")
    desk.put("gone", key="a")
    desk.put("needle", key="b")
    assert [(hit.where.id, hit.where.version, hit.where.current) for hit in desk.find("needle").hits] == [
        ("b", 1, True),
        ("a", 2, False),
    ]
    assert [(hit.where.id, hit.where.version) for hit in desk.find("needle", versions="all").hits] == [
        ("b", 1),
        ("a", 2),
        ("a", 1),
    ]
    assert [(hit.where.id, hit.where.version) for hit in desk.find("needle", versions="current").hits] == [("b", 1)]


def test_no_hit_is_on_two_pages(desk: Desk) -> None:
    for number in range(4):
        desk.put(f"needle {number}", key="a")
        desk.put("needle", key=f"b{number}")
    hits = desk.pages(Search(pattern="needle", limit=1))
    assert [(hit.where.id, hit.where.version) for hit in hits] == [("b3", 1), ("a", 4), ("b2", 1), ("b1", 1), ("b0", 1)]


def test_objects_that_are_gone_answer_unless_told_not_to(desk: Desk) -> None:
    desk.put("needle", key="a", path="x")
    desk.put(None, key="a", deleted=True)
    assert len(desk.find("needle").hits) == 1
    assert desk.find("needle", deleted=False).hits == ()


# --- filters ---


def test_filters_leave_out_without_reading(desk: Desk) -> None:
    desk.put("needle", path="/w/src/auth.py", session="s1", at=10)
    desk.put("needle", path="/w/src/deep/view.ts", session="s2", at=20)
    desk.put("needle", session="s2", at=30)

    def count(**asked: object) -> int:
        results = desk.find("needle", **asked)
        assert results.looked_into == len(results.hits)
        return len(results.hits)

    assert count(path="auth.py") == 1
    assert count(path="src") == 2
    assert count(path="*.ts") == 1
    assert count(path="src/*.ts") == 0
    assert count(path="src/**/*.ts") == 1
    assert count(session="s2") == 2
    assert count(since=20) == 2
    assert count(until=20) == 2
    assert count(types=frozenset({"file"})) == 0
    assert count(ids=frozenset({"call-1", "call-3", "nobody"})) == 2


def test_a_nickname_names_an_object_to_search_in(desk: Desk) -> None:
    desk.put("needle", nickname="notes")
    desk.put("needle")
    assert [hit.where.nickname for hit in desk.find("needle", ids=frozenset({"notes"})).hits] == ["notes"]


# --- pages, limits, time ---


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_together_are_the_whole(desk: Desk, limit: int) -> None:
    for number in range(9):
        desk.put("needle\n" * (number % 4), key=f"k{number % 5}", metadata={"said": "needle"})
    search = Search(pattern="needle", versions="all", limit=limit)
    assert places(desk.pages(search)) == scanned(desk, search)


def test_versions_stored_meanwhile_change_no_page(desk: Desk) -> None:
    for number in range(6):
        desk.put(f"needle {number}")
    first = desk.find("needle", limit=3)
    desk.put("needle, later")
    second = desk.find("needle", limit=3, after=first.next)
    assert [hit.match.text for hit in second.hits] == ["needle 2", "needle 1", "needle 0"]
    assert second.next is None


def test_a_version_gives_no_more_hits_than_asked_for(desk: Desk) -> None:
    desk.put("needle\n" * 10)
    desk.put("needle\n" * 10)
    assert [hit.match.line for hit in desk.find("needle", per_version=2).hits] == [1, 2, 1, 2]


def test_a_search_that_runs_out_of_time_says_so_and_can_go_on(desk: Desk) -> None:
    for number in range(5):
        desk.put(f"needle {number}")
    results = desk.find("needle", within=0.0)
    assert results.timed_out
    assert len(results.hits) == 1
    assert len(desk.pages(Search(pattern="needle", within=0.0))) == 5


class _Lossy(MemoryStore):
    """A store whose disk lets it down for one content."""

    def get(self, name: ContentHash) -> bytes:
        content = super().get(name)
        if content == b"needle, lost":
            raise StoreError("cannot be read")
        return content


def test_unreadable_content_is_named_and_does_not_stop_a_search() -> None:
    desk = Desk(_Lossy())
    desk.put("needle, kept")
    lost = desk.put("needle, lost")
    results = desk.find("needle")
    assert [hit.match.text for hit in results.hits] == ["needle, kept"]
    assert [(one.id, one.version, one.why) for one in results.unsearched] == [(lost.id, 1, "cannot be read")]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "(?=a)", "regex": True}, "lookahead"),
        ({"pattern": "a)(b", "regex": True}, "unexpected )"),
        ({"pattern": "a" * 1001, "regex": True}, "at most 1000"),
        ({"pattern": "a" * 10_001}, "at most 10000"),
        ({"pattern": "\ud800"}, "surrogate"),
        ({"pattern": "a", "limit": 0}, "1 to"),
        ({"pattern": "a", "after": "nonsense"}, "not the `next`"),
        ({"pattern": "a", "path": "x[z-a]*"}, "not a glob"),
    ],
)
def test_an_invalid_search_is_refused_with_a_reason(desk: Desk, asked: dict[str, object], said: str) -> None:
    desk.put("a", path="x")
    with pytest.raises(BadInput, match=said.replace("(", r"\(").replace(")", r"\)")):
        desk.searcher.search(Search(**asked))  # type: ignore[arg-type]


def test_a_refused_pattern_prints_nothing(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput):
        desk.find("(?<=a)b", regex=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(x+x+)+y", "([a-z]+)*[0-9]"])
def test_patterns_that_are_feared_elsewhere_answer_at_once(desk: Desk, pattern: str) -> None:
    desk.put("a" * 50_000 + "!")
    assert desk.find(pattern, regex=True, within=5.0).timed_out is False


# --- on a real store ---


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Desk]:
    store = SqliteStore(tmp_path / "store.pagein")
    yield indexed(tmp_path, store)
    store.close()


def test_a_real_store_is_searched_with_all_its_versions(kept: Desk) -> None:
    lines = [f"line {number}" for number in range(200)]
    for number in range(30):
        lines[number] = f"edited {number}"
        kept.put("\n".join(lines), key="file", path="src/a.txt")
    kept.build()
    assert [(hit.where.version, hit.match.line) for hit in kept.find("line 17").hits] == [
        (30, line) for line in range(171, 181)
    ]
    [hit] = kept.find("^line 17$", regex=True).hits
    assert (hit.where.version, hit.where.current) == (17, False)
    assert len(kept.pages(Search(pattern="edited 5", versions="all", limit=7))) == 25

"""What is ordered to be forgotten leaves the objects made from journals too, and following the journals brings nothing back."""

import json
import random
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from tests.memory.journal_stories import SessionStory, tell
from tests.memory.test_indexer import versions
from tests.memory.test_moved_objects import order
from tests.memory.told_journal import UNIQUE, Journal

from pagein import erasure
from pagein.memory.indexer import Indexer
from pagein.memory.object_orders import give_order
from pagein.model.entries import Entry, MessageEntry
from pagein.model.memory_notes import ObjectNameNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.search_query import Search
from pagein.model.versions import Draft, Writer
from pagein.model.writes import Query, Write
from pagein.policy.privacy.erasure import finder, forms_of
from pagein.store.search.store_search import StoreSearch
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.upkeep import check_store, reindex
from pagein.wiring import layers_of

SAID = "the dove lands at nine o'clock"
LINES = "north wind\nsilent harbour\nthird bench"
_SCHEMAS = count()


class IndiscreetStory(SessionStory):
    """A session that tells secrets in words, arguments, results, files, notes, paths and prompts."""

    def go_on(self) -> list[Entry]:
        return self.tells() if self._random.random() < 0.25 else super().go_on()

    def tells(self) -> list[Entry]:
        secret = self._random.choice((SAID, LINES))
        kind = self._random.randrange(6)
        if kind == 0 or self._leaf is None:
            long = "x" * self._random.randrange(130)
            return [self._message(Message("user", (Text(f"{long} {secret} and {self.name}"),)))]
        if kind == 1:
            return [self._message(Message("assistant", (Text(f"so {secret}"),), model="m-1"))]
        if kind == 2:
            return [self._message(Message("system", (Text(f"you know: {secret}"),)))]
        path = "/w/a.py" if kind == 3 else f"/w/{SAID}/plan.md" if kind == 4 else "/w/plan.md"
        text = f"# Plan\n{'y' * self._random.randrange(200)} {secret}\nsee [[b]] and #tag\n"
        call_id = f"toolu_{self.name}_{self._count}"
        if self._random.random() < 0.5:
            call = ToolCall(call_id, "Write", json.dumps({"file_path": path, "content": text}))
            result = ToolResult(call_id, "ok")
        else:
            call = ToolCall(call_id, "Read", json.dumps({"file_path": path}))
            lines = text.split("\n")[:-1]
            result = ToolResult(call_id, "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1)))
        asked = self._message(Message("assistant", (Text("step"), call), model="m-1"))
        return [asked, self._message(Message("user", (result,)))]


def live(store: SqliteUpkeep, seed: int) -> random.Random:
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    for _ in tell(store, [IndiscreetStory(name, random_) for name in "abc"], random_, 40):
        if random_.random() < 0.1:
            Indexer(store).catch_up()
            order(store, random_, ["plan", SAID])
    Indexer(store).catch_up()
    return random_


def shown(store: SqliteUpkeep, *texts: str) -> list[str]:
    """Places where a text is, exactly, in one line, or its beginning before an ellipsis."""
    finds = finder(texts, shortened=True)
    return [where for where, data in erasure._contents(store) if finds(data.decode("utf-8", "replace"))]


@pytest.fixture(params=[*range(4), "postgres"])
def seeded(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SqliteUpkeep | PostgresUpkeep, int]:
    if request.param == "postgres":
        return PostgresUpkeep(request.getfixturevalue("postgres"), f"forgotten_{next(_SCHEMAS)}"), 99
    return SqliteUpkeep(tmp_path / "one.pagein"), request.param


def ids_of_work(store: SqliteUpkeep) -> set[str]:
    """Objects whose ids do not follow from a path."""
    kinds = frozenset({"session", "chat", "user", "toolcall", "system_prompt"})
    return {one.id for one in store.objects(Query(types=kinds, limit=None))}


def left(done: erasure.ErasureReport) -> list[str]:
    return [one for one in done.left if not one.startswith("PostgreSQL")]


def test_a_forgotten_text_leaves_every_object(seeded: tuple[SqliteUpkeep, int], tmp_path: Path) -> None:
    store, seed = seeded
    with closing(store):
        random_ = live(store, seed)
        if seed % 2:
            store.drop_sessions([random_.choice("abc")])
        before = ids_of_work(store)
        assert shown(store, SAID)
        for text in (SAID, LINES):
            assert left(erasure.forget_texts(store, (text,), None, tmp_path / "log")) == []
            assert shown(store, text) == []
            assert check_store(store).findings == []
        assert not any(SAID in str(one.nickname) for one in store.objects(Query(limit=None)))
        told = versions(store)
        assert ids_of_work(store) == before
        reindex(store, layers_of(store))
        assert versions(store) == told
        assert shown(store, SAID, LINES) == []
        assert check_store(store).findings == []
        live_on = IndiscreetStory("d", random_)
        for _ in tell(store, [live_on], random_, 15):
            Indexer(store).catch_up()
        assert shown(store, SAID) == []
        assert Indexer(store).behind() == 0
        assert check_store(store).findings == []


class QuietStory(IndiscreetStory):
    """A session that tells secrets, and touches no notes."""

    def tells(self) -> list[Entry]:
        secret = self._random.choice((SAID, LINES))
        if self._leaf is None or self._random.random() < 0.5:
            return [self._message(Message("user", (Text(f"{self.name}: {secret}"),)))]
        call = ToolCall(
            f"toolu_{self.name}_{self._count}", "Write", json.dumps({"file_path": "/w/a.py", "content": secret})
        )
        asked = self._message(Message("assistant", (Text("step"), call), model="m-1"))
        return [asked, self._message(Message("user", (ToolResult(call.id, "ok"),)))]


class TalkStory(SessionStory):
    """A session that touches no files."""

    def go_on(self) -> list[Entry]:
        return [self.says() if self._random.random() < 0.5 else self.answers()]


@pytest.mark.parametrize("seed", range(8))
def test_only_what_can_hold_a_forgotten_text_is_made_again(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is that of making everything again. The objects of sessions without a file in common are not touched."""
    monkeypatch.setattr("tests.memory.journal_stories.PATHS", ("/w/a.py", "/w/b.py"))
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    teller = QuietStory("a", random_)
    stories = [teller, SessionStory("b", random_), *(TalkStory(name, random_) for name in "cd")]
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        for _ in tell(store, stories, random_, 60):
            if random_.random() < 0.1:
                Indexer(store).save_open_chats(2_000.0)
        store.append("a", teller.tells())
        Indexer(store).catch_up()
        others = [one.sequence for one in store.log() if one.writer.session in ("c", "d")]
        assert shown(store, SAID, LINES)
        for text in (SAID, LINES):
            assert erasure.forget_texts(store, (text,), None, tmp_path / "log").left == []
            assert shown(store, text) == []
            assert check_store(store).findings == []
        assert [one.sequence for one in store.log() if one.writer.session in ("c", "d")] == others
        told = versions(store)
        reindex(store, layers_of(store))
        assert versions(store) == told


@pytest.mark.parametrize("seed", range(4))
def test_stores_agree_on_the_sessions_that_belong_together(seed: int, tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as one, closing(MemoryUpkeep()) as other:
        for store in (one, other):
            random_ = random.Random(seed)  # noqa: S311 - not for secrets
            stories = [
                SessionStory("a", random_),
                *(TalkStory(name, random_) for name in "cd"),
                SessionStory("b", random_),
            ]
            for _ in tell(store, stories[: 3 + seed % 2], random_, 30):
                pass
            Indexer(store).catch_up()
        for names in ({"a"}, {"c"}, {"c", "d"}):
            groups = [store.sessions_together(names) for store in (one, other)]
            assert all(group is not None and names <= group.sessions for group in groups)
            assert groups[0] == groups[1]
        sizes = [[store.drop_objects_of_sessions({"a"}, 5) for _ in range(60)] for store in (one, other)]
        assert sizes[0] == sizes[1]
        assert sizes[0][0] == 5
        assert sizes[0][-1] == 0
        assert one.sessions_together({"a"}) == other.sessions_together({"a"})
        reindex(one, layers_of(one))


def _is_as_made_anew(store: SqliteUpkeep) -> bool:
    """Whether a check finds nothing, and making all objects again changes nothing."""
    told = versions(store)
    assert check_store(store).findings == []
    reindex(store, layers_of(store))
    return versions(store) == told


@pytest.mark.parametrize("kind", ["object_hash", "metadata_view_hash", "content_hash"])
def test_the_hash_of_a_forgotten_content_leaves_what_quotes_it(kind: str, tmp_path: Path) -> None:
    """A tool showed the hash of a program's object. The hash of a short text can be guessed."""
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        draft = Draft(id="01900000-0000-7000-8000-000000000001", type="doc", content=f"{SAID}, so come")
        store.write(Write("by-hand", draft, 900.0, writer=Writer("agent", "w", None)))
        made = store.current(draft.id)
        assert made is not None
        quoted = getattr(made, kind).hex
        journal = Journal(store, "b")
        journal.say("show it")
        journal.add(MessageEntry(Message("assistant", (ToolCall(UNIQUE, "Bash", '{"command":"pagein show doc"}'),))))
        journal.add(MessageEntry(Message("user", (ToolResult(UNIQUE, json.dumps({"hash": quoted}), "Bash"),))))
        journal.answer("done")
        Indexer(store).save_open_chats(5_000.0)
        assert erasure.forget_texts(store, (SAID,), None, tmp_path / "log").left == []
        assert [where for where, data in erasure._contents(store) if quoted.encode() in data] == []
        assert _is_as_made_anew(store)


def test_a_call_keeps_the_id_that_avoided_a_name_of_its_time(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        catch_up = Indexer(store).catch_up
        Journal(store, "b").say("hi")
        catch_up()
        (words,) = [one for one in store.objects(Query()) if one.type == "user"]
        give_order(store, ObjectNameNote(words.id, "call_1"), 2_000.0, catch_up)
        journal = Journal(store, "a")
        journal.say(f"so {SAID}")
        journal.write("call_1", "x")
        catch_up()
        give_order(store, ObjectNameNote(words.id, "other"), 3_000.0, catch_up)
        assert erasure.forget_texts(store, (SAID,), None, tmp_path / "log").left == []
        assert _is_as_made_anew(store)


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_followed_before_follows_what_was_rewritten(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    teller = QuietStory("a", random_)
    stories = [teller, SessionStory("b", random_)]
    with (
        closing(SqliteUpkeep(tmp_path / "one.pagein")) as store,
        closing(SqliteUpkeep(tmp_path / "one.pagein")) as other,
    ):
        indexer = Indexer(store)
        for _ in tell(store, stories, random_, 20):
            indexer.catch_up()
        store.append("a", teller.tells())
        indexer.catch_up()
        erasure.forget_texts(other, (SAID, LINES), None, tmp_path / "log")
        for _ in tell(store, stories, random_, 12):
            indexer.save_open_chats(6_000.0)
        assert check_store(other).findings == []


def test_a_text_that_is_nowhere_changes_nothing(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        live(store, 1)
        before = [(one.sequence, one.object_hash) for one in store.log()]
        assert erasure.forget_texts(store, ("nobody ever said this",), None, tmp_path / "log").left == []
        assert [(one.sequence, one.object_hash) for one in store.log()] == before
        assert check_store(store).findings == []


def test_a_forgotten_session_leaves_every_object(seeded: tuple[SqliteUpkeep, int], tmp_path: Path) -> None:
    store, seed = seeded
    with closing(store):
        random_ = live(store, seed)
        store.append(
            "b", [Entry("mine", None, MessageEntry(Message("user", (Text("only b said so much about pearls"),))))]
        )
        Indexer(store).catch_up()
        if seed % 2:
            store.drop_sessions([random_.choice("abc")])
        if seed % 4 > 1:
            (file,) = store.objects(Query(where={"path": "/w/a.py"}))
            store.write(Write("by hand", Draft(id=file.id, type="file", content="mine"), 9_000.0))
        assert shown(store, "about pearls")
        assert left(erasure.forget_session(store, "b", None, tmp_path / "log")) == []
        assert shown(store, "about pearls", "please do b") == []
        assert check_store(store).findings == []
        told = versions(store)
        reindex(store, layers_of(store))
        assert shown(store, "about pearls", "please do b") == []
        assert check_store(store).findings == []
        assert {one for one, *_ in versions(store)} == {one for one, *_ in told}


def test_a_search_finds_nothing_of_it(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        live(store, 5)
        with closing(StoreSearch(store)) as searcher:
            assert searcher.search(Search(pattern=SAID)).hits
            erasure.forget_texts(store, (SAID,), tmp_path / "one.pagein", tmp_path / "log")
            assert not searcher.search(Search(pattern=SAID)).hits


def test_a_text_behind_line_numbers_is_not_made_whole_again(tmp_path: Path) -> None:
    """The journal has it with line numbers, which is another text; the file that follows from it would have it exactly."""
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        story = IndiscreetStory("a", random.Random(1))  # noqa: S311 - not for secrets
        erasure.forget_texts(store, (LINES,), None, tmp_path / "log")
        store.append("a", story.begin())
        numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(LINES.split("\n"), 1))
        call = ToolCall("c1", "Read", json.dumps({"file_path": "/w/a.py"}))
        store.append("a", [story._message(Message("assistant", (call,)))])
        store.append("a", [story._message(Message("user", (ToolResult("c1", numbered),)))])
        assert Indexer(store).catch_up().behind == 0
        (file,) = store.objects(Query(where={"path": "/w/a.py"}))
        assert "forgotten]" in str(store.content(file))
        assert check_store(store).findings == []


def test_a_forgotten_name_is_no_name(tmp_path: Path) -> None:
    """Two objects never get one name by being forgotten."""
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        live(store, 4)
        one, other = store.objects(Query(types=frozenset({"session"}), limit=2))
        for object_, name in ((one, "secret one"), (other, "secret two")):
            give_order(store, ObjectNameNote(object_.id, name), 9_000.0, Indexer(store).catch_up)
        for name in ("secret one", "secret two"):
            assert erasure.forget_texts(store, (name,), None, tmp_path / "log").left == []
        assert [store.current(object_.id).nickname for object_ in (one, other)] == [None, None]  # type: ignore[union-attr]
        assert check_store(store).findings == []
        assert all(form not in str(store.log()) for form in forms_of("secret one"))


def test_a_forgotten_session_leaves_the_lines_of_others_as_short_as_they_were(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "s.pagein")) as store:
        for name in ("a", "b"):
            journal = Journal(store, name)
            journal.say("look")
            call = ToolCall(f"c-{name}", "Bash", json.dumps({"command": "ls"}))
            journal.add(MessageEntry(Message("assistant", (call,))))
            shown = " ".join(f"{name}{number * number}" for number in range(200))
            journal.add(MessageEntry(Message("user", (ToolResult(call.id, shown, "Bash"),))))
        Indexer(store).catch_up()
        before = {one.name: one.size for one in store.sessions()}
        erasure.forget_session(store, "a", None, tmp_path / "log")
        assert {one.name: one.size for one in store.sessions()}["b"] == before["b"]

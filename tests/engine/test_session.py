from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log.request_draft import NOBODY_SPOKE
from pagein.engine.prepared_request import WindowRequest
from pagein.engine.session import Session
from pagein.errors import HostError, NotRecallable, StoreError
from pagein.model.entries import Entry, EpochEntry
from pagein.model.messages import FileAccess, Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.model.objects import ObjectId, StoredObject
from pagein.providers.wire import check_messages
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.blob_store import an_object
from pagein.testing.eager_residency import eager
from pagein.testing.memory_journals import MemoryJournals

EAGER = Settings(eager(batch_tokens=1000, keep_calls=2, min_tokens=100))
ASK = Message("user", (Text("please"),))


class OneToken:
    """Every character is a token, so that sizes in tests are sizes in tokens."""

    def count(self, text: str, kind: str = "result") -> float:
        return len(text)


def engine(
    blobs: MemoryJournals | SqliteStore | None = None,
    *,
    settings: Settings = EAGER,
    kept: bool = False,
    workspace: str = "here",
) -> Engine:
    store = blobs if blobs is not None else MemoryJournals()
    return Engine(
        blobs=store, journals=store if kept else None, counter=OneToken(), settings=settings, workspace=workspace
    )


def turn(name: str, *results: str) -> list[Message]:
    """One assistant message with a call for each result, and the results."""
    names = [f"{name}-{number}" for number in range(len(results))]
    calls = tuple(ToolCall(one, "Bash", '{"command":"ls"}') for one in names)
    answers = [Message("tool", (ToolResult(one, text, "Bash"),)) for one, text in zip(names, results, strict=True)]
    return [Message("assistant", calls), *answers]


def body(mark: str, size: int = 600) -> str:
    return f"{mark} begins\n" + "x" * (size - len(mark) - 8)


def play(session: Session, messages: Sequence[Message]) -> list[WindowRequest]:
    """Say these; before each assistant message a request is prepared."""
    found = []
    for message in messages:
        if message.role == "assistant":
            found.append(session.advance())
        session.append(message)
    return found


def paged_out(session: Session) -> dict[str, str]:
    """Object ids by call id, of all that this session ever paged out."""
    return {
        one.call_id: one.object_id
        for entry in session.journal
        if isinstance(entry.body, EpochEntry)
        for one in entry.body.paged
    }


def texts(messages: Sequence[Message]) -> dict[str, str]:
    return {
        block.call_id: block.text for message in messages for block in message.blocks if isinstance(block, ToolResult)
    }


LONG = [ASK, *turn("a", body("a")), *turn("b", body("b")), *turn("c", body("c")), *turn("d", body("d"))]


def test_the_first_request_is_all_tail() -> None:
    session = engine().session("one")
    session.append(ASK)
    assert session.advance() == WindowRequest(keep=0, tail=(ASK,), epoch=0)
    assert session.last_request() == [ASK]


def test_within_an_epoch_each_request_extends_the_one_before() -> None:
    session = engine().session("one")
    play(session, LONG[:3])
    before = session.last_request()
    session.append(LONG[3])
    session.append(LONG[4])
    prepared = session.advance()
    assert prepared.keep == len(before)
    assert session.last_request() == [*before, *prepared.tail]


def test_old_results_leave_in_one_batch_and_the_frontier_says_where() -> None:
    session = engine().session("one")
    *quiet, last = play(session, LONG)
    assert [one.opened for one in quiet] == [None] * 3
    assert last.opened is None
    prepared = session.advance()
    assert prepared.opened is not None
    assert [one.call_id for one in prepared.opened.paged] == ["a-0", "b-0"]
    assert prepared.opened.frontier == prepared.keep == 2
    assert prepared.epoch == 1
    shown = texts(session.last_request())
    assert shown["a-0"].startswith("[pagein: pg-")
    assert "| Bash | 600 tokens | a begins - 2 lines]" in shown["a-0"]
    assert shown["c-0"] == body("c")
    assert session.advance() == WindowRequest(keep=prepared.length, tail=(), epoch=1)


def test_only_the_content_of_results_changes() -> None:
    session = engine().session("one")
    play(session, LONG)
    before = session.last_request()
    session.advance()
    after = session.last_request()
    assert [message.role for message in before] == [message.role for message in after[: len(before)]]
    for one, other in zip(before, after, strict=False):
        for left, right in zip(one.blocks, other.blocks, strict=True):
            if isinstance(left, ToolResult) and isinstance(right, ToolResult):
                assert (left.call_id, left.name, left.is_error) == (right.call_id, right.name, right.is_error)
            else:
                assert left == right


@pytest.mark.parametrize(
    "kept",
    [
        [
            Message("assistant", (ToolCall("s", "Bash", '{"command":"cat .env"}'),)),
            Message("tool", (ToolResult("s", body("s")),)),
        ],
        [
            Message("assistant", (ToolCall("s", "Read", "{}", (FileAccess("read", "k.pem"),)),)),
            Message("tool", (ToolResult("s", body("s")),)),
        ],
        [
            Message("assistant", (ToolCall("s", "Bash", "{}"),)),
            Message("tool", (ToolResult("s", body("s"), is_error=True),)),
        ],
        [
            Message("assistant", (ToolCall("s", "Bash", "{}"),)),
            Message("tool", (ToolResult("s", body("s"), images=(Image("image/png", 9, "data"),)),)),
        ],
        [Message("assistant", (ToolCall("s", "Bash", "{}"),)), Message("tool", (ToolResult("s", body("s", 320)),))],
    ],
    ids=["secrets by name", "secrets by path", "an error", "with an image", "no longer than a stub"],
)
def test_some_results_stay_whatever_their_age(kept: list[Message]) -> None:
    session = engine().session("one")
    play(session, [ASK, *kept, *LONG[1:], *turn("e", body("e")), *turn("f", body("f"))])
    session.advance()
    assert "a-0" in paged_out(session)
    assert "s" not in paged_out(session)
    assert not session.may_leave("s")
    (block,) = session.last_request()[2].blocks
    assert block == kept[1].blocks[0]


def test_thinking_arguments_and_blocks_unknown_to_us_stay() -> None:
    said = Message("assistant", (Thinking("hm", "signed"), Other("web_search", '{"a":1}'), *turn("z", "")[0].blocks))
    session = engine().session("one")
    play(session, [ASK, said, Message("tool", (ToolResult("z-0", body("z")),)), *LONG[1:]])
    session.advance()
    assert "z-0" in paged_out(session)
    assert session.last_request()[1] == said


def test_what_left_is_recalled_byte_for_byte() -> None:
    hard = "\ud800 lone, \0 nul, \r\n crlf, \ufeff bom \U0001f600 " * 20
    session = engine().session("one")
    play(session, [ASK, *turn("a", hard), *turn("b", body("b")), *LONG[5:], *turn("e", body("e"))])
    session.advance()
    assert session.recall(paged_out(session)["a-0"]) == hard


def test_a_recall_is_journaled() -> None:
    session = engine().session("one")
    play(session, LONG)
    session.advance()
    name = paged_out(session)["a-0"]
    session.recall(name)
    assert session.leaf is not None
    assert session.journal.entry(session.leaf).body.object_id == name  # type: ignore[union-attr]  # a Recalled


def test_another_process_recalls_by_id_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    with pagein.open(store=path, workspace=tmp_path, counter=OneToken(), settings=EAGER) as first:
        session = first.session("one")
        play(session, LONG)
        session.advance()
        names = paged_out(session)
    with pagein.open(store=path, workspace=tmp_path) as second:
        assert second.recall(names["a-0"]) == body("a")
        assert second.session("two").recall(names["b-0"]) == body("b")


def test_the_same_content_session_and_call_have_one_id_in_every_process() -> None:
    store = MemoryJournals()
    ids = []
    for _ in range(2):
        session = engine(store).session("one")
        play(session, LONG)
        session.advance()
        ids.append(paged_out(session))
    assert ids[0] == ids[1]


@pytest.mark.damages_store
def test_why_something_cannot_be_recalled_is_told_apart(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "one.pagein"), SqliteStore(tmp_path / "two.pagein")
    session = engine(store).session("one")
    gone = an_object(store, b"never stored")
    foreign = an_object(store, b"theirs", workspace="theirs")
    store.put_objects([(foreign, b"theirs")])
    beside = an_object(other, b"beside")
    other.put_objects([(beside, b"beside")])
    collected = an_object(store, b"collected", workspace="here")
    store.put_objects([(collected, b"collected")])
    with store._database.open_writer() as connection:
        connection.execute("DELETE FROM blob WHERE hash = ?", (bytes.fromhex(collected.content.hex),))
    reasons = {
        "never existed": "pg-01234567-89abcdef",
        "not an object id": "the file I saw",
        "expired: this store made it": str(gone.id),
        "expired: its content": str(collected.id),
        "another workspace": str(foreign.id),
        "belongs to another workspace": str(beside.id),
    }
    for reason, name in reasons.items():
        with pytest.raises(NotRecallable, match=reason):
            session.recall(name)


class Failing(MemoryJournals):
    """A store whose disk is full until told otherwise."""

    broken = True

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        if self.broken:
            raise StoreError("disk full")
        return super().put_objects(objects)

    def append(self, session: str, entries: Sequence[Entry]) -> int:
        if self.broken:
            raise StoreError("disk full")
        return super().append(session, entries)


def test_when_the_store_fails_nothing_leaves_and_the_failure_is_reported() -> None:
    store = Failing()
    session = engine(store).session("one")
    play(session, LONG)
    before = session.last_request()
    prepared = session.advance()
    assert prepared.opened is None
    assert prepared.epoch == 0
    assert prepared.failure is not None
    assert "disk full" in prepared.failure
    assert prepared.keep == len(before)
    assert session.last_request() == LONG
    store.broken = False
    assert session.advance().opened is not None


def test_when_the_journal_cannot_be_kept_the_request_goes_out_and_it_is_tried_again() -> None:
    store = Failing()
    session = engine(store, kept=True).session("one")
    session.append(ASK)
    prepared = session.advance()
    assert prepared.tail == (ASK,)
    assert prepared.failure is not None
    store.broken = False
    assert session.advance().failure is None
    assert len(list(store.entries("one"))) == len(session.journal)


def test_an_order_that_cannot_be_kept_holds_at_once_and_tells_why() -> None:
    store = Failing()
    session = engine(store, kept=True).session("one")
    session.append(ASK)
    assert "disk full" in (session.hand.say("Be kind.") or "")
    assert [text for _, text in session.hand.wishes.texts] == ["Be kind."]
    store.broken = False
    assert session.hand.unsay("Be kind.") is None


class Colliding(MemoryJournals):
    """A store in which the first id that is tried for anything is taken."""

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        for stored, _ in objects:
            if stored.description.startswith("Bash: a") and len(self._objects) == 0:
                taken = an_object(self, b"something else")
                self._objects[stored.id] = taken
        return super().put_objects(objects)


def test_an_id_that_is_taken_is_not_used_twice() -> None:
    session = engine(Colliding()).session("one")
    play(session, LONG)
    assert session.advance().opened is not None
    assert session.recall(paged_out(session)["a-0"]) == body("a")
    assert session.recall(paged_out(session)["b-0"]) == body("b")


def test_a_compaction_leaves_the_system_prompt_and_what_was_kept() -> None:
    system = Message("system", (Text("be good"),))
    session = engine().session("one")
    play(session, [system, *LONG])
    session.advance()
    session.note_compaction(kept=2)
    summary = Message("user", (Text("what happened so far", "compact_summary"),))
    session.append(summary)
    prepared = session.advance()
    assert prepared.keep == 1
    assert prepared.epoch == 2
    assert prepared.opened is None
    rendering = session.last_request()
    assert [message.role for message in rendering] == ["system", "user", "assistant", "tool", "user"]
    assert rendering[1].blocks == (Text(NOBODY_SPOKE, injected="repair"),)
    assert [rendering[0], *rendering[2:]] == [system, *LONG[-2:], summary]
    assert check_messages(rendering) == []


def test_what_was_paged_out_stays_so_behind_a_compaction_that_keeps_it() -> None:
    session = engine().session("one")
    play(session, LONG)
    session.advance()
    stubs = {name: text for name, text in texts(session.last_request()).items() if name in paged_out(session)}
    session.note_compaction(kept=len(LONG))
    session.advance()
    assert texts(session.last_request()).items() >= stubs.items()
    assert len(session.last_request()) == len(LONG)


def test_what_a_compaction_kept_grows_old_as_before() -> None:
    session = engine().session("one")
    play(session, LONG[:5])
    session.note_compaction(kept=4)
    play(session, LONG[5:])
    assert {one.call_id for one in (session.advance().opened or EpochEntry(0, 0, ())).paged} == {"a-0", "b-0"}


def test_what_was_old_before_a_compaction_may_leave_right_behind_it() -> None:
    session = engine().session("one")
    play(session, LONG)
    session.note_compaction(kept=len(LONG))
    assert {one.call_id for one in (session.advance().opened or EpochEntry(0, 0, ())).paged} == {"a-0", "b-0"}


def test_keeping_a_negative_number_of_messages_is_the_hosts_error() -> None:
    with pytest.raises(HostError, match="-1"):
        engine().session("one").note_compaction(kept=-1)


def test_another_branch_shares_what_it_shares_and_no_more() -> None:
    session = engine().session("one")
    play(session, LONG)
    fork = session.leaf
    session.advance()
    assert paged_out(session)
    session.move(fork)
    other = Message("user", (Text("otherwise"),))
    session.append(other)
    prepared = session.advance()
    # The branch had not decided anything yet: it decides for itself, and the same.
    assert prepared.opened is not None
    assert prepared.epoch == 1
    assert session.last_request()[-1] == other


def test_a_session_goes_on_in_another_process_as_if_nothing_had_happened(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    # On the same store, for ids are keyed with its secret; this session leaves no journal there.
    with engine(SqliteStore(path)) as whole:
        alone = whole.session("one")
        play(alone, LONG)
        alone.advance()
        expected = alone.last_request()
        assert paged_out(alone)
    for message in LONG:
        with engine(SqliteStore(path), kept=True) as part:
            session = part.session("one")
            play(session, [message])
            session.keep()
    for opened in (True, False):
        with engine(SqliteStore(path), kept=True) as part:
            session = part.session("one")
            assert (session.advance().opened is not None) is opened
            assert session.last_request() == expected


def test_a_request_says_only_what_is_new_however_long_the_session() -> None:
    settings = Settings(eager(batch_tokens=10**9, keep_calls=2))
    session = engine(settings=settings).session("one")
    session.append(ASK)
    for number in range(3000):
        tail = session.advance().tail
        assert len(tail) <= 2
        for message in turn(str(number), "x" * 400):
            session.append(message)


OPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.lists(st.integers(1, 1500), max_size=3)),
        st.tuples(st.just("ask"), st.just([])),
        st.tuples(st.just("prepare"), st.just([])),
        st.tuples(st.just("orphan"), st.just([])),
        st.tuples(st.just("dangling"), st.just([])),
        st.tuples(st.just("compact"), st.lists(st.integers(0, 6), min_size=1, max_size=1)),
        st.tuples(st.just("back"), st.lists(st.integers(0, 40), min_size=1, max_size=1)),
    ),
    max_size=40,
)


def _prepare_and_check(session: Session, said: dict[str, set[str]]) -> None:
    """The request is valid, is what it says of the one before, and what it lacks can be had."""
    before = session.last_request()
    prepared = session.advance()
    rendering = session.last_request()
    assert rendering == [*before[: prepared.keep], *prepared.tail]
    assert prepared.failure is None
    assert check_messages(rendering) == []
    for name, object_id in paged_out(session).items():
        assert session.recall(object_id) in said[name]


def _do(session: Session, op: str, values: list[int], number: int, said: dict[str, set[str]]) -> None:
    if op == "turn":
        results = [body(f"r{number}-{place}", size) if size > 30 else "x" * size for place, size in enumerate(values)]
        for message in turn(str(number), *results):
            session.append(message)
        for place, text in enumerate(results):
            said.setdefault(f"{number}-{place}", set()).add(text)
    elif op == "ask":
        session.append(Message("user", (Text(f"ask {number}"),)))
    elif op == "orphan":
        session.append(Message("tool", (ToolResult(f"gone-{number}", "x" * 500),)))
    elif op == "dangling":
        session.append(Message("assistant", (ToolCall(f"dangling-{number}", "Bash", "{}"),)))
    elif op == "compact":
        session.note_compaction(kept=values[0])
    elif op == "back":
        branch = session.journal.branch(session.leaf)
        session.move(branch[-1 - values[0]].id if values[0] < len(branch) else None)


@settings(deadline=None)
@given(OPS)
def test_on_any_tree_requests_are_valid_frozen_and_lossless(ops: list[tuple[str, list[int]]]) -> None:
    session = engine().session("one")
    said: dict[str, set[str]] = {}
    for number, (op, values) in enumerate(ops):
        if op == "prepare":
            _prepare_and_check(session, said)
        else:
            _do(session, op, values, number, said)


@settings(deadline=None)
@given(OPS)
def test_within_an_epoch_requests_only_grow(ops: list[tuple[str, list[int]]]) -> None:
    session = engine().session("one")
    said: dict[str, set[str]] = {}
    last = WindowRequest(0, (), 0)
    for number, (op, values) in enumerate(one for one in ops if one[0] != "back"):
        _do(session, op, values, number, said)
        prepared = session.advance()
        if prepared.epoch == last.epoch:
            assert prepared.keep == last.length
        elif prepared.opened is not None and op != "compact":
            assert prepared.keep == prepared.opened.frontier
        last = prepared

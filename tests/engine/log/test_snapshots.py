"""A session that continues from a snapshot has the same states and bytes as without the snapshot."""

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.call_counts import counted
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.cache.cache_breakpoints import OwnEntries
from pagein.engine.cache.cached_prefix import CachedPrefix as Lease
from pagein.engine.engine import Engine, Settings
from pagein.engine.intake.message_chain import KnownMessages
from pagein.engine.log import snapshots
from pagein.engine.log.holdings import Holdings
from pagein.engine.log.lazy_messages import Unread
from pagein.engine.log.state import State
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.reread_notes import ClientReadState
from pagein.engine.reads.session_guards import ServedRead, ServedSearch
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.sent_changes import RenderedWindow
from pagein.engine.send.splice import SpliceMemory
from pagein.engine.session import Session
from pagein.errors import BadInput, StoreError
from pagein.model.graphs import Graphs
from pagein.model.journal_notes import BreakpointChoice, PrefixDigests
from pagein.model.messages import Message, Text, Usage
from pagein.policy.clients.profile import Profile
from pagein.policy.guards.judgement import ReadAsk
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60))
BIG = "word " * 400


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 6)


def opened(folder: Path, name: str = "store.db") -> Engine:
    return pagein.open(folder / name, workspace=folder, settings=EAGER)


def body(turns: int, manner: Manner | None = None) -> bytes:
    talk = Conversation("please do it")
    for turn in range(turns):
        talk = talk.then(Turn(f"on it {turn % 5}", (f"{turn} {BIG}",)))
    return clients.body(talk, "anthropic", manner or Manner(marks=1))


def ask(engine: Engine, turns: int, at: float | None = None) -> bytes:
    prepared = engine.prepare(body(turns), "anthropic", at=at or 10.0 * turns, hint="one")
    assert prepared.failure is None
    assert engine.observe(prepared, Usage(fresh=10, written=900 * turns)).failure is None
    return prepared.body


def states(session: Session) -> dict[str, bytes]:
    """All states of a session where it stands, with all that they hold, as bytes."""
    leaf = session.leaf
    assert leaf is not None
    graphs = snapshots._graphs()
    return {name: graphs.encode(_looked_at(at(leaf))) for name, at in sorted(session.journal.folds.items())}


def _looked_at(state: object) -> object:
    """The same state, with all messages of its window read."""
    seen, waiting = set[int](), [state]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, str | int | float | None):
            continue
        seen.add(id(one))
        if isinstance(one, Message):
            assert one.role
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, tuple | list):
            waiting += one
        else:
            names = getattr(type(one), "__slots__", ())
            waiting += [getattr(one, name) for name in names if isinstance(name, str) and not name.startswith("__")]
    return state


def rows(folder: Path, statement: str, *values: object) -> list[Any]:
    with sqlite3.connect(folder / "store.db") as connection:
        found = connection.execute(statement, values).fetchall()
    connection.close()
    return found


def drop(folder: Path) -> None:
    assert rows(folder, "SELECT count(*) FROM snapshot")[0][0] == 1
    rows(folder, "DELETE FROM snapshot")


STEPS = st.lists(
    st.sampled_from(["turn", "turn", "turn", "fork", "pin", "drop", "compact", "exchange", "recall", "restart"]),
    min_size=6,
    max_size=16,
)


def test_what_the_guards_counted_is_part_of_a_snapshot(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        ask(engine, 3)
        guards = engine.session("one").guards
        guards.note_search(ServedSearch("needle", ["a.py"], 1, "code"))
        guards.note_read(guards.judge(ReadAsk("file", "a.py")), ServedRead("file", "a.py", 1, 9, 9, 90, content="text"))
        for turns in range(4, 9):
            ask(engine, turns)
        known = guards.state
    with opened(tmp_path) as engine:
        session = engine.session("one")
        assert session.guards.state == known
        assert known.metrics.reads == 1
        assert not session.journal.is_loaded


@given(steps=STEPS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_with_a_snapshot_a_session_is_what_it_is_without(  # noqa: PLR0915 -- a step each
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("s")
    engine, turns = opened(folder), 3
    ask(engine, turns)
    for at, step in enumerate(steps):
        session = engine.session("one")
        match step:
            case "turn":
                turns += 1
                ask(engine, turns, 100.0 * at)
            case "fork":
                turns = max(2, turns - 2)
                ask(engine, turns, 100.0 * at)
            case "pin" | "drop":
                with contextlib.suppress(BadInput, IndexError):  # there is nothing, or it is out already
                    getattr(session.hand, step)(_calls(session)[-2].id)
            case "compact":
                session.compact()
            case "exchange":
                prepared = engine.prepare(body(turns), "anthropic", at=100.0 * at, hint="one")
                said = b'{"role":"assistant","content":[{"type":"text","text":"hm"}]}'
                assert engine.splice_answer(prepared, RecallExchange((said,), (said, said))) is None
            case "recall":
                away = list(session.journal.state_at(session.leaf).hand.away.values())
                if away:
                    session.recall(away[0].object_id)
                    session.keep()
            case _:
                engine.close()
                engine = opened(folder)
    ask(engine, turns + 1, 1e5)
    ask(engine, turns + 2, 1e5 + 10)
    engine.close()
    with opened(folder) as one:
        assert one.session("one").journal.restored is not None
        one.prepare(body(turns + 2), "anthropic", at=2e5, hint="one")  # all folds are there
        fast, leaf = states(one.session("one")), one.session("one").leaf
        next_fast = one.prepare(body(turns + 3), "anthropic", at=3e5, hint="two").body
    drop(folder)
    with opened(folder) as other:
        assert other.session("one").journal.restored is None
        other.prepare(body(turns + 2), "anthropic", at=2e5, hint="one")
        assert other.session("one").leaf == leaf
        assert states(other.session("one")) == fast
        assert other.prepare(body(turns + 3), "anthropic", at=3e5, hint="two").body == next_fast


def _calls(session: Session) -> list[Any]:
    blocks = [block for one in session.window() for block in one.blocks]
    return [block for block in blocks if hasattr(block, "arguments")]


def test_the_next_requests_are_the_same_bytes_with_and_without(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for turns in range(1, 12):
            last = ask(engine, turns)
    with opened(tmp_path) as engine:
        assert engine.session("one").journal.restored is not None
        assert engine.prepare(body(11), "anthropic", at=1.0, hint="one").body == last
        assert not engine.session("one").journal.is_loaded
    (tmp_path / "copy.db").write_bytes((tmp_path / "store.db").read_bytes())
    drop(tmp_path)
    found = []
    for name in ("store.db", "copy.db"):
        with opened(tmp_path, name) as engine:
            found.append([ask(engine, turns) for turns in (12, 13, 5, 14)])
    assert found[0] == found[1]


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: rows(folder, "UPDATE snapshot SET version = 'of other code'"),
        lambda folder: rows(
            folder, "UPDATE snapshot SET data = ?", _flip(rows(folder, "SELECT data FROM snapshot")[0][0])
        ),
        lambda folder: rows(folder, "UPDATE snapshot SET data = substr(data, 1, 100)"),
        lambda folder: rows(folder, "UPDATE snapshot SET codec = 0, data = x''"),
        lambda folder: rows(folder, "UPDATE snapshot SET codec = 9"),
        lambda folder: rows(folder, "DELETE FROM snapshot"),
    ],
    ids=["other code", "flipped", "cut", "empty", "codec", "dropped"],
)
def test_one_that_cannot_be_used_is_none(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for turns in range(1, 9):
            last = ask(engine, turns)
    assert rows(tmp_path, "SELECT count(*) FROM snapshot")[0][0] == 1
    spoil(tmp_path)
    with opened(tmp_path) as engine:
        assert engine.session("one").journal.restored is None
        assert engine.prepare(body(8), "anthropic", at=1.0, hint="one").body == last


@pytest.mark.damages_store
@pytest.mark.parametrize(
    "deed", ["DELETE FROM journal WHERE number = 2", "UPDATE journal SET codec = codec WHERE number = 2"]
)
def test_an_entry_that_is_changed_or_dropped_takes_the_snapshot_along(deed: str, tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for turns in range(1, 9):
            ask(engine, turns)
    rows(tmp_path, deed)
    assert rows(tmp_path, "SELECT count(*) FROM snapshot")[0][0] == 0


def test_what_must_not_be_stored_is_in_no_snapshot(tmp_path: Path) -> None:
    secret = "SECRET-OF-THE-USER-1234567"  # noqa: S105 -- nobody's
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "cat .env"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": f"KEY={secret}\n" * 30}]},
    ]
    with opened(tmp_path) as engine:
        for turn in range(8):
            given = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": said}
            prepared = engine.prepare(json.dumps(given).encode(), "anthropic", at=float(turn), hint="one")
            assert prepared.failure is None
            engine.observe(prepared, Usage(fresh=10))
            said = [*said, {"role": "assistant", "content": f"so {turn}"}, {"role": "user", "content": "on"}]
    from pagein.store.sql.packed_bytes import unpack

    ((codec, data),) = rows(tmp_path, "SELECT codec, data FROM snapshot")
    assert secret.encode() not in unpack(codec, data)


def test_where_something_was_ordered_to_be_forgotten_meanwhile_nothing_remembered_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for turns in range(1, 4):
            ask(engine, turns)
        rows(tmp_path, "DELETE FROM snapshot")
        session = engine.session("one")
        session._log._snapshots._known = 0
        sent = engine.prepare(body(3), "anthropic", at=1e3, hint="one").entry
        assert sent is not None
        take = session._log.snapshot(sent, lambda: session.traffic._stages.snapshot_values(sent))
        assert take is not None
        rows(tmp_path, "UPDATE forgetting SET count = count + 1")
        with pytest.raises(StoreError, match="forgotten"):
            take()
    assert rows(tmp_path, "SELECT count(*) FROM snapshot")[0][0] == 0


def test_to_take_a_session_up_again_neither_folds_nor_reads_what_was_said_before(tmp_path: Path) -> None:
    """Counted: entries decoded, folded and messages parsed, behind sessions of two lengths."""

    def calls(turns: int) -> Counter[str]:
        folder = tmp_path / str(turns)
        folder.mkdir()
        with opened(folder) as engine:
            for count in (turns - 1, turns):
                ask(engine, count)
        with opened(folder) as engine:
            prepared, found = counted(lambda: engine.prepare(body(turns + 1), "anthropic", at=1e4, hint="one"))
            assert prepared.placed == "continued"
            assert not engine.session("one").journal.is_loaded
        return found

    few, many = calls(12), calls(90)
    for name in ("step", "decode_entry", "message_of", "chain_name", "_add_message"):
        assert many[name] <= few[name] + 2, name


def test_where_somebody_goes_back_behind_a_snapshot_the_journal_is_read(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for turns in range(1, 12):
            ask(engine, turns)
    with opened(tmp_path) as engine:
        ask(engine, 12)
        assert not engine.session("one").journal.is_loaded
        ask(engine, 3)
        other = Conversation("please do it").then(Turn("on it 0", (f"0 {BIG}",))).then(Turn("else", (BIG,)))
        forked = engine.prepare(clients.body(other, "anthropic", Manner(marks=1)), "anthropic", at=9e4, hint="one")
        assert (forked.placed, forked.failure) == ("forked", None)
        journal = engine.session("one").journal
        assert journal.is_loaded
        assert len(list(journal)) == len(journal)


def test_sessions_that_are_short_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 2_000)
    with opened(tmp_path) as engine:
        for turns in range(1, 9):
            ask(engine, turns)
    assert rows(tmp_path, "SELECT count(*) FROM snapshot")[0][0] == 0


def test_a_message_is_read_when_it_is_looked_at() -> None:
    asked: list[int] = []
    plain = Message("user", (Text("words"),), id="m1")

    def read(place: int) -> Message:
        asked.append(place)
        return plain

    def messages() -> Iterator[Message]:
        while True:
            asked.clear()
            yield Unread.of(read, 1)

    made = messages()
    assert [next(made) == plain, plain == next(made), next(made).id == "m1", hash(next(made)) == hash(plain)] == [
        True
    ] * 4
    one = next(made)
    assert asked == []
    assert (one.role, one.blocks, asked) == ("user", plain.blocks, [1])
    assert type(one) is Message
    assert (one.id, asked) == ("m1", [1])


def test_graphs_keep_what_is_shared_and_refuse_what_they_do_not_know() -> None:
    graphs = Graphs([Message, Text])
    text = Text("x")
    shared: dict[str, Any] = {"one": (text, text), "two": [text, {"n": 1, "f": 1.0, "b": True, "none": None}]}
    found = graphs.decode(graphs.encode(shared), lambda _: None)
    assert found == shared
    assert found["one"][0] is found["one"][1] is found["two"][0]
    assert [type(one) for one in found["two"][1].values()] == [int, float, bool, type(None)]
    with pytest.raises(BadInput, match="cannot be kept"):
        graphs.encode([object()])
    with pytest.raises(BadInput, match="cannot be kept"):
        Graphs([]).encode(text)


@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_graph_are_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        Graphs([Message, Text]).decode(data, lambda _: None)


def test_a_session_in_which_files_were_read_has_one(tmp_path: Path) -> None:
    """What is known of files is a state, too: views of reads in parts, of edits, of reads again."""

    def lines(first: int, last: int) -> str:
        return "".join(f"{line:6}\tline {line} of the file\n" for line in range(first, last + 1))

    steps = [
        ("Read", {"file_path": "/w/a"}, lines(1, 40)),
        ("Read", {"file_path": "/w/b", "offset": 3, "limit": 9}, lines(3, 11)),
        (
            "Edit",
            {"file_path": "/w/a", "old_string": "line 7 of", "new_string": "LINE 7 of"},
            "The file /w/a has been updated.",
        ),
        ("Read", {"file_path": "/w/a"}, lines(1, 6) + "     7\tLINE 7 of the file\n" + lines(8, 40)),
        ("Write", {"file_path": "/w/c", "content": "new\n" * 9}, "File created successfully at: /w/c"),
        ("Read", {"file_path": "/w/b"}, lines(1, 30)),
    ]
    said: list[dict[str, Any]] = [{"role": "user", "content": "look"}]
    arguments = ("file_path", "offset", "limit", "old_string", "new_string", "content")
    schema = {"type": "object", "properties": {one: {} for one in arguments}}
    tools = [{"name": name, "description": "", "input_schema": schema} for name in ("Read", "Edit", "Write", "Bash")]
    asked = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools}
    with opened(tmp_path) as engine:
        for turn, (name, given_to, result) in enumerate(steps):
            call = {"type": "tool_use", "id": f"c{turn}", "name": name, "input": given_to}
            answer = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": result}
            said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
            last = json.dumps({**asked, "messages": said}).encode()
            prepared = engine.prepare(last, "anthropic", at=float(turn), hint="one")
            assert prepared.failure is None
            engine.observe(prepared, Usage(fresh=10))
        assert engine.session("one").window_files.client.chains
    with opened(tmp_path) as engine:
        assert engine.session("one").journal.restored is not None
        assert engine.prepare(last, "anthropic", at=9.0, hint="one").body == prepared.body


def test_all_that_a_state_may_hold_can_be_kept() -> None:
    """By what the fields of states say they hold. A class that is missing here keeps whole sessions without a snapshot, silently."""
    graphs = snapshots._graphs()
    waiting: list[Any] = [
        State,
        Evidence,
        ClientReadState,
        Holdings,
        OwnEntries,
        BreakpointChoice,
        Lease,
        PrefixDigests,
        KnownMessages,
        SpliceMemory,
        RenderedWindow,
    ]
    seen, missing = set[Any](), set[str]()
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        kind: Any = get_origin(one) or one
        if kind in seen or not (is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))):
            continue
        seen.add(kind)
        if kind is Profile:  # both sides have these, by name
            continue
        if kind not in graphs._numbers:
            missing.add(str(kind))
        hints = get_type_hints(kind)
        derived = {field.name for field in fields(kind) if not field.init} if is_dataclass(kind) else set[str]()
        waiting += [hint for name, hint in hints.items() if name not in derived]
    assert missing == set()
    assert len(seen) > 60

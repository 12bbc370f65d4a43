"""pagein's breakpoints are where a request is rewritten, so that its epoch and the next one read as much as possible."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.cache import cache_breakpoints
from pagein.engine.cache.cache_breakpoints import NOTHING_LEFT, OwnEntries, chosen_for
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.model.entries import CompactionEntry, NoteEntry
from pagein.model.journal_notes import BreakpointChoice
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.testing.eager_residency import eager

RESIDENCY = eager(batch_tokens=6000, keep_calls=2, min_tokens=60)
EXTENDED, RESPECTED = Settings(RESIDENCY), Settings(RESIDENCY, marks="respected")
BIG = "word " * 1500
SYSTEM = "You work on a repository. " * 400
MARK = b'"cache_control"'
TOOL = {"name": "Lookup", "input_schema": {"type": "object", "properties": {"a": {}}}}
PEEK = ToolOffer("peek", "Bring back what was paged out.")
WRITTEN, READ = 1.25, 0.1
LIFETIMES = st.sampled_from([None, "5m", "1h"])


def opened(folder: Path, used: Settings = EXTENDED) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=used)


def worked(turns: int, results: int = 1) -> Conversation:
    talk = Conversation("please do it")
    for place in range(turns):
        talk = talk.then(Turn("on it", (f"{place} {BIG}",) * results))
    return talk


def asked(talk: Conversation, marks: Sequence[str | None] = ("5m",), **fields: object) -> bytes:
    """A request whose last messages are marked, each for as long as is said."""
    body: dict[str, Any] = json.loads(clients.body(talk, "anthropic", Manner(marks=0, system=SYSTEM)))
    for message, lifetime in zip(reversed(body["messages"]), reversed(marks), strict=False):
        if lifetime is not None:
            message["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": lifetime}
    return json.dumps({**body, **fields}).encode()


def ask(engine: Engine, turns: int, at: float | None = None, **fields: object) -> PreparedRequest:
    offers = (PEEK,) if "tools" in fields else None
    moment = 20.0 * turns if at is None else at
    body = asked(worked(turns), **fields)  # type: ignore[arg-type]
    prepared = engine.prepare(body, "anthropic", at=moment, hint="one", offers=offers)
    assert prepared.failure is None
    assert check_body(prepared.request, "anthropic") == []
    return prepared


def read_by(engine: Engine, turns: int) -> Iterator[tuple[PreparedRequest, float, int]]:
    """Each request of a conversation, what the simulated cache reads of it, and its tokens."""
    for count in range(turns):
        prepared = ask(engine, count)
        size = len(prepared.body) // 4
        yield prepared, engine.observe(prepared, Usage(fresh=size)).predicted, size


def places(body: bytes) -> list[tuple[int, int]]:
    """Where the messages of a request are marked."""
    return [
        (item, block)
        for item, message in enumerate(json.loads(body)["messages"])
        for block, one in enumerate(message["content"])
        if "cache_control" in one
    ]


def test_each_epoch_reads_what_stands_in_front_of_its_first_change_and_no_request_reads_less(tmp_path: Path) -> None:
    with opened(tmp_path / "ours") as ours, opened(tmp_path / "theirs", RESPECTED) as theirs:
        mine, plain = list(read_by(ours, 24)), list(read_by(theirs, 24))
    epochs = [place for place, (one, _, _) in enumerate(mine) if one.opened]
    assert len(epochs) > 2
    assert epochs == [place for place, (one, _, _) in enumerate(plain) if one.opened]
    assert all(mine[place][1] > plain[place][1] for place in epochs[1:])
    # all is marked to the end, so what is not read is written
    assert all(one[1] >= other[1] - 1 for one, other in zip(mine, plain, strict=True))
    bills = [sum(READ * read + WRITTEN * (size - read) for _, read, size in one) for one in (mine, plain)]
    assert bills[0] < bills[1]


def test_an_epoch_asks_for_the_place_where_the_last_one_left_an_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        bodies = [one.body for one, _, _ in read_by(engine, 24) if one.opened]
    marks = [places(body)[:-1] for body in bodies]
    assert all(set(before) & set(now) for before, now in pairwise(marks))


def test_where_one_mark_is_free_it_reads_and_the_next_epoch_reads_from_there(tmp_path: Path) -> None:
    three = ("5m", "5m", "5m")
    with opened(tmp_path) as engine:
        bodies = [one.body for turns in range(24) if (one := ask(engine, turns, marks=three)).opened]
    assert all(body.count(MARK) == 4 for body in bodies)
    first, *others = [places(body)[0] for body in bodies]
    assert len(others) > 1
    assert set(others) == {first}


def test_a_request_that_is_not_written_anew_gets_no_mark(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for prepared, _, _ in read_by(engine, 24):
            assert prepared.opened or prepared.body.count(MARK) == 1


def test_what_is_the_clients_own_stays_it_however_much_is_written(tmp_path: Path) -> None:
    with opened(tmp_path, Settings(eager(batch_tokens=10**9, keep_calls=2, min_tokens=60))) as engine:
        for turns, at in ((6, 0.0), (7, 9000.0)):
            assert not ask(engine, turns, at).is_changed


def test_behind_a_pause_an_entry_is_left_where_the_next_epoch_may_begin(tmp_path: Path) -> None:
    """Nothing leaves yet, but tools of ours make the request another one than its client's."""
    with opened(tmp_path, Settings(eager(batch_tokens=10**9, keep_calls=2, min_tokens=60))) as engine:
        found = [ask(engine, turns, at, tools=[TOOL]) for turns, at in ((6, 0.0), (7, 20.0), (8, 9000.0))]
    assert all(one.offered and one.opened is None for one in found)
    assert [len(places(one.body)) for one in found] == [2, 1, 2]
    assert places(found[0].body)[0] == places(found[2].body)[0] == (1, 1)


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
def test_formats_without_marks_get_none(tmp_path: Path, api: Api) -> None:
    with opened(tmp_path) as engine:
        found = [
            engine.prepare(clients.body(worked(turns), api), api, at=20.0 * turns, hint="one") for turns in range(16)
        ]
    assert any(one.opened for one in found)
    assert not any(word in one.body for one in found for word in (MARK, b"prompt_cache_breakpoint"))


def test_requests_that_are_sent_again_have_the_same_marks_in_another_process_too(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        bodies = [ask(engine, turns).body for turns in range(14)]
        assert max(len(places(body)) for body in bodies) == 3
        assert [ask(engine, turns, 90_000.0).body for turns in range(14)] == bodies
    with opened(tmp_path) as other:
        assert [ask(other, turns, 99_000.0).body for turns in range(14)] == bodies


def test_turns_that_the_client_did_not_see_leave_the_marks_at_their_blocks(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "p1", "name": "peek", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "p1", "content": "what it was"}
    body = json.loads(asked(worked(2)))
    said = body["messages"][1]
    actual = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}, said]
    with opened(tmp_path) as engine:
        first = ask(engine, 0)
        raw = [json.dumps(one).encode() for one in (said, *actual)]
        assert engine.splice_answer(first, RecallExchange((raw[0],), tuple(raw[1:]))) is None
        found = [ask(engine, turns) for turns in range(1, 14)]
    epochs = [one for one in found if one.opened]
    assert len(epochs) > 1
    for one in epochs:
        messages = json.loads(one.body)["messages"]
        marks = places(one.body)
        assert len(messages) == one.messages + 2
        assert len(marks) > 1
        item, block = marks[0]
        assert messages[item]["content"][block]["type"] == "tool_use"


@settings(max_examples=12, deadline=None)
@given(st.lists(LIFETIMES, max_size=4), st.integers(1, 3))
def test_there_is_never_a_fifth_mark_nor_an_hour_behind_five_minutes(lifetimes: list[str | None], results: int) -> None:
    ordered = sorted(lifetimes, key=lambda one: one == "5m")  # a request of the client's that is refused stays so
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as engine:
        for turns in range(10):
            body = asked(worked(turns, results), ordered)
            valid = check_body(json.loads(body), "anthropic") == []
            prepared = engine.prepare(body, "anthropic", at=20.0 * turns, hint="one")
            assert prepared.failure is None
            assert prepared.body.count(MARK) <= 4
            assert not valid or check_body(prepared.request, "anthropic") == []


# --- what is chosen ---

CALLS = [b'{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"x","input":{}}]}' % n for n in range(4)]
RESULTS = [
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"r"}]}' % n for n in range(4)
]
ITEMS = [b'{"role":"user","content":"go"}', *(one for pair in zip(CALLS, RESULTS, strict=True) for one in pair)]


def test_it_reads_from_the_last_entry_of_ours_where_its_first_change_was_written_with_it() -> None:
    left = OwnEntries(((1, 0), (3, 0)), 8)
    assert chosen_for(ITEMS, [("c2", False)], ("c3", False), left) == BreakpointChoice((7, 0), reads=(3, 0), messages=9)
    behind = chosen_for(ITEMS, [("c3", False)], None, OwnEntries(((1, 0),), 9))
    assert behind == BreakpointChoice(reads=(1, 0), messages=9)


def test_it_reads_from_its_first_change_back_where_that_was_said_since() -> None:
    assert chosen_for(ITEMS, [("c3", False)], ("c0", False), OwnEntries(((1, 0),), 6)) == BreakpointChoice(
        (1, 0), reads=(7, 0), messages=9
    )
    assert chosen_for(ITEMS, [("c2", True)], None, NOTHING_LEFT) == BreakpointChoice(reads=(4, 0), messages=9)


def test_nothing_is_marked_for_what_is_not_there() -> None:
    assert chosen_for(ITEMS, [("c9", False)], ("c8", False), NOTHING_LEFT) == cache_breakpoints.AS_THE_CLIENT
    assert chosen_for(ITEMS[1:], [("c0", True)], None, NOTHING_LEFT) == cache_breakpoints.AS_THE_CLIENT


def test_what_was_left_is_told_by_the_branch_until_the_client_compacts() -> None:
    left = OwnEntries(((1, 0), (3, 0)), 8)
    noted = NoteEntry.of(BreakpointChoice((3, 0), reads=(1, 0), messages=8))
    assert cache_breakpoints.entries_after(NOTHING_LEFT, noted) == left
    assert cache_breakpoints.entries_after(left, NoteEntry.of(BreakpointChoice(short=True))) == left
    assert cache_breakpoints.entries_after(left, NoteEntry("request.marks", "of another version")) == left
    assert cache_breakpoints.entries_after(left, CompactionEntry(0)) == NOTHING_LEFT

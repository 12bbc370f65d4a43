import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conversations import WILD

from pagein.engine.log.journal import Fold, Journal, entry_name, replay_journal
from pagein.engine.log.request_draft import pieces_since
from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.errors import HostError
from pagein.model.codec import decode_entry, encode_entry
from pagein.model.entries import Body, CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry, RequestSent
from pagein.model.messages import Message, Text, ToolResult
from pagein.testing.eager_residency import eager

SETTINGS = Rules(eager(batch_tokens=10, keep_calls=1, min_tokens=0))


def fold(state: State, body: Body) -> State:
    return step(state, body, SETTINGS)


def shown(state: State) -> tuple[object, ...]:
    """All that can be seen of a state."""
    ready = state.draft.ready
    return (
        [piece.message for piece in pieces_since(ready.tip, 0)],
        list(state.standing.all()),
        state.standing.old_tokens,
        state.epoch,
        state.draft.calls,
        state.draft.repairs,
    )


def said(message: Message) -> MessageEntry:
    return MessageEntry(message, tuple(len(block.text) for block in message.blocks if isinstance(block, ToolResult)))


BODIES: st.SearchStrategy[list[Body]] = WILD.flatmap(
    lambda messages: st.lists(
        st.sampled_from([*map(said, messages), RequestSent(0, 0), CompactionEntry(1), NoteEntry("n", "{}")]),
        max_size=14,
    )
)


def branch(journal: Journal[State], start: EntryId | None, bodies: list[Body]) -> EntryId | None:
    leaf = start
    for body in bodies:
        leaf = journal.append(leaf, body).id
    return leaf


@given(BODIES, st.data())
def test_replaying_a_split_journal_is_replaying_the_whole(bodies: list[Body], data: st.DataObject) -> None:
    whole: Journal[State] = Journal(START, fold)
    leaf = branch(whole, None, bodies)
    stop = data.draw(st.integers(0, len(bodies)))
    state = START
    for body in bodies[:stop]:
        state = fold(state, body)
    rest = Journal(state, fold)
    assert shown(rest.state_at(branch(rest, None, bodies[stop:]))) == shown(whole.state_at(leaf))


@given(BODIES, BODIES, BODIES, BODIES)
def test_a_branch_has_one_state_whatever_happened_on_others(
    trunk: list[Body], one: list[Body], two: list[Body], three: list[Body]
) -> None:
    alone: Journal[State] = Journal(START, fold)
    expected = shown(alone.state_at(branch(alone, branch(alone, None, trunk), one)))
    busy: Journal[State] = Journal(START, fold)
    fork = branch(busy, None, trunk)
    busy.state_at(branch(busy, fork, two))
    leaf = branch(busy, fork, one)
    busy.state_at(branch(busy, leaf, three))
    busy.state_at(branch(busy, None, three))
    assert shown(busy.state_at(leaf)) == expected


@given(BODIES)
def test_a_journal_that_was_written_and_read_has_the_same_states(bodies: list[Body]) -> None:
    journal: Journal[State] = Journal(START, fold)
    leaf = branch(journal, None, bodies)
    lines = [encode_entry(entry) for entry in journal]
    entries = [entry for entry in map(decode_entry, lines) if isinstance(entry, Entry)]
    again = replay_journal(START, fold, entries)
    assert len(again) == len(journal)
    assert shown(again.state_at(leaf)) == shown(journal.state_at(leaf))
    assert [entry.body for entry in again.branch(leaf)] == bodies


def test_one_more_entry_costs_one_step_however_long_the_branch() -> None:
    steps = 0

    def counted(state: State, body: Body) -> State:
        nonlocal steps
        steps += 1
        return fold(state, body)

    journal: Journal[State] = Journal(START, counted)
    leaf = branch(journal, None, [NoteEntry("n", str(number)) for number in range(5000)])
    journal.state_at(leaf)
    assert steps == 5000
    journal.state_at(branch(journal, leaf, [NoteEntry("n", "more")]))
    assert steps == 5001
    journal.state_at(leaf)
    assert steps == 5001


def test_the_same_thing_said_at_the_same_place_is_one_entry() -> None:
    journal: Journal[State] = Journal(START, fold)
    hello = said(Message("user", (Text("hello"),)))
    first = journal.append(None, hello)
    assert journal.append(None, hello) == first
    assert journal.append(first.id, hello).id != first.id
    assert len(journal) == 2
    assert first.id == entry_name(None, hello)


def test_a_name_of_the_host_is_used_and_must_be_its_only_one() -> None:
    journal: Journal[State] = Journal(START, fold)
    hello = said(Message("user", (Text("hello"),)))
    assert journal.append(None, hello, name="host-1").id == "host-1"
    assert journal.append(None, hello, name="host-1").id == "host-1"
    with pytest.raises(HostError, match="host-1"):
        journal.append(None, CompactionEntry(), name="host-1")


def test_entries_that_the_host_never_told_of_are_its_error() -> None:
    journal: Journal[State] = Journal(START, fold)
    for use in (
        lambda: journal.append("x", CompactionEntry()),
        lambda: journal.state_at("x"),
        lambda: journal.branch("x"),
    ):
        with pytest.raises(HostError, match="never told"):
            use()


@given(BODIES, BODIES)
def test_what_was_forgotten_changes_nothing_of_what_comes(before: list[Body], after: list[Body]) -> None:
    whole: Journal[State] = Journal(START, fold)
    forgetful: Journal[State] = Journal(START, fold)
    told = Fold(forgetful, 0, lambda count, _: count + 1)
    leaf = branch(whole, None, before)
    assert branch(forgetful, None, before) == leaf
    if leaf is None:
        return
    forgetful.forget(leaf)
    assert len(forgetful) == 1
    end = branch(forgetful, leaf, after)
    assert end == branch(whole, leaf, after)
    assert shown(forgetful.state_at(end)) == shown(whole.state_at(end))
    assert told[end] == len(before) + len(after)


def test_nobody_goes_back_to_what_was_forgotten() -> None:
    journal: Journal[State] = Journal(START, fold)
    first = journal.append(None, NoteEntry("n", "{}")).id
    last = journal.append(first, NoteEntry("n", "{}")).id
    journal.forget(last)
    with pytest.raises(HostError, match="forgotten"):
        journal.branch(last)
    with pytest.raises(HostError, match="forgotten"):
        journal.state_at(first)

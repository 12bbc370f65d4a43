"""The places of messages after a turn was taken back are those before it, whatever the turn added."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from pagein.engine.message_index import MessageIndex
from pagein.model.entries import Body, CompactionEntry, Entry, MessageEntry, NoteEntry, RequestSent, bridge
from pagein.model.journal_notes import BrokenNote, ExchangeNote
from pagein.model.messages import Message, Text

BODIES: tuple[Body, ...] = (
    MessageEntry(Message("user", (Text("a word"),))),
    CompactionEntry(1),
    RequestSent(1, 1),
    NoteEntry.of(ExchangeNote("text", ("call",), ())),
    NoteEntry.of(BrokenNote(1)),
)
STEPS = st.lists(st.tuples(st.integers(0, len(BODIES)), st.integers(0, 30)), max_size=40)


def grown(steps: list[tuple[int, int]], known: list[Entry]) -> list[Entry]:
    """Return entries after known ones, each after any entry before it."""
    made = [*known]
    for kind, place in steps:
        name, parent = f"e{len(made)}", made[-1 - place % len(made)].id if made else None
        made.append(bridge(name, parent) if kind == len(BODIES) else Entry(name, parent, BODIES[kind]))
    return made[len(known) :]


@given(before=STEPS, within=STEPS, restored=st.lists(st.integers(0, 5), max_size=3))
def test_a_turn_that_is_taken_back_leaves_no_trace(
    before: list[tuple[int, int]], within: list[tuple[int, int]], restored: list[int]
) -> None:
    index = MessageIndex()
    known = grown(before, [])
    index.learn(known)
    told, stands = copy.deepcopy(index.snapshot_values()), index.stands
    index.begin_turn()
    fresh = grown(within, known)
    index.learn(fresh)
    for place in restored:
        if index.lost_messages:
            index.mark_restored(sorted(index.lost_messages)[place % len(index.lost_messages)])
    index.take_back()
    now = index.snapshot_values()
    assert {**now, "going_on": set(now["going_on"])} == {**told, "going_on": set(told["going_on"])}
    assert index.stands is stands  # others read it
    index.learn(fresh)
    again = MessageIndex()
    again.learn([*known, *fresh])
    assert index.stands == again.stands
    assert index.exchanges == again.exchanges

"""What the state learns from a reported miss: all messages were written in one go, so no entry stands between them."""

from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.model.entries import Body, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import BreakpointChoice, UsageNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult, Usage
from pagein.policy.eviction.residency import PRICED

RULES = Rules(PRICED)
TEXT = "line of output\n" * 200


def folded(*bodies: Body, state: State = START) -> State:
    for body in bodies:
        state = step(state, body, RULES)
    return state


def begun() -> State:
    """Two requests, the first with a prompt prefix of 5,000 tokens."""
    call = Message("assistant", (ToolCall("one", "bash", "{}"),))
    return folded(
        MessageEntry(Message("user", (Text("do it"),)), (), 100),
        RequestSent(0, 1, 10.0, anew=100, found=100),
        NoteEntry.of(UsageNote(Usage(written=5100))),
        MessageEntry(call, (), 20),
        MessageEntry(Message("tool", (ToolResult("one", TEXT),)), (800,), 800),
        RequestSent(0, 3, 20.0, anew=100, found=100),
    )


MISSED = NoteEntry.of(UsageNote(Usage(read=4000, written=1920)))


def test_a_request_that_read_no_message_from_the_cache_wrote_all_of_them_anew() -> None:
    marked = NoteEntry.of(BreakpointChoice(frontier=(1, 0), messages=3))
    after = folded(marked, MISSED, state=begun())
    assert (after.account.anew, after.account.found) == (920, 120)


def test_without_a_breakpoint_in_front_of_the_first_resident_no_entry_ends_there() -> None:
    """A rewrite that took one for granted wrote the whole prompt anew: +6.4 %."""
    anchored = NoteEntry.of(BreakpointChoice(anchor=1))
    for bodies in ((MISSED,), (anchored, MISSED)):
        after = folded(*bodies, state=begun())
        assert (after.account.anew, after.account.found) == (920, 0)


def test_a_request_that_read_the_messages_leaves_their_entries_where_they_were() -> None:
    after = folded(NoteEntry.of(UsageNote(Usage(read=5100, written=820))), state=begun())
    assert (after.account.anew, after.account.found) == (100, 100)

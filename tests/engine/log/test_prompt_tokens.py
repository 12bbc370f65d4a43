"""Recall tools in the account of a session: tokens that its window would not hold without pagein."""

from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.model.entries import Body, CompactionEntry, NoteEntry
from pagein.model.journal_notes import OfferedTool, ToolsLaterNote, ToolsNote
from pagein.policy.economics.rewrite_cost import Account, Economics, account_with_tools
from pagein.policy.eviction.residency import PRICED

TOOLS = NoteEntry.of(ToolsNote((OfferedTool("peek", "Show a text.", {"type": "object", "words": "w" * 360}),)))


def folded(*bodies: Body) -> State:
    state = START
    for body in bodies:
        state = step(state, body, Rules(PRICED))
    return state


def test_tools_that_are_offered_count_as_tokens_added() -> None:
    offered = folded(TOOLS).offered
    assert 90 < offered < 130
    assert folded(TOOLS).account.absent == -offered
    assert folded(TOOLS, TOOLS).account.absent == -offered


def test_they_still_do_after_a_compaction_and_no_more_when_they_have_left() -> None:
    assert folded(TOOLS, CompactionEntry(0)).account.absent == -folded(TOOLS).offered
    assert folded(TOOLS, NoteEntry.of(ToolsLaterNote())).account.absent == 0


def test_a_rewrite_with_which_they_enter_pays_for_writing_them() -> None:
    account = Account(saved=500.0, absent=300)
    assert account_with_tools(account, Economics(write=2.0), 100) == Account(saved=300.0, absent=200)
    assert account_with_tools(account, None, 100) == Account(saved=500.0, absent=200)

"""What the client changes in front of its conversation is a free moment; what it changes back is none."""

from pagein.engine.cache.cache_inputs import Fronts
from pagein.engine.log.journal import Journal
from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import PrefixDigests
from pagein.policy.eviction.residency import PRICED
from pagein.providers.wire.formats import format_named

ANTHROPIC, CHAT = format_named("anthropic"), format_named("openai_chat")


def test_a_front_is_new_once_and_never_where_it_was_before_on_the_branch() -> None:
    rules = Rules(PRICED)
    journal: Journal[State] = Journal(START, lambda state, body: step(state, body, rules))
    fronts, first, other = Fronts(journal), PrefixDigests("m", "t", "s"), PrefixDigests("m", "t2", "s")
    assert not fronts.is_new(None, first, ANTHROPIC)
    leaf = journal.append(None, NoteEntry.of(first)).id
    assert not fronts.is_new(leaf, first, ANTHROPIC)
    assert fronts.is_new(leaf, other, ANTHROPIC)
    changed = journal.append(leaf, NoteEntry.of(other)).id
    assert not fronts.is_new(changed, first, ANTHROPIC)
    assert fronts.is_new(leaf, PrefixDigests("m", "t", "s", "effort"), ANTHROPIC)
    assert not fronts.is_new(leaf, PrefixDigests("m", "t", "s", "effort"), CHAT)
    assert fronts.is_new(leaf, PrefixDigests("n", "t", "s"), CHAT)

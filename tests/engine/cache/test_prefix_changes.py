"""A change of the prompt prefix by the client allows a free rewrite; a change back does not."""

from pagein.engine.cache.cache_inputs import Fronts
from pagein.engine.log.journal import Journal
from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.model.entries import NoteEntry, RequestSent
from pagein.model.journal_notes import PrefixDigests, UsageNote
from pagein.model.messages import Usage
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


def test_a_client_may_return_to_another_front_until_its_cache_entries_have_expired() -> None:
    rules = Rules(PRICED)
    journal: Journal[State] = Journal(START, lambda state, body: step(state, body, rules))
    fronts = Fronts(journal)
    first, other = PrefixDigests("claude-opus-4-6", "t", "s"), PrefixDigests("claude-opus-4-5", "t", "s")
    leaf = journal.append(None, NoteEntry.of(first)).id
    assert not fronts.may_return(leaf, other, 0.0)  # never sent
    leaf = journal.append(leaf, RequestSent(0, 1, 100.0)).id
    assert not fronts.may_return(leaf, first, 100.0)
    assert fronts.may_return(leaf, other, 100.0)
    leaf = journal.append(leaf, NoteEntry.of(other)).id
    leaf = journal.append(leaf, RequestSent(0, 1, 2000.0)).id
    assert fronts.may_return(leaf, other, 3700.0)  # the longest TTL, as for a client that asks for an hour
    assert not fronts.may_return(leaf, other, 3701.0)
    assert fronts.may_return(leaf, first, 5600.0)
    leaf = journal.append(leaf, NoteEntry.of(first)).id
    leaf = journal.append(leaf, RequestSent(0, 1, 6000.0)).id
    assert not fronts.may_return(leaf, first, 6000.0)
    assert fronts.may_return(leaf, other, 9000.0)


def test_the_size_of_the_last_prompt_is_what_the_provider_reported() -> None:
    rules = Rules(PRICED)
    journal: Journal[State] = Journal(START, lambda state, body: step(state, body, rules))
    fronts = Fronts(journal)
    leaf = journal.append(None, NoteEntry.of(PrefixDigests("m", "t", "s"))).id
    assert fronts.last_prompt(leaf) == 0
    leaf = journal.append(leaf, NoteEntry.of(UsageNote(Usage(10, 2000, 300, 0, 9)))).id
    assert fronts.last_prompt(leaf) == 2310

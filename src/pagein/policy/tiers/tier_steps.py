"""One request's step of the tiers: from the knowledge before the request to the knowledge after it.

A fold over the requests of a session. Everything that a step depends on is in its arguments.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.policy.tiers.first_tiers import TierSeed, seeded_tiers
from pagein.policy.tiers.frozen_order import CacheTerms, TierSurroundings, place_items
from pagein.policy.tiers.graduation import active_list
from pagein.policy.tiers.tier_rules import TierRules
from pagein.policy.tiers.tier_values import PLACEHOLDER, SYMBOL, RequestItem, TierItem, TierState, symbol_key
from pagein.policy.tiers.tracker import TierOutcome, track, with_symbols, without_absent

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class TierFacts:
    """What a request has.

    files: all files that are given, and `selected` the paths among them that the user works with.
    symbols: the symbol entries, of selected files too.
    urls: pages from the web.
    history: the messages so far, oldest first.
    modified: paths of files that the assistant just edited.
    references: references to each file, by path, for the first request.
    restarted: whether the process that sent the last request is gone. Then the selection counts as changed.
    cold: whether the provider's cache holds nothing of the last request.
    """

    files: tuple[RequestItem, ...] = ()
    selected: frozenset[str] = _NOTHING
    symbols: tuple[RequestItem, ...] = ()
    urls: tuple[RequestItem, ...] = ()
    history: tuple[RequestItem, ...] = ()
    modified: frozenset[str] = _NOTHING
    references: Mapping[str, int] = field(default_factory=dict)
    restarted: bool = False
    cold: bool = False

    def all_items(self) -> Sequence[RequestItem]:
        """Every item of the request."""
        return (*self.files, *self.symbols, *self.urls, *self.history)


@dataclass(frozen=True, slots=True)
class TierStep:
    """The tiers after a request.

    ripple: whether the set of active files and symbols changed, so that a rewrite was due anyway.
    """

    tracked: TierOutcome
    ripple: bool = False

    @property
    def state(self) -> TierState:
        """The whole knowledge after the request."""
        return self.tracked.state


def step_tiers(state: TierState, facts: TierFacts, rules: TierRules, terms: CacheTerms | None = None) -> TierStep:
    """Track one request.

    terms: prices of the provider's cache, for the promotion `rewritten`; None for the usual ones.
    """
    changed = with_symbols(facts.modified)
    if rules.promotion == "rewritten":
        return _step_rewritten(state, facts, rules, terms or CacheTerms(), changed)
    if not state.items:
        state = replace(state, items=_initial(facts, rules))
    if rules.placeholder == "matches":
        state = _measured(state, facts)
    if facts.restarted:
        state = replace(state, listed=frozenset())
    if rules.absent == "leaves":
        state = without_absent(state, {one.key for one in facts.all_items()})
    active = active_list(state, _listed(state, facts, changed), facts.history, rules, changed)
    sizes = {one.key: one.tokens for one in facts.all_items()}
    tracked = track(state, active.items, rules, modified=changed, tokens=lambda key: sizes.get(key, 0.0))
    return TierStep(replace(tracked, state=replace(tracked.state, listed=active.listed)), active.ripple)


def _listed(state: TierState, facts: TierFacts, changed: Collection[str]) -> list[RequestItem]:
    """The selected files with their symbol entries, and every tracked item that changed."""
    with_entries = facts.selected | {symbol_key(path) for path in facts.selected}
    return [
        one
        for one in (*facts.files, *facts.symbols)
        if one.key in with_entries
        or (one.key in state.items and (one.key in changed or _has_changed(state.items[one.key], one)))
    ]


def _has_changed(known: TierItem, one: RequestItem) -> bool:
    """Whether an item in a cached tier has new content. A placeholder is not compared, because its content was never
    measured.
    """
    return one.digest is not None and known.digest != one.digest and not known.digest.startswith(PLACEHOLDER)


def _measured(state: TierState, facts: TierFacts) -> TierState:
    """The state with the real digests of items that were placed by their references."""
    found = {one.key: one.digest for one in facts.all_items() if one.digest is not None}
    waiting = [key for key, one in state.items.items() if one.digest.startswith(PLACEHOLDER) and key in found]
    if not waiting:
        return state
    return replace(
        state, items={**state.items, **{key: replace(state.items[key], digest=found[key]) for key in waiting}}
    )


def _initial(facts: TierFacts, rules: TierRules) -> dict[str, TierItem]:
    """The first tiers of symbol entries, by references to their files. Entries of selected files are left out."""
    entries = [one for one in facts.symbols if one.key.removeprefix(SYMBOL) not in facts.selected]
    if not facts.references:
        return {}
    ranks = [TierSeed(one.key, facts.references.get(one.key.removeprefix(SYMBOL), 0), one.tokens) for one in entries]
    return seeded_tiers(ranks, rules.target_tokens, rules.seeding)


def _step_rewritten(
    state: TierState, facts: TierFacts, rules: TierRules, terms: CacheTerms, changed: Collection[str]
) -> TierStep:
    places = frozenset(state.order)
    unselected = [one for one in facts.files if one.key not in facts.selected and one.key in places]
    same = [one for one in unselected if one.digest == state.items[one.key].digest and one.key not in changed]
    deselected = frozenset(one.key for one in same)
    tracked, listed = _placed(state, facts, deselected, rules, terms)
    if left := deselected - frozenset(tracked.state.order):
        # Something in front of them is rewritten. So they go, and their symbol entries come back at once.
        tracked, listed = _placed(state, facts, deselected - left, rules, terms)
    ripple = facts.restarted or bool(tracked.moves) or bool(tracked.broken)
    return TierStep(replace(tracked, state=replace(tracked.state, listed=listed)), ripple)


def _placed(
    state: TierState, facts: TierFacts, deselected: frozenset[str], rules: TierRules, terms: CacheTerms
) -> tuple[TierOutcome, frozenset[str]]:
    """Place the selected files, the deselected files that may stay, the symbol entries of all other files, and the
    pages.
    """
    shown = facts.selected | deselected
    files = [one for one in facts.files if one.key in shown]
    symbols = [one for one in facts.symbols if one.key.removeprefix(SYMBOL) not in shown]
    given = (*symbols, *files, *facts.urls)
    references = {key: count for path, count in facts.references.items() for key in (path, symbol_key(path))}
    around = TierSurroundings(sum(one.tokens for one in facts.history), facts.cold, references, deselected)
    changed = with_symbols(facts.modified)
    return place_items(state, given, rules, terms, around, modified=changed), frozenset(one.key for one in given)

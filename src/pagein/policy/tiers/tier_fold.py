"""Tiers as a fold over the notes of a branch: the same notes give the same tiers in every process.

Rules of this file
------------------
1. A live request goes the same way: its difference becomes a note, and the note is applied.
2. A tracked message of the history that changed or went means that the history was rewritten. Then all of it begins anew.
   A stability file knows nothing of the last request but its items, so they alone decide.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from pagein.errors import BadSetting
from pagein.model.tier_notes import TierNote
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.policy.tiers.tier_rules import SEED, TierRules
from pagein.policy.tiers.tier_steps import TierFacts, TierStep, step_tiers
from pagein.policy.tiers.tier_values import HISTORY, START, SYMBOL, URL, RequestItem, TierState
from pagein.policy.tiers.tracker import without_prefix


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers at an entry of a branch.

    seen: digest and tokens of each item of the last request, by key.
    unselected: the given files that were not selected.
    covered: messages up to the final cache breakpoint of the last prompt.
    """

    rules: TierRules = SEED
    terms: CacheTerms = field(default_factory=CacheTerms)
    state: TierState = START
    seen: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    unselected: frozenset[str] = frozenset()
    covered: int = 0


NO_TIERS: Final = Tiers()


@dataclass(frozen=True, slots=True)
class TierInput:
    """What a caller gives for a request.

    items: all items of the request: files, symbol entries, pages, messages.
    unselected: the files among them that are not selected.
    modified, references, restarted, cold: as in `TierFacts`.
    """

    items: tuple[RequestItem, ...]
    unselected: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()
    references: Mapping[str, int] = field(default_factory=dict)
    restarted: bool = False
    cold: bool = False


def difference(before: Tiers, given: TierInput, rules: TierRules, terms: CacheTerms) -> TierNote:
    """The note of a request behind these tiers."""
    now = {one.key: (one.digest or "", one.tokens) for one in given.items}
    seen = tuple((key, *value) for key, value in now.items() if before.seen.get(key) != value)
    return TierNote(
        _fields(rules, before.rules),
        _fields(terms, before.terms),
        seen,
        tuple(key for key in before.seen if key not in now),
        None if given.unselected == before.unselected else tuple(sorted(given.unselected)),
        tuple(sorted(given.modified)),
        dict(given.references) if given.references and not before.state.items else None,
        given.restarted,
        given.cold,
    )


def _fields(value: TierRules | CacheTerms, before: TierRules | CacheTerms) -> dict[str, Any] | None:
    return None if value == before else asdict(value)


def apply_note(before: Tiers, note: TierNote) -> tuple[Tiers, TierStep]:
    """The tiers after a note, and the step that led there.

    Raises BadSetting for a note with choices that this version does not know.
    """
    try:
        rules = TierRules(**note.rules) if note.rules else before.rules
        terms = CacheTerms(**note.terms) if note.terms else before.terms
    except TypeError as problem:
        raise BadSetting(f"the journal has choices of tiers that this version does not know: {problem}") from None
    changed = {key: (digest, tokens) for key, digest, tokens in note.seen}
    seen = {key: changed.get(key, value) for key, value in before.seen.items() if key not in set(note.gone)} | changed
    unselected = before.unselected if note.unselected is None else frozenset(note.unselected)
    state = before.state
    if any(key.startswith(HISTORY) and seen.get(key, ("",))[0] != one.digest for key, one in state.items.items()):
        state, _ = without_prefix(state, HISTORY)
    step = step_tiers(state, _facts(seen, unselected, note), rules, terms)
    return Tiers(rules, terms, step.state, seen, unselected, note.covered), step


def with_covered(tiers: Tiers, covered: int) -> Tiers:
    """The tiers with what the layout found of the final cache breakpoint."""
    return replace(tiers, covered=covered)


def _facts(seen: Mapping[str, tuple[str, float]], unselected: Collection[str], note: TierNote) -> TierFacts:
    kinds: dict[str, list[RequestItem]] = {SYMBOL: [], HISTORY: [], URL: [], "": []}
    for key, (digest, tokens) in seen.items():
        kind = next(one for one in kinds if key.startswith(one))
        kinds[kind].append(RequestItem(key, digest, tokens))
    history = sorted(kinds[HISTORY], key=lambda one: int(one.key.removeprefix(HISTORY)))
    return TierFacts(
        tuple(kinds[""]),
        frozenset(one.key for one in kinds[""] if one.key not in unselected),
        tuple(kinds[SYMBOL]),
        tuple(kinds[URL]),
        tuple(history),
        frozenset(note.modified),
        note.references or {},
        note.restarted,
        note.cold,
    )

"""The odds of a quote: whole numbers, the same on every machine, judged at a flat cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Inexact, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.eviction.quote_odds import (
    TERMS,
    QuoteOdds,
    ReadCounts,
    chance,
    is_document,
    odds_from,
    packaged_odds,
    shown_later,
)
from pagein.policy.eviction.residency import EMPTY, Resident, ResidentSet
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRules, judged_reads
from pagein.policy.eviction.session_work import SessionWork

READ = ReadCounts("c", "src/a.py", 4_000, 8, 3, older=False, covered=False, whole=True, work=SessionWork(accesses=20))
BY_SIZE = QuoteOdds(0, (("size", -100),), (40,))


def judging(odds: QuoteOdds, quotes: int) -> ResidencyRules:
    """The row of the odds alone, at this limit."""
    rows = (replace(row, after=replace(row.after, calls=4)) for row in judged_reads(odds))
    return ResidencyRules(
        tuple(replace(row, limit=None if row.limit is None else replace(row.limit, quotes=quotes)) for row in rows)
    )


def read(call: int, path: str, tokens: int = 500, lines: tuple[int, int] = (1, 10)) -> Resident:
    return Resident(f"{path}{call}", 2 * call, 0, tokens, call, 100 * call, kind="file read", path=path, lines=lines)


def old(standing: ResidentSet) -> list[str]:
    return [one.call_id for one in standing.old()]


def test_the_chance_is_that_of_the_logistic_function_in_millionths() -> None:
    assert [chance(logit) for logit in (0, 1_000, -1_000, -6_000, -99_999)] == [500_000, 731_059, 268_941, 2_473, 0]


@given(st.integers(-20_000, 20_000))
def test_the_chance_does_not_depend_on_what_a_program_set_for_its_own_decimals(logit: int) -> None:
    usual = chance.__wrapped__(logit)
    with localcontext(prec=2, rounding=ROUND_UP) as context:
        context.traps[Inexact] = True
        assert chance.__wrapped__(logit) == usual
    assert usual == pytest.approx(1e6 / (1 + math.exp(-min(max(logit, -16_000), 16_000) / 1000)), abs=0.5001)
    assert chance.__wrapped__(logit + 1) >= usual


def test_the_odds_of_known_counts_are_these_on_every_machine() -> None:
    each = (81, -1_256, -75, -2_289, 337, -993, -1_210, -96, 94)
    odds = QuoteOdds(-3_373, tuple(zip(TERMS, each, strict=True)), (0,) * len(TERMS))
    looked = SessionWork(accesses=60, kind="reading")
    counts = [
        READ,
        replace(READ, path="docs/a.md", older=True, since_edit=90),
        replace(READ, tokens=90_000, covered=True, whole=False, work=looked),
        replace(READ, tokens=1, idle=60, work=SessionWork(accesses=3, edits=1, edited=2)),
    ]
    assert [odds.per_million(one) for one in counts] == [464_062, 15_969, 48_707, 16_626]


_RANGES = st.tuples(st.integers(1, 12), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(_RANGES, max_size=12))
def test_a_read_is_shown_later_where_one_of_the_later_reads_holds_its_lines(reads: list[tuple[int, int]]) -> None:
    assert shown_later(reads) == [
        any(other[0] <= first and other[1] >= last for other in reads[place + 1 :])
        for place, (first, last) in enumerate(reads)
    ]


def test_a_term_is_a_whole_number() -> None:
    counts = [READ, replace(READ, tokens=0, idle=0, since_edit=0, older=True, covered=True)]
    values = [[int(term.value(one)) for term in TERMS.values()] for one in counts]
    assert all(value >= 0 for some in values for value in some)
    size = TERMS["size"].value
    assert [size(replace(READ, tokens=count)) for count in (0, 1, 2, 3, 7, 15, 999_999)] == [0, 4, 6, 8, 12, 16, 79]


def test_fewer_quotes_are_expected_for_each_token_of_a_larger_read() -> None:
    even = QuoteOdds(-6_000, (), ())  # 2,473 quotes in a million reads
    assert list(even.reasons_of_unlikely([replace(READ, tokens=206), replace(READ, call_id="d", tokens=207)], 12)) == [
        "d"
    ]


def test_the_packaged_odds_are_those_of_the_terms_of_this_version() -> None:
    odds = packaged_odds()
    assert odds is not None
    assert [name for name, _ in odds.coefficients] == list(TERMS)
    assert len(TERMS) <= 20
    assert any(row.limit is not None and row.limit.odds == odds for row in USUAL.rows)


def test_the_reasons_are_the_three_terms_that_lower_the_chance_most() -> None:
    odds = QuoteOdds(0, (("size", 10), ("older", -900), ("document", -2_000), ("since edit", -50)), (40, 0, 0, 10))
    told = odds.reasons(replace(READ, older=True, path="docs/a.md", since_edit=40))
    assert (
        told == "it shows a document or a configuration, a person has spoken since the read, 40 calls without an edit"
    )
    assert odds.reasons(replace(READ, since_edit=0)) == ""


@pytest.mark.parametrize(
    "figures", [{}, {"intercept": "no number", "terms": {}}, {"intercept": 1, "terms": {"no such term": {}}}]
)
def test_without_figures_that_fit_there_are_no_odds_and_the_other_rows_decide(figures: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        odds_from(figures)
    assert packaged_odds(figures) is None
    assert judged_reads(None) == ()
    by_hand = ResidencyRules(tuple(row for row in USUAL.at("thrifty").rows if row.limit is None))
    assert by_hand == USUAL.at("thrifty").without_layer("odds")
    standing = EMPTY.with_task(1, by_hand, "review it").with_resident(read(1, "a.py"), by_hand)
    assert old(standing.at_call(4, by_hand)) == ["a.py1"]


def test_documents_and_configurations_are_known_by_their_path() -> None:
    assert all(map(is_document, ("README.md", "docs/guide/x.py", "a/package.json", "Cargo.LOCK", "go.mod")))
    assert not any(map(is_document, ("src/a.py", "mod.rs", "docsify.ts", "json.go")))


def test_a_read_is_judged_at_each_fourth_idle_call_and_from_the_start_when_its_file_is_touched() -> None:
    odds = QuoteOdds(0, (("since edit", -1_000),), (0,))
    rules = judging(odds, 1)
    standing = EMPTY.with_access("a", 1, rules, edited=True).with_resident(read(1, "a", 1_000), rules)
    seen = [call for call in range(2, 40) if old(standing := standing.at_call(call, rules))]
    assert seen[0] == 5  # 4 idle calls: 2,300 quotes per million reads of a thousand tokens
    touched = EMPTY.with_access("a", 1, rules, edited=True).with_resident(read(1, "a", 20), rules)
    for call in range(2, 8):
        touched = touched.at_call(call, rules)
    touched = touched.with_access("a", 8, rules, edited=False)
    for call in range(9, 12):
        touched = touched.at_call(call, rules)
        assert old(touched) == []
    assert old(touched.at_call(12, rules)) == ["a1"]


def test_a_touch_makes_a_read_wait_again_without_its_reason() -> None:
    rules = judging(QuoteOdds(-9_000, (("size", -1),), (10,)), 100)
    standing = EMPTY.with_resident(read(1, "a"), rules).at_call(5, rules)
    assert [one.why for one in standing.old()] == ["500 tokens"]
    again = standing.with_access("a", 6, rules, edited=False)
    assert (again.old_tokens, [one.why for one in again.all()]) == (0, [""])


def test_a_later_read_covers_one_of_the_same_lines() -> None:
    rules = judging(QuoteOdds(0, (("covered", -9_000),), (0,)), 1)
    standing = EMPTY.with_resident(read(1, "a", lines=(5, 20)), rules).with_resident(read(2, "a", lines=(1, 30)), rules)
    assert old(standing.at_call(6, rules)) == ["a1"]
    apart = EMPTY.with_resident(read(1, "a", lines=(5, 20)), rules).with_resident(read(2, "a", lines=(10, 30)), rules)
    assert old(apart.at_call(6, rules)) == []


@dataclass(frozen=True, slots=True)
class _Counting(QuoteOdds):
    """Odds that count what they judge, and let nothing go."""

    judged: list[str]

    def reasons_of_unlikely(self, reads: Iterable[ReadCounts], quotes: int) -> dict[str, str]:
        self.judged.extend(read.call_id for read in reads)
        return {} if quotes else dict.fromkeys(self.judged, "")


@pytest.mark.parametrize("calls", [300, 1_200])
def test_the_judgements_of_a_call_do_not_grow_with_the_session(calls: int) -> None:
    judged: list[str] = []
    rules = judging(_Counting(0, (), (), judged), 1)
    standing = EMPTY
    for call in range(1, calls):
        standing = standing.with_resident(read(call, f"{call}.py"), rules).at_call(call + 1, rules)
        if call == calls - 9:
            judged.clear()
    assert len(judged) == 8 * 15  # of each call, every fourth of the last sixty reads


def test_a_file_whose_reads_have_all_left_is_judged_without_any() -> None:
    odds = QuoteOdds(0, (("since edit", -1_000),), (0,))
    rules = ResidencyRules((USUAL.rows[0], *judging(odds, 0).rows))
    standing = (
        EMPTY.with_resident(read(1, "a"), rules)
        .with_resident(read(2, "b"), rules)
        .with_access("a", 2, rules, edited=True)
    )
    standing = standing.without([next(one.place for one in standing.all() if one.path == "a")])
    for call in range(3, 20):
        standing = standing.at_call(call, rules)
        assert old(standing) == []

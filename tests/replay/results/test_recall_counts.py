"""Recalls that a store's sessions made, beside those that the stress model draws."""

import pytest

from pagein.model.entries import Body, EpochEntry, NoteEntry, PagedOut, PreviewEntry, RecallEntry, RequestSent
from pagein.model.journal_notes import PrefixDigests, UsageNote
from pagein.model.messages import Usage
from pagein.model.names import ContentHash
from pagein.replay.policies.stress_needs import STRESS_PREVIEWS, STRESS_REACH, STRESS_SHARE
from pagein.replay.results.recall_counts import RecallCount, RecallCounts, recall_counts

_MANY = 2000


def _gone(number: int) -> PagedOut:
    return PagedOut(f"c{number}", f"pg-{number}", ContentHash.of(b""), 300, 1200, "[stub]", 0, 0)


def _epoch(*numbers: int) -> EpochEntry:
    return EpochEntry(1, 0, tuple(map(_gone, numbers)))


def _sent(calls: int) -> list[Body]:
    return [RequestSent(0, call) for call in range(calls)]


def test_each_text_counts_once_however_often_it_leaves_and_comes_back() -> None:
    entries: list[Body] = [*_sent(2), _epoch(1, 2), RecallEntry("pg-1"), RecallEntry("pg-1"), _epoch(1), *_sent(1)]
    assert recall_counts("one", entries).evicted == RecallCount(absent=2, recalled=1)
    assert recall_counts("one", entries).calls == 3


def test_a_recall_of_what_never_left_is_none() -> None:
    assert recall_counts("one", [RecallEntry("pg-9"), _epoch(1)]).evicted == RecallCount(absent=1)


def test_a_preview_and_the_eviction_of_its_text_are_two_ways() -> None:
    entries: list[Body] = [PreviewEntry((_gone(1),)), *_sent(1), RecallEntry("pg-1"), _epoch(1)]
    found = recall_counts("one", entries)
    assert (found.previewed.absent, found.previewed.recalled) == (1, 1)
    assert (found.evicted.absent, found.evicted.recalled) == (1, 1)


def test_the_stress_model_draws_its_shares_once_their_calls_have_come() -> None:
    evicted: list[Body] = [_epoch(*range(_MANY)), *_sent(STRESS_REACH + 1)]
    drawn = recall_counts("one", evicted).evicted.drawn
    assert abs(drawn - STRESS_SHARE * _MANY) < 60
    assert recall_counts("one", evicted[:6]).evicted.drawn < drawn
    assert recall_counts("one", evicted).evicted.drawn == drawn  # drawn alike in every run
    previews: list[Body] = [PreviewEntry(tuple(map(_gone, range(_MANY)))), *_sent(1)]
    assert abs(recall_counts("one", previews).previewed.drawn - STRESS_PREVIEWS * _MANY) < 90


def _answered(prompt: int) -> Body:
    return NoteEntry.of(UsageNote(Usage(read=prompt)))


def test_recalls_are_priced_as_one_more_request_and_the_text() -> None:
    model: Body = NoteEntry.of(PrefixDigests("claude-sonnet-4-5"))
    entries = [model, _epoch(1, 2), *_sent(1), RecallEntry("pg-1"), _answered(100_000), RecallEntry("pg-9")]
    found = recall_counts("one", entries)
    assert found.usd == pytest.approx(0.1 * 100_000 * 3 / 1e6)
    assert found.recalled_usd == pytest.approx((0.1 * 100_000 + 1.25 * 300 + 5 * 60) * 3 / 1e6)
    assert found.drawn_usd == 0.0
    previews = PreviewEntry(tuple(map(_gone, range(_MANY))))
    drawn = recall_counts("one", [model, previews, *_sent(1), _answered(100_000)])
    assert drawn.drawn_usd == pytest.approx(found.recalled_usd * drawn.previewed.drawn)


def test_a_model_without_a_price_has_no_bill() -> None:
    entries = [NoteEntry.of(PrefixDigests("nobody")), _epoch(1), *_sent(1), RecallEntry("pg-1"), _answered(1000)]
    assert recall_counts("one", entries).usd == recall_counts("one", entries).recalled_usd == 0.0


def test_sessions_add_up() -> None:
    one = RecallCounts(2, RecallCount(3, 1, 0), RecallCount(1, 1, 1), 1.0, 0.25, 0.5)
    assert one + one == RecallCounts(4, RecallCount(6, 2, 0), RecallCount(2, 2, 2), 2.0, 0.5, 1.0)

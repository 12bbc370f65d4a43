"""The cache TTL of a request: which anchor needs a breakpoint of its own after the client changed the model."""

from dataclasses import replace

from pagein.engine.cache.cache_ttl import (
    TtlTerms,
    prefix_after_answer,
    terms,
)
from pagein.engine.cache.cached_prefix import CachedPrefix, note_of, step
from pagein.model.entries import NoteEntry
from pagein.model.messages import Usage
from pagein.policy.economics.cache_keepalive import CacheLease, Lifetimes
from pagein.policy.economics.rewrite_cost import Moment

LONG = Lifetimes(asked=3600.0)
POOR = 0.0


def _asked(held: CachedPrefix | None, at: float, *, size: int, switched: bool = False, anew: bool = False) -> TtlTerms:
    moment = Moment(now=at, last=None, size=size, new=500)
    found = terms(held, LONG, moment, POOR, anew=anew, switched=switched)
    assert found is not None
    return found


def _answered(of: TtlTerms, messages: int, size: int) -> CachedPrefix:
    return prefix_after_answer(of, Usage(fresh=0, read=0, written=size), rewritten=False, messages=messages)


def test_a_request_with_more_blocks_than_the_look_back_or_with_an_image_gets_no_anchor() -> None:
    held = CachedPrefix(CacheLease(300.0, sent=0.0, held=60_000.0, calls=10, stops=1, feared=1e6))
    for moment, asking in (
        (Moment(20.0, 0.0, 60_500, 500, blocks=19), 3600.0),
        (Moment(20.0, 0.0, 60_500, 500, blocks=20), 300.0),
        (Moment(20.0, 0.0, 60_500, 500, blocks=2, uncounted=True), 300.0),
    ):
        found = terms(held, Lifetimes(asked=300.0), moment, 1e9, anew=False)
        assert found is not None
        assert found.asking == asking


def test_an_anchor_behind_an_answer_is_paid_for_what_the_last_request_showed_after_its_last_breakpoint() -> None:
    """The results stand in front of the answer and are in no cache, so the anchor writes 8,000 tokens beside its 300.

    If they stay, they were also paid in full instead of read.
    """
    held = CachedPrefix(CacheLease(300.0, sent=0.0, held=60_000.0, calls=10, stops=1, feared=1e6))
    premium = 0.75
    for size, in_hand, exposable in (
        (60_500, 301 * premium, 200.0),
        (68_500, 301 * premium, 0.0),
        (68_500, 8301 * premium, 0.0),
        (68_500, 8301 * premium + 8000 * 0.9, 200.0),
    ):
        found = terms(held, Lifetimes(asked=300.0), Moment(20.0, 0.0, size, 500, replied=300), in_hand, anew=False)
        assert found is not None
        assert found.exposable == exposable
    moment = Moment(20.0, 0.0, 68_500, 500, replied=300)
    borrowing = terms(held, Lifetimes(asked=300.0), moment, 0.0, anew=False, reserve=1e6)
    assert borrowing is not None
    assert borrowing.exposable == 0.0, "the savings of other sessions pay for no anchor that writes them, too"


def test_on_a_return_to_a_model_the_anchor_in_its_cache_gets_a_breakpoint() -> None:
    first = _answered(_asked(None, 0.0, size=10_000), messages=5, size=10_000)
    other = _asked(first, 60.0, size=11_000, switched=True)
    assert other.anchor is None, "the other model's cache has never held the window"
    second = _answered(other, messages=9, size=11_000)
    back = _asked(second, 120.0, size=12_000, switched=True)
    assert back.anchor == 4, "the last message of the request that the first model answered"
    third = _answered(back, messages=13, size=12_000)
    assert _asked(third, 130.0, size=12_500).anchor is None, "only the first request after the return needs it"
    assert _asked(third, 180.0, size=13_000, switched=True).anchor == 8


def test_an_anchor_that_the_cache_has_lost_gets_no_breakpoint() -> None:
    first = _answered(_asked(None, 0.0, size=10_000), messages=5, size=10_000)
    second = _answered(_asked(first, 60.0, size=11_000, switched=True), messages=9, size=11_000)
    assert _asked(second, 3700.0, size=12_000, switched=True).anchor is None
    begun_anew = _answered(_asked(second, 100.0, size=900, anew=True), messages=1, size=900)
    assert _asked(begun_anew, 120.0, size=1000, switched=True).anchor is None


def test_the_anchor_that_was_left_is_journaled() -> None:
    first = _answered(_asked(None, 0.0, size=10_000), messages=5, size=10_000)
    second = _answered(_asked(first, 60.0, size=11_000, switched=True), messages=9, size=11_000)
    assert (second.left, second.left_until) == (4, 3600.0)
    folded = step(None, NoteEntry.of(note_of(second)))
    assert folded == second
    unproven = replace(second, lease=replace(second.lease, lingers=4000.0))
    assert step(None, NoteEntry.of(note_of(unproven))) == unproven

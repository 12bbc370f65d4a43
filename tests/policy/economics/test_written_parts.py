"""How old cache entries are, which of them are surely read, and what shows that a provider renews them."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.economics.written_parts import NOTHING_WRITTEN, WrittenParts

SHORT = 300.0


def _parts(*requests: tuple[float, float, float]) -> WrittenParts:
    """The parts after requests of a time, tokens read and tokens written."""
    parts = NOTHING_WRITTEN
    for at, read, written in requests:
        parts = parts.after(at, read, written, SHORT)
    return parts


def test_a_prompt_that_was_written_whole_is_surely_read_until_its_entries_may_end() -> None:
    parts = _parts((0.0, 0.0, 9000.0), (100.0, 9000.0, 1000.0))
    assert parts.sure_from(270.0) == 0.0
    assert parts.sure_from(290.0) == 10_000.0  # only the later one is young
    assert parts.sure_from(400.0) == inf


def test_a_prompt_prefix_that_others_wrote_is_of_unknown_age() -> None:
    assert _parts((0.0, 8000.0, 1000.0)).sure_from(1.0) == 9000.0


def test_entries_behind_what_a_request_read_are_not_in_the_prompt_any_more() -> None:
    parts = _parts((0.0, 0.0, 9000.0), (100.0, 9000.0, 5000.0), (200.0, 9000.0, 2000.0))
    assert [(one.start, one.end) for one in parts.parts] == [(0.0, 9000.0), (11_000.0, 11_000.0)]


@pytest.mark.parametrize(
    ("read", "now", "shown"),
    [
        (9000.0, 400.0, True),  # written at 0, and five minutes are over
        (9000.0, 340.0, False),  # a provider may remove entries late
        (10_000.0, 400.0, False),  # written at 100
        (10_000.0, 500.0, True),
        (8000.0, 400.0, False),  # the prompt prefix alone, which another session may have written since
        (12_000.0, 500.0, False),  # an entry that nobody knows
    ],
)
def test_an_entry_that_was_read_behind_its_own_end_shows_renewal(read: float, now: float, shown: bool) -> None:  # noqa: FBT001
    assert _parts((0.0, 0.0, 9000.0), (100.0, 9000.0, 1000.0)).shows_renewal(now, read) is shown


_STEPS = st.lists(
    st.tuples(st.floats(0.0, 400.0), st.integers(1, 3000), st.booleans(), st.integers(0, 9)), min_size=1, max_size=60
)


@given(_STEPS, st.booleans())
def test_what_is_sure_is_read_and_what_shows_renewal_was_renewed(
    steps: list[tuple[float, int, bool, int]],
    renews: bool,  # noqa: FBT001
) -> None:
    """Against a cache that keeps each entry: a request may cut the prompt at an earlier entry, and goes on behind it."""
    entries: dict[int, float] = {}  # by end: the time until which it lives
    parts, now, size = NOTHING_WRITTEN, 0.0, 0
    for gap, news, cuts, which in steps:
        now += gap
        ends = sorted(entries)
        kept = ends[which % len(ends)] if cuts and ends else size
        alive = [end for end in ends if end <= kept and now <= entries[end]]
        if kept >= parts.sure_from(now):
            assert alive, (kept, entries, now)
        read = max(alive, default=0)
        if not renews:
            assert not parts.shows_renewal(now, read), (read, entries, parts)
        if renews:
            entries |= dict.fromkeys(alive, now + SHORT)
        size = kept + news
        entries = {end: until for end, until in entries.items() if end <= read} | {size: now + SHORT}
        parts = parts.after(now, read, size - read, SHORT)
        assert len(parts.parts) <= 24

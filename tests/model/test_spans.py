"""Laws of sets of lines, against sets of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.spans import NO_LINES, Spans

numbers = st.sets(st.integers(1, 40))


def members(spans: Spans) -> set[int]:
    return {n for first, last in spans for n in range(first, last + 1)}


@given(numbers, numbers)
def test_spans_behave_as_the_sets_of_their_lines(a: set[int], b: set[int]) -> None:
    x, y = Spans.lines(a), Spans.lines(b)
    assert members(x) == a
    assert members(x.unite(y)) == a | b
    assert members(x.intersect(y)) == a & b
    assert members(x.subtract(y)) == a - b
    assert x.contains(y) == (b <= a)
    assert x.count == len(a)
    assert bool(x) == bool(a)


@given(numbers, numbers)
def test_equal_sets_are_equal_values_however_they_were_made(a: set[int], b: set[int]) -> None:
    x, y = Spans.lines(a), Spans.lines(b)
    assert x.unite(y) == Spans.lines(a | b) == Spans.of(*((n, n) for n in [*b, *a]))
    assert x.subtract(y).unite(x.intersect(y)) == x


@given(numbers, st.integers(-50, 50))
def test_shifting_moves_every_line_and_drops_what_leaves_the_file(a: set[int], by: int) -> None:
    assert members(Spans.lines(a).shift(by)) == {n + by for n in a if n + by >= 1}


@given(numbers, st.integers(-3, 45), st.integers(-3, 45))
def test_clamping_and_holding_speak_of_the_same_range(a: set[int], first: int, last: int) -> None:
    spans, asked = Spans.lines(a), set(range(max(first, 1), last + 1))
    assert members(spans.clamp(first, last)) == a & asked
    if first >= 1:
        assert spans.holds(first, last) == (asked <= a)


def test_runs_that_touch_are_one_run_and_empty_ones_are_none() -> None:
    assert Spans.of((5, 6), (1, 2), (3, 4), (9, 8)).runs == ((1, 6),)
    assert Spans.of((0, 0), (3, 2)) == NO_LINES
    assert NO_LINES.holds(4, 3)

"""Finding known lines under other numbers."""

import time

from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.reads.line_matches import MovedLines, ShownLineIndex

BLOCK = [f"line {i}" for i in range(10)]


def found(shown: list[tuple[int, list[str]]], lines: list[str], size: int = 5) -> list[MovedLines]:
    return ShownLineIndex(shown, size).runs(lines, [(1, len(lines))])


def test_a_block_that_moved_is_one_run() -> None:
    assert found([(1, BLOCK)], ["new", *BLOCK, "end"]) == [MovedLines(2, 10, 1)]


def test_runs_shorter_than_the_least_are_left_alone() -> None:
    assert found([(1, BLOCK[:4])], ["new", *BLOCK[:4]]) == []


def test_blank_lines_do_not_make_a_run() -> None:
    blanks = ["", "  ", "", "\t", "", "", "", "a"]
    assert found([(1, blanks)], ["x", *blanks]) == []
    spaced = ["a", "", "b", "", "c"]
    assert found([(1, spaced)], ["x", *spaced]) == [MovedLines(2, 5, 1)]
    sparse = ["a", "", "b", "", ""]
    assert found([(1, sparse)], ["x", *sparse]) == []
    assert found([(1, [*BLOCK[:5], "", ""])], ["x", *BLOCK[:5], "", ""]) == [MovedLines(2, 7, 1)]


def test_of_several_places_the_longest_wins_and_then_the_last_shift() -> None:
    shown = [(1, [*BLOCK[:6], "other"]), (50, [*BLOCK, "tail"])]
    assert found(shown, ["x", *BLOCK, "y"]) == [MovedLines(2, 10, 50)]
    twice = [(1, BLOCK), (101, BLOCK), (111, ["a", "b", "c", "d", "e"])]
    lines = ["a", "b", "c", "d", "e", "gap", *BLOCK]
    assert found(twice, lines) == [MovedLines(1, 5, 111), MovedLines(7, 10, 101)]


def test_a_run_never_joins_numbers_that_do_not_follow_each_other() -> None:
    assert found([(1, BLOCK[:5]), (20, BLOCK[5:])], BLOCK) == [MovedLines(1, 5, 1), MovedLines(6, 5, 20)]


def test_repetitive_text_takes_time_that_grows_with_its_length() -> None:
    lines = ["}"] * 12_000
    began = time.process_time()
    assert ShownLineIndex([(1, ["x", *lines])], 5).runs(lines, [(1, 12_000)])
    ShownLineIndex([(1, [""] * 12_000)], 5).runs([""] * 12_000, [(1, 12_000)])
    assert time.process_time() - began < 60


words = st.lists(st.sampled_from(["a", "b", "c", "", "d e", "f"]), min_size=1, max_size=40)


@given(words, words, st.integers(1, 4))
def test_every_run_is_there_and_none_overlaps_another(shown: list[str], lines: list[str], size: int) -> None:
    last = 0
    for run in found([(7, shown)], lines, size):
        assert run.at > last
        last = run.at + run.count - 1
        assert run.count >= size
        assert lines[run.at - 1 : last] == shown[run.shown_as - 7 : run.shown_as - 7 + run.count]

"""Diffs by whole hunks: nothing torn, everything accounted for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.reads.hunk_budget import choose_hunks, hunks_of
from pagein.policy.reads.line_diff import LineChange, changes, split_lines, unified_diff

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "\r", "x\u2028y", "long " * 9]), max_size=60).map("\n".join)


@given(TEXTS, TEXTS)
def test_the_hunks_are_the_whole_diff(old: str, new: str) -> None:
    before, after = split_lines(old), split_lines(new)
    frame = LineChange(0, len(before), 0, len(after))
    whole = unified_diff(before, after, "f", changes(before, after), frame)
    hunks = hunks_of(old, new)
    assert "".join(one.text for one in hunks) == whole.text.split("\n", 2)[2]
    assert sum(one.added for one in hunks) == whole.added
    assert sum(one.removed for one in hunks) == whole.removed
    assert [one.number for one in hunks] == list(range(1, len(hunks) + 1))
    for one in hunks:
        assert all(line in split_lines(new) for line in after[one.first - 1 : one.last])


@given(TEXTS, TEXTS, st.integers(0, 2_000), st.one_of(st.none(), st.integers(0, 3)))
def test_what_is_shown_fits_and_what_is_left_out_follows(old: str, new: str, room: int, limit: int | None) -> None:
    hunks = hunks_of(old, new)
    offset = 1
    while hunks and offset <= len(hunks):
        choice = choose_hunks(hunks, offset, limit, room)
        assert choice.text == "".join(one.text for one in choice.shown)
        assert not choice.shown or len(choice.listed) + len(choice.text) <= room
        assert limit is None or len(choice.shown) <= limit
        numbers = (*(one.number for one in choice.shown), *choice.left)
        assert numbers == tuple(range(offset, len(hunks) + 1))
        assert choice.next_offset == (choice.left[0] if choice.left else None)
        offset = (choice.next_offset or len(hunks) + 1) + (not choice.shown)


@pytest.mark.parametrize(("room", "named"), [(10_000, 40), (300, 3)])
def test_the_headers_come_first_as_far_as_a_third_of_the_room_takes_them(room: int, named: int) -> None:
    old = "".join(f"line {number}\n" for number in range(400))
    new = old.replace("5\n", "5 changed\n")
    choice = choose_hunks(hunks_of(old, new), 1, None, room)
    rows = choice.listed.splitlines()
    assert rows[0] == "1. @@ -3,7 +3,7 @@ +1 -1"
    assert len([row for row in rows if row[0].isdigit()]) == named
    assert (rows[-1] == "... and 37 more hunks") == (named == 3)

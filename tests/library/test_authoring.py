"""An edit proves the lines it wrote whole and leaves alone what it does not touch; nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.names import ContentHash
from pagein.model.reading import Copy
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.authoring import Edit, edited, seen_after, written

TEN = "".join(f"line {n}\n" for n in range(1, 11))


def test_a_write_proves_the_whole_text() -> None:
    event = written("/w/a", "a\nb\n")
    assert (event.version, event.total, event.whole) == (ContentHash.of(b"a\nb\n"), 3, True)
    assert event.authored == Spans.of((1, 3))


def test_an_edit_of_whole_lines_writes_them_and_leaves_the_rest() -> None:
    event = edited("/w/a", TEN, Edit("line 4\nline 5\n", "four\nfour and a half\nfive\n"))
    assert event is not None
    assert event.version == ContentHash.of(TEN.replace("line 4\nline 5\n", "four\nfour and a half\nfive\n").encode())
    assert event.authored == Spans.of((4, 6))
    base = ContentHash.of(TEN.encode())
    assert event.copies == (Copy(base, 1, 3, 1), Copy(base, 6, 6, 7))
    assert event.total == 12


def test_a_line_that_begins_or_ends_outside_the_edit_is_not_written_by_it() -> None:
    event = edited("/w/a", TEN, Edit("4\nline 5\nli", "FOUR\nline FIVE\nLI"))
    assert event is not None
    assert event.authored == Spans.of((5, 5))
    assert [(copy.first, copy.count, copy.at) for copy in event.copies] == [(1, 3, 1), (7, 5, 7)]


def test_an_edit_inside_one_line_writes_no_line() -> None:
    event = edited("/w/a", TEN, Edit("e 4", "E 4"))
    assert event is not None
    assert event.authored == NO_LINES


def test_taking_lines_out_writes_nothing_and_moves_the_rest() -> None:
    event = edited("/w/a", TEN, Edit("line 2\nline 3\n", ""))
    assert event is not None
    assert event.authored == NO_LINES
    assert [(copy.first, copy.count, copy.at) for copy in event.copies] == [(1, 1, 1), (4, 8, 2)]


def test_an_empty_line_behind_the_new_text_is_not_part_of_it() -> None:
    event = edited("/w/a", "a\nb\n\nc\n", Edit("b\n", "B\n"))
    assert event is not None
    assert event.authored == Spans.of((2, 2))


def test_an_edit_that_does_not_fit_or_could_fit_twice_proves_nothing() -> None:
    assert edited("/w/a", TEN, Edit("line 99", "x")) is None
    assert edited("/w/a", TEN, Edit("line", "x")) is None
    assert edited("/w/a", TEN, Edit("", "x")) is None
    assert edited("/w/a", TEN, Edit("line 4", "line 4")) is None


def test_an_edit_everywhere_is_certain_however_often_its_text_stands_there() -> None:
    event = edited("/w/a", "a x\nb\nc x\n", Edit("x", "y", everywhere=True))
    assert event is not None
    assert event.version == ContentHash.of(b"a y\nb\nc y\n")
    assert [(copy.first, copy.count, copy.at) for copy in event.copies] == [(2, 1, 2), (4, 1, 4)]


def test_without_the_version_before_only_the_new_lines_are_known() -> None:
    event = seen_after("/w/a", "a\nNEW 1\nNEW 2\nb\n", Edit("old", "NEW 1\nNEW 2\n"))
    assert event is not None
    assert (event.authored, event.copies) == (Spans.of((2, 3)), ())
    assert seen_after("/w/a", "NEW\nNEW\n", Edit("old", "NEW\n")) is None
    assert seen_after("/w/a", "a\n", Edit("old", "")) is None
    assert seen_after("/w/a", "xNEWx\n", Edit("old", "NEW")) is None


texts = st.text(alphabet="ab\n", max_size=40)


@given(texts, texts, texts, texts, st.booleans())
def test_every_claimed_line_stands_where_it_is_claimed(
    head: str,
    old: str,
    new: str,
    tail: str,
    everywhere: bool,  # noqa: FBT001 - drawn
) -> None:
    before, edit = head + old + tail, Edit(old, new, everywhere)
    after = edit.applied(before)
    event = edited("/w/a", before, edit)
    if event is None or after is None:
        return
    old_lines, new_lines = before.split("\n"), after.split("\n")
    assert event.total == len(new_lines)
    pieces = new.split("\n")
    for first, last in event.authored:
        assert 1 <= first <= last <= len(new_lines)
        assert all(line in pieces for line in new_lines[first - 1 : last])
    copied = NO_LINES
    for copy in event.copies:
        assert copy.count >= 1
        ours = new_lines[copy.at - 1 : copy.at - 1 + copy.count]
        assert len(ours) == copy.count
        assert ours == old_lines[copy.first - 1 : copy.first - 1 + copy.count]
        copied = copied.unite(Spans.of((copy.at, copy.at + copy.count - 1)))
    assert not copied.intersect(event.authored)

"""Diffs: exact on every kind of text, bounded on every size, in the form of jsdiff."""

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pagein.policy.reads.line_diff import Diff, LineChange, changes, split_lines, unified_diff, within

texts = st.lists(st.sampled_from(["a", "b", "c", "", "\r", "x\r", "\x00", "\u2028", "\x0c", "--- a", "+++ b", "@@ -1 +1 @@", "\\ No"]), max_size=14).map(
    "\n".join
)  # fmt: skip


def diff_of(old: str, new: str, context: int = 3, label: str = "f") -> Diff:
    a, b = split_lines(old), split_lines(new)
    return unified_diff(a, b, label, changes(a, b), LineChange(0, len(a), 0, len(b)), context)


def applied(old: str, patch: str) -> str:
    """What the patch makes of the old text; checks every line it quotes."""
    lines, out, at = split_lines(old), list[str](), 0
    rows = patch.split("\n")[2:-1]
    for k, row in enumerate(rows):
        if row.startswith("@@"):
            first, count = (int(part) for part in row.split(" ")[1][1:].split(","))
            start = first - (count > 0)
            out += lines[at:start]
            at = start
            continue
        if row.startswith("\\"):
            continue
        ended = not (k + 1 < len(rows) and rows[k + 1].startswith("\\"))
        line = row[1:] + ("\n" if ended else "")
        if row[0] in " -":
            assert lines[at] == line
            at += 1
        if row[0] in " +":
            out.append(line)
    return "".join(out + lines[at:])


@given(texts, texts, st.integers(0, 4))
@example("a\nb", "a\nb\n", 3)
@example("", "a", 0)
@example("\ufeffa", "a", 3)
def test_applying_a_diff_gives_the_new_text_byte_for_byte(old: str, new: str, context: int) -> None:
    assert applied(old, diff_of(old, new, context).text) == new


@given(texts)
def test_a_text_is_the_lines_it_is_split_into(text: str) -> None:
    assert "".join(split_lines(text)) == text
    assert all(line.endswith("\n") for line in split_lines(text)[:-1])


@given(texts, texts, st.integers(0, 60))
def test_changes_are_right_whatever_the_budget(old: str, new: str, budget: int) -> None:
    a, b = split_lines(old), split_lines(new)
    i = j = 0
    for change in changes(a, b, budget):
        assert a[i : change.i1] == b[j : change.j1]
        i, j = change.i2, change.j2
    assert a[i:] == b[j:]


@given(texts, texts, st.integers(0, 12), st.integers(0, 12))
def test_the_part_of_a_diff_for_a_range_makes_that_range(old: str, new: str, first: int, size: int) -> None:
    a, b = split_lines(old), split_lines(new)
    first = min(first, len(b))
    last = min(first + size, len(b))
    frame, inside = within(changes(a, b), first, last)
    out, i = list[str](), frame.i1
    for change in inside:
        out += a[i : change.i1] + b[change.j1 : change.j2]
        i = change.i2
    assert out + a[i : frame.i2] == b[first:last]


@given(texts, texts)
def test_the_lines_a_diff_shows_stand_in_it(old: str, new: str) -> None:
    diff = diff_of(old, new)
    rows = diff.text.split("\n")
    b = new.split("\n")
    for first, last in diff.shown:
        for n in range(first, last + 1):
            assert {" " + b[n - 1], "+" + b[n - 1]} & set(rows)


def test_one_changed_line_of_three_reads_as_the_prior_art_writes_it() -> None:
    diff = diff_of("a\nb\nc\n", "a\nB\nc\n", label="dir/name.txt")
    assert diff.text == "--- a/dir/name.txt\t\n+++ b/dir/name.txt\t\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    assert (diff.changed, diff.lines) == (1, 7)


def test_equal_texts_have_no_changes() -> None:
    assert changes(split_lines("a\nb\n"), split_lines("a\nb\n")) == ()


def test_names_lose_what_would_break_a_header_and_an_empty_one_is_unknown() -> None:
    assert diff_of("a", "b", label="x\ty\rz\n").text.startswith("--- a/x_y_z_\t\n+++ b/x_y_z_\t\n")
    assert diff_of("a", "b", label="").text.startswith("--- a/unknown\t\n")


def test_a_side_without_a_last_newline_is_marked_and_the_marker_is_a_line() -> None:
    diff = diff_of("a\nb", "a\nb\nc")
    assert diff.text.endswith(" a\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n")
    assert (diff.changed, diff.lines) == (2, 9)


def test_lines_that_look_like_headers_are_counted() -> None:
    diff = diff_of("a\nb\n", "--- dashes\n+++ plusses\n")
    assert (diff.added, diff.removed, diff.changed) == (2, 2, 2)


def test_an_empty_side_is_placed_after_the_line_before_it() -> None:
    assert "@@ -0,0 +1,2 @@" in diff_of("", "a\nb\n").text
    assert "@@ -2,1 +1,0 @@" in diff_of("a\nb\n", "a\n", context=0).text


def test_changes_share_a_hunk_up_to_twice_the_context() -> None:
    lines = [f"{i}\n" for i in range(20)]
    for gap, hunks in ((6, 1), (7, 2)):
        new = list(lines)
        new[5] = new[5 + gap + 1] = "new\n"
        assert diff_of("".join(lines), "".join(new)).text.count("@@ -") == hunks


@pytest.mark.parametrize("distinct", [1, 3, 150, 6000, 12000])
def test_no_text_within_the_bounds_takes_long(distinct: int) -> None:
    draw = random.Random(distinct)  # noqa: S311 - a text, not a secret
    old = [f"line {draw.randrange(distinct)}\n" for _ in range(12_000)]
    new = [f"line {draw.randrange(distinct)}\n" for _ in range(12_000)]
    began = time.process_time()
    found = changes(old, new)
    assert time.process_time() - began < 60  # plain difflib takes minutes on some of these
    i = j = 0
    for change in found:
        assert old[i : change.i1] == new[j : change.j1]
        i, j = change.i2, change.j2


def test_a_few_edits_in_a_long_file_stay_a_few_changes() -> None:
    old = [f"line {i}\n" if i % 3 else "}\n" for i in range(12_000)]
    new = list(old)
    for at in (11_000, 6_000, 10):
        new[at : at + 1] = ["inserted\n", "too\n"]
    assert len(changes(old, new)) == 3

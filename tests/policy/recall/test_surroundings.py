"""The lines around quoted text in a recalled object."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.read_caps import DEFAULT_CAPS
from pagein.policy.recall.surroundings import around

NUMBERED = "".join(f"{place:6}\tline {place} of the file\n" for place in range(1, 201))


def test_a_quote_is_shown_with_as_many_lines_before_as_behind() -> None:
    part = around("pg-1", NUMBERED, "line 90 of", lines=4)
    assert part.text == "".join(f"{place:6}\tline {place} of the file\n" for place in range(88, 93))
    assert part.hints == ("[Showing lines 88\u201392 of 201. Use line=93 to continue.]",)
    assert part.following == ("line", 93)


def test_a_quote_of_several_lines_is_found_behind_line_numbers_and_other_indentation() -> None:
    quote = "    line 7 of the file\nline 8 of the file\n\tline 9 of the file\n"
    part = around("pg-1", NUMBERED, quote, lines=0)
    assert part.text == "".join(f"{place:6}\tline {place} of the file\n" for place in (7, 8, 9))


def test_lines_that_do_not_follow_each_other_are_no_match() -> None:
    for quote in ("line 7 of the file\nline 9 of the file", "line 200 of the file\nline 201", "line 201"):
        part = around("pg-1", NUMBERED, quote)
        assert (part.text, part.following) == ("", None)
        assert part.as_text.startswith("[Object pg-1 does not contain this text.")


def test_a_match_behind_too_many_places_is_not_denied() -> None:
    part = around("pg-1", "return None\n" * 20_000 + "foo()\n", "return None\nfoo()")
    assert part.as_text.startswith("[Object pg-1 contains this text at none of the places that were tried.")


def test_the_lines_of_other_matches_are_named() -> None:
    text = "same\nother\n" * 8
    part = around("pg-1", text, "same", lines=2)
    assert part.text == "same\nother\n"
    assert part.hints[0] == "[Showing the first match; others are at lines 3, 5, 7, 9, 11, and others.]"
    assert around("pg-1", "same same same\n", "same").hints == (), "a line counts once"


@pytest.mark.parametrize("before", [0, 400_000])
def test_long_lines_are_cut_around_the_match(before: int) -> None:
    text = "x" * before + "needle" + "y" * 400_000
    part = around("pg-1", text, "needle")
    assert "needle" in part.text
    assert len(part.text) < 3000
    lines = ("z" * 9_000 + "\n") * 30 + "needle\n" + ("z" * 9_000 + "\n") * 30
    part = around("pg-1", lines, "needle")
    assert "needle" in part.text
    assert len(part.text.encode()) <= DEFAULT_CAPS.bytes


@given(st.lists(st.text("ab \t", max_size=4), max_size=30), st.data())
def test_every_quote_of_a_text_is_found_where_it_first_stands(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    first = data.draw(st.integers(0, max(0, len(lines) - 1)))
    quote = "\n".join(lines[first : data.draw(st.integers(first, len(lines)))])
    if not quote.strip():
        return
    part = around("pg-1", text, quote, lines=0)
    wanted = [one.strip() for one in quote.strip().split("\n")]
    shown = part.text.removesuffix("\n").split("\n")
    assert len(shown) == len(wanted)
    assert all(one in line for one, line in zip(wanted, shown, strict=True))
    places = [
        place
        for place in range(len(lines))
        if all(one in line for one, line in zip(wanted, lines[place:], strict=False))
        and place + len(wanted) <= len(lines)
    ]
    assert text.count("\n", 0, part.start) == places[0]

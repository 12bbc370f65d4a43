"""Parts of a text: exact, paged, and complete for whoever follows the hints."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.read_caps import ReadCaps
from pagein.policy.recall.text_slices import LENGTH, Slice, by_characters, by_lines

NAME = "pg-01234567-89abcdef"
CHARS = re.compile(r"\n?\[Showing (\d+)\u2013(\d+) of (\d+) chars\. Use offset=(\d+) to continue\.\]\Z")
ROWS = re.compile(r"\n?\[Showing lines (\d+)\u2013(\d+) of (\d+)\. Use line=(\d+) to continue\.\]\Z")
# text as hosts have it: long and short lines, any character, and our own hints quoted in it
TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(), max_size=12),
        st.just("\n"),
        st.just("x" * 90),
        st.just("[Showing 0\u20135 of 9 chars. Use offset=5 to continue.]"),
        st.just(f"[Output truncated. Object {NAME} has 9 total chars.]"),
        st.just("[Showing lines 1\u20132 of 3. Use line=3 to continue.]"),
    ),
    max_size=25,
).map("".join)
CAPS = st.builds(ReadCaps, lines=st.integers(1, 6), bytes=st.integers(4, 120))


def followed(text: str, cut: Slice, caps: ReadCaps, length: int) -> str:
    """All that is shown to a model that knows nothing but the texts of the answers."""
    seen = ""
    for _ in range(4 * len(text) + 10):
        shown = cut.as_text
        chars, rows = CHARS.search(shown), ROWS.search(shown)
        if chars is not None:
            start, end, total, following = map(int, chars.groups())
            assert (end, total) == (following, len(text))
            seen += shown[: end - start]
            cut = by_characters(NAME, text, following, length, caps)
        elif rows is not None:
            seen += cut.text
            assert shown.startswith(cut.text)
            cut = by_lines(NAME, text, int(rows[4]), length, caps)
        else:
            # the last part; a line behind it says that it is the end, where it might be taken for a hint
            closing = f"[End of {NAME}: {len(text)} chars.]"
            return seen + (shown.removesuffix(closing).removesuffix("\n") if shown.endswith(closing) else shown)
    raise AssertionError("the hints never came to an end")


@given(TEXTS.filter(bool), st.integers(1, 40), CAPS)
def test_following_the_hints_from_the_first_character_yields_the_whole_text(
    text: str, length: int, caps: ReadCaps
) -> None:
    assert followed(text, by_characters(NAME, text, 0, length, caps), caps, length) == text


@given(TEXTS.filter(bool), st.integers(1, 5), CAPS)
def test_following_the_hints_from_the_first_line_yields_the_whole_text(text: str, lines: int, caps: ReadCaps) -> None:
    assert followed(text, by_lines(NAME, text, 1, lines, caps), caps, lines) == text


@given(TEXTS, st.integers(-5, 500), st.integers(-5, 500), CAPS)
def test_a_part_is_what_stands_at_its_place_and_fits_the_caps(
    text: str, offset: int, length: int, caps: ReadCaps
) -> None:
    part = by_characters(NAME, text, offset, length, caps)
    assert part.text == text[part.start : part.end]
    assert len(part.text.encode("utf-8", "surrogatepass")) <= caps.bytes
    assert part.text.count("\n") <= caps.lines
    assert (part.following is None) == (part.end == len(text))
    assert part.following in (None, ("offset", part.end))
    assert part.start == len(text) or part.end > part.start


@given(TEXTS.filter(bool), st.integers(1, 60), st.integers(1, 9))
def test_lines_are_those_of_the_text(text: str, line: int, lines: int) -> None:
    part = by_lines(NAME, text, line, lines)
    rows = text.split("\n")
    wanted = "\n".join(rows[line - 1 : line - 1 + lines])
    if line + lines - 1 < len(rows):
        wanted += "\n"
    assert part.text == (wanted if line <= len(rows) else "")


def test_defaults_and_hints_have_their_exact_words() -> None:
    text = "abcdefghij" * 500
    assert (
        by_characters(NAME, text).as_text
        == f"{text[:LENGTH]}\n[Showing 0\u20132000 of 5000 chars. Use offset=2000 to continue.]"
    )
    assert by_characters(NAME, text, 4990, 100).as_text == "abcdefghij"
    assert (
        by_characters(NAME, text, 10, 5).as_text
        == "abcde\n[Showing 10\u201315 of 5000 chars. Use offset=15 to continue.]"
    )


def test_numbers_below_what_makes_sense_are_raised_to_it() -> None:
    assert by_characters(NAME, "abc", -7, 2).as_text == "ab\n[Showing 0\u20132 of 3 chars. Use offset=2 to continue.]"
    assert by_characters(NAME, "abc", 0, -1).text == "a"
    assert by_lines(NAME, "a\nb\n", -3, 0).text == "a\n"


def test_a_part_beyond_the_caps_says_where_it_really_ends() -> None:
    """20,000 characters in lines of 5 are more than 2,000 lines; Pi-RLM hinted at offset 20000."""
    text = "".join(f"l{n:03}\n" for n in range(1000)) * 6
    part = by_characters(NAME, text, 0, 20_000)
    assert part.text == text[:10_000]
    assert part.as_text.endswith(
        f"\n[Output truncated. Object {NAME} has 30000 total chars.]"
        "\n[Showing 0\u201310000 of 30000 chars. Use offset=10000 to continue.]"
    )


def test_a_part_that_the_caps_cut_ends_at_a_line_where_that_costs_less_than_half() -> None:
    text = "a" * 30 + "\n" + "b" * 30 + "\n"
    assert by_characters(NAME, text, 0, 60, ReadCaps(bytes=40)).text == "a" * 30 + "\n"
    assert by_characters(NAME, text, 25, 60, ReadCaps(bytes=40)).text == "a" * 5 + "\n" + "b" * 30 + "\n"
    assert by_characters(NAME, text, 25, 60, ReadCaps(bytes=30)).text == "a" * 5 + "\n" + "b" * 24


def test_a_single_line_over_the_byte_cap_is_shown_in_parts() -> None:
    """Pi-RLM gave an empty text."""
    text = "é" * 60_000
    part = by_characters(NAME, text, 0, 60_000)
    assert part.text == "é" * 25_600
    assert part.following == ("offset", 25_600)
    rows = by_lines(NAME, f"{text}\nlast\n", 1, 2)
    assert rows.following == ("offset", 25_600)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (by_characters(NAME, "abc", 3), f"[Offset 3 is beyond the end: object {NAME} has 3 chars.]"),
        (by_characters(NAME, "abc", 99), f"[Offset 99 is beyond the end: object {NAME} has 3 chars.]"),
        (by_characters(NAME, ""), f"[Object {NAME} is empty.]"),
        (by_lines(NAME, ""), f"[Object {NAME} is empty.]"),
        (by_lines(NAME, "a\nb", 3), f"[Line 3 is beyond the end: object {NAME} has 2 lines.]"),
        (by_lines(NAME, "a\n", 2), f"[End of {NAME}: 2 chars.]"),
    ],
)
def test_where_there_is_nothing_to_show_that_is_said(part: Slice, shown: str) -> None:
    assert (part.as_text, part.text, part.following) == (shown, "", None)


def test_a_last_part_that_ends_like_a_hint_is_told_from_one() -> None:
    text = "recalled before\n[Showing 0\u20135 of 9 chars. Use offset=5 to continue.]"
    part = by_characters(NAME, text)
    assert part.following is None
    assert part.as_text == f"{text}\n[End of {NAME}: {len(text)} chars.]"


def test_lines_beyond_the_caps_are_continued_by_line() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 3001))
    part = by_lines(NAME, text, 1, 2500)
    assert part.following == ("line", 2001)
    assert part.hints[-1] == "[Showing lines 1\u20132000 of 3001. Use line=2001 to continue.]"

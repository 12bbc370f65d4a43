"""Patterns as models write them, and where they stand in a text."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadInput
from pagein.policy.recall.pattern_search import parse_pattern

TEXTS = st.text(st.sampled_from("ab AB\nxé€😀\ud800"), max_size=60)


def places(pattern: str, text: str) -> list[tuple[int, str]]:
    return [(found.offset, found.matched) for found in parse_pattern(pattern).matches(text)]


@given(st.text(st.sampled_from("abAé€"), min_size=1, max_size=3), TEXTS)
def test_a_literal_is_found_wherever_it_stands(literal: str, text: str) -> None:
    assert places(literal, text) == [(match.start(), match[0]) for match in re.finditer(re.escape(literal), text)]


@given(st.sampled_from(["a+b", "[ab]x?", "é|€", "b.", r"\s+a", "(?:ab)+", "A", "😀+"]), TEXTS)
def test_an_expression_is_found_at_the_offsets_of_the_text(expression: str, text: str) -> None:
    expected = [(match.start(), match[0]) for match in re.finditer(expression, text)]
    assert places(f"/{expression}/", text) == expected


@given(TEXTS)
def test_flags_mean_what_they_mean_elsewhere(text: str) -> None:
    for pattern, flags in (("/ab/i", re.IGNORECASE), ("/^b/m", re.MULTILINE), ("/a.b/s", re.DOTALL), ("/^b/", 0)):
        plain = pattern.strip("/ims").strip("/")
        expected = [(match.start(), match[0]) for match in re.finditer(plain, text, flags)]
        assert places(pattern, text) == expected


def test_matches_without_width_come_to_an_end() -> None:
    assert [offset for offset, _ in places("/x*/", "é€x")] == [0, 1, 2, 3]
    assert [offset for offset, _ in places("/^/m", "a\nb\n")] == [0, 2, 4]


def test_an_expression_that_ends_in_other_letters_is_a_text() -> None:
    assert parse_pattern("/usr/lib/x").expression is None
    assert parse_pattern("/usr/bin/ss").expression is None  # the same flag twice
    assert parse_pattern("/usr/lib").notice is None


def test_what_cannot_be_matched_in_linear_time_is_searched_as_text_and_said() -> None:
    pattern = parse_pattern("/foo(?=bar)/")
    assert pattern.expression is None
    assert "lookahead" in (pattern.notice or "")
    assert places("/foo(?=bar)/", "use /foo(?=bar)/ here") == [(4, "/foo(?=bar)/")]
    assert parse_pattern("/a(/").notice is not None
    assert parse_pattern("/a)(b/").notice is not None
    assert "more than 1000" in (parse_pattern(f"/{'a' * 1001}/").notice or "")


def test_a_catastrophic_expression_takes_linear_time() -> None:
    began = time.process_time()
    assert places("/(a+)+$/m", "a" * 200_000 + "b") == []
    assert time.process_time() - began < 60  # for ever, by backtracking


def test_a_match_is_shown_with_a_hundred_characters_around_it() -> None:
    text = "l" * 300 + "needle" + "r" * 300
    [found] = parse_pattern("needle").matches(text)
    assert found.context == "l" * 100 + "needle" + "r" * 100


def test_of_a_long_match_only_its_beginning_is_shown() -> None:
    [found] = parse_pattern("/a+/").matches("a" * 1000)
    assert found.context == "a" * 400 + "[600 more chars of the match]"
    assert len(found.matched) == 1000


@pytest.mark.parametrize("pattern", ["", "x" * 10_001])
def test_nothing_and_too_much_are_refused(pattern: str) -> None:
    with pytest.raises(BadInput):
        parse_pattern(pattern)


def test_no_match_of_zero_width_is_inside_a_character() -> None:
    assert [(one.offset, one.matched) for one in parse_pattern(r"/a*?\B/").matches("aé")] == [(2, "")]

"""Replies of children in every shape, and their quotes looked up in the targets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.delegation.child_replies import REPLY_SCHEMA, ChildReply, parse_reply
from pagein.policy.delegation.evidence import QuotedText, locate_quotes

NOT_FOUND = "not found in the target"
_WHOLE = {"answer": "42", "confidence": "high", "evidence": ["a {b}"]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(_WHOLE),
        f"```json\n{json.dumps(_WHOLE, indent=1)}\n```",
        f"Here {{it}} is:\n{json.dumps(_WHOLE)}\nDone.",
    ],
)
def test_a_reply_of_the_schema_is_read_in_every_wrapping(text: str) -> None:
    assert set(REPLY_SCHEMA["required"]) == _WHOLE.keys()
    assert parse_reply(text) == ChildReply("42", "high", ("a {b}",), is_structured=True)


@pytest.mark.parametrize("text", ["", "plain", '{"answer": "4', '{"answer": 4}', "[]", "{" * 500, '{"a": ' * 5000])
def test_any_other_reply_is_its_whole_text_with_low_confidence(text: str) -> None:
    assert parse_reply(text) == ChildReply(text, "low", ())


def test_what_is_malformed_beside_an_answer_counts_as_missing() -> None:
    reply = parse_reply('{"answer": "two\nlines", "confidence": "sure", "evidence": ["q", 7]}')
    assert reply == ChildReply("two\nlines", "low", ("q",), is_structured=False)


def test_a_quote_comes_back_with_object_version_and_line() -> None:
    targets = [QuotedText("pg-1", None, "first\nsecond\n"), QuotedText("f", 3, "a\n  if x:\n      go()\nb\n")]
    exact, loose, gone, short = locate_quotes(["second", "if x:\n  go()", "if x: stop()", "b"], targets)
    assert (exact.place, exact.is_exact) == ("pg-1, line 2", True)
    assert loose.place == "f@3, lines 2 to 3, with other white space"
    assert targets[1].text[loose.start : loose.end] == "if x:\n      go()"
    assert (gone.place, gone.object_id) == (NOT_FOUND, None)
    assert short.place == NOT_FOUND


def test_a_quote_with_words_left_out_is_not_found() -> None:
    (found,) = locate_quotes(["the disk ... full"], [QuotedText("pg-1", 1, "the disk is nearly full")])
    assert found.place == NOT_FOUND


def test_the_part_that_was_shown_comes_first() -> None:
    text = "error 7\n" * 10
    (found,) = locate_quotes(["error 7"], [QuotedText("pg-1", 1, text, shown=(40, 80))])
    assert (found.start, found.first) == (40, 6)
    (outside,) = locate_quotes(["error 7"], [QuotedText("pg-1", 1, "error 7\n" + "x" * 40, shown=(10, 30))])
    assert outside.first == 1


@given(st.text(min_size=3).filter(lambda quote: len(quote.strip()) >= 3), st.text(), st.text())
def test_each_exact_quote_is_found_where_it_stands(quote: str, before: str, behind: str) -> None:
    text = before + quote + behind
    (found,) = locate_quotes([quote], [QuotedText("pg-1", 1, text)])
    assert found.is_exact
    assert text[found.start : found.end] == quote.strip()
    assert found.first == text.count("\n", 0, found.start) + 1


def test_a_reply_of_empty_lines_is_read_at_once() -> None:
    text = "```\n" + "\n" * 100_000 + "x"
    assert parse_reply(text).answer == text

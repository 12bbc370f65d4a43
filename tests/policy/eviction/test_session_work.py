"""What a person asked for, by the words, and what a session has done."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.eviction.session_work import SessionWork, task_kind, words_of_person


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Review the current branch compared to main", "reading"),
        ("You are a code reviewer. Your job is to review code changes", "reading"),
        ("Can you explain how the hooks fix this?", "reading"),
        ("Implement the following plan: review the code, then fix it", "changing"),
        ("please remove the accidental root artifacts", "changing"),
        ("Yes", "changing"),
        ("hi", ""),
        ("", ""),
        ("Prüfe bitte die Änderungen", ""),
        ("a" * 3_000 + " review", ""),
    ],
)
def test_the_first_known_verb_tells_the_kind_of_a_task(words: str, kind: str) -> None:
    assert task_kind(words) == kind


def test_a_session_only_reads_while_every_task_asks_to_read_and_nothing_is_edited() -> None:
    work = SessionWork().with_task(1, "Explore the tests")
    assert work.only_reads
    assert not work.with_edit(2).only_reads
    assert not work.with_task(3, "fix them").only_reads
    assert work.with_task(3, "fix them").with_task(4, "explain them").only_reads
    assert not SessionWork().with_task(1, "fix it").with_task(2, "explain it").only_reads
    assert not SessionWork().only_reads


@pytest.mark.parametrize(
    "around",
    [
        "<system-reminder>\nImplement what CLAUDE.md says\n</system-reminder>",
        "<environment_context>\n  <cwd>/fix</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /repo\n\nFix typos at once.",
    ],
)
def test_text_that_the_client_puts_around_the_words_says_nothing_about_the_task(around: str) -> None:
    assert words_of_person(around) == ""


def test_a_task_whose_words_are_not_known_any_more_is_of_the_kind_of_the_one_before() -> None:
    assert SessionWork().with_task(1, "Review it").with_task(2, "") == SessionWork(
        2, "reading", "reading", is_asked=True, only_reads=True
    )


def test_ends_that_are_missing_are_looked_for_once() -> None:
    """Text of a user may hold any number of openings: a scan for each would take minutes here."""
    opened = "<system-reminder>" * 60_000
    assert words_of_person(opened) == opened
    assert words_of_person(f"{opened}</system-reminder> fix it {opened}") == f"fix it {opened}"


_PARTS = (
    "<system-reminder>",
    "</system-reminder>",
    "<INSTRUCTIONS>",
    "</INSTRUCTIONS>",
    "fix it",
    "# AGENTS.md instructions",
)


@given(st.lists(st.sampled_from(_PARTS), max_size=8))
def test_what_stands_between_an_opening_and_its_end_is_left_out(parts: list[str]) -> None:
    text = " ".join(parts)
    by_pattern = re.compile(r"<(system-reminder|INSTRUCTIONS)>.*?</\1>|^# AGENTS\.md instructions.*", re.DOTALL)
    assert words_of_person(text) == by_pattern.sub(" ", text).strip()

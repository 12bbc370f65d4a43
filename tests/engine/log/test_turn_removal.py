"""Which messages of a window begin a task of a person."""

import pytest

from pagein.engine.log.turn_removal import words_said
from pagein.model.messages import Message, Text, ToolResult
from pagein.policy.stubs.turn_stubs import SHORTENED

NOTICE = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("fix the parser",), "fix the parser"),
        ((NOTICE,), None),
        ((NOTICE, "fix the parser"), "fix the parser"),
        (("[Request interrupted by user]",), None),
        (("<system-reminder>\nthe list is empty\n</system-reminder>",), None),
    ],
)
def test_a_text_of_the_client_alone_begins_no_task(texts: tuple[str, ...], words: str | None) -> None:
    assert words_said(Message("user", tuple(map(Text, texts)))) == words


def test_words_that_left_the_window_begin_a_task_without_words() -> None:
    assert words_said(Message("user", (Text("a stub", SHORTENED),))) == ""
    assert words_said(Message("user", (ToolResult("c1", "done", "Bash"),))) is None

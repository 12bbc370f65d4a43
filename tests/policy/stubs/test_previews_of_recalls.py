"""What was recalled is not taken away again at once."""

import pytest
from tests.tools.recall_sessions import Room, ask, long_text

from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.stubs.previews import Previews, is_previewed

BIG = Previews(chars=100, shown=50)


@pytest.mark.parametrize("name", ["peek", "rlm_peek", "rlm_search", "mcp__pagein__peek", "mcp__pagein__search"])
def test_the_answer_of_a_recall_tool_never_enters_as_a_preview(name: str) -> None:
    assert not is_previewed(ToolCall("c", name, "{}"), ToolResult("c", "x" * 5000, name), BIG)


def test_the_answer_of_a_search_is_told_by_its_form_where_the_name_says_nothing(room: Room) -> None:
    session = room.session()
    room.paged(session, long_text("first"))
    found = ask(session, "search", pattern="line").text
    assert not is_previewed(ToolCall("c", "search", "{}"), ToolResult("c", found, "search"), BIG)
    elsewhere = "Found 7 match(es):\n\n" + "x" * 5000
    assert is_previewed(ToolCall("c", "search", "{}"), ToolResult("c", elsewhere, "search"), BIG)
    assert is_previewed(ToolCall("c", "Bash", "{}"), ToolResult("c", "x" * 5000, "Bash"), BIG)

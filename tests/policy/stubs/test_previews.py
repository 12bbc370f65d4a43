import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.messages import FileAccess, Image, ToolCall, ToolResult
from pagein.policy.stubs.previews import Previews, is_previewed, preview
from pagein.policy.stubs.recall_ways import TOOLS

SETTINGS = Previews(chars=8000, shown=3000)
RUN = ToolCall("c", "Bash", '{"command":"make test"}')
BIG = "\n".join(f"test_{n} ... ok" for n in range(1000))


@pytest.mark.parametrize(
    ("call", "result", "enters"),
    [
        (RUN, ToolResult("c", BIG), True),
        (RUN, ToolResult("c", BIG[:7999]), False),
        (RUN, ToolResult("c", BIG, is_error=True), False),
        (RUN, ToolResult("c", BIG, images=(Image("image/png", 10),)), False),
        (ToolCall("c", "Read", "{}", (FileAccess("read", "a.py"),)), ToolResult("c", BIG), False),
        (ToolCall("c", "Bash", "{}", (FileAccess("read", "a.py", via="shell"),)), ToolResult("c", BIG), False),
    ],
)
def test_only_big_outputs_of_calls_that_succeeded_and_read_no_file_enter_as_previews(
    call: ToolCall, result: ToolResult, *, enters: bool
) -> None:
    assert is_previewed(call, result, SETTINGS) is enters


def test_without_a_threshold_nothing_enters_as_a_preview() -> None:
    assert not is_previewed(RUN, ToolResult("c", BIG * 10), Previews(chars=0))


def test_head_and_tail_are_the_texts_own_whole_lines() -> None:
    shown = preview("pg-1", "Bash", 5000, BIG, SETTINGS, TOOLS)
    assert shown.text.startswith(BIG[: shown.head])
    assert shown.text.endswith(BIG[-shown.tail :])
    assert BIG[: shown.head].endswith("\n")
    assert len(shown.text) < 4000
    assert 'peek("pg-1")' in shown.text


def test_lines_that_tell_of_trouble_take_their_third_and_no_more() -> None:
    text = "\n".join(f"line {number}: error: " + "x" * 140 for number in range(400))
    shown = preview("pg-1", "Bash", 5000, text, SETTINGS, TOOLS)
    assert "tell of trouble" in shown.text
    assert len(shown.text) < SETTINGS.shown + 400


def test_lines_that_tell_of_trouble_are_shown_with_their_numbers() -> None:
    lines = BIG.split("\n")
    lines[499] = "test_499 ... FAILED: expected 3, got 4"
    shown = preview("pg-1", "Bash", 5000, "\n".join(lines), SETTINGS, TOOLS)
    assert "500: test_499 ... FAILED: expected 3, got 4" in shown.text


@given(
    st.text(min_size=1, max_size=400).map(lambda part: (part * (9000 // len(part) + 1))[:9000]), st.integers(10, 4000)
)
def test_a_preview_shows_no_character_twice_and_is_the_same_every_time(text: str, shown: int) -> None:
    settings = Previews(chars=8000, shown=shown)
    first = preview("pg-1", "Bash", 5000, text, settings, TOOLS)
    assert first == preview("pg-1", "Bash", 5000, text, settings, TOOLS)
    assert first.head + first.tail <= len(text)
    assert first.text.startswith(text[: first.head])
    assert first.text.endswith(text[len(text) - first.tail :])

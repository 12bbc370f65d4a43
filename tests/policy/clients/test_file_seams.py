"""What is known in pieces only is shown again where the pieces meet."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.clients.working_clients import Talk, lines_of

from pagein.model.messages import ToolCall, ToolResult
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.clients.file_seams import WHOLE, torn
from pagein.policy.clients.profile import arguments_of

FILE = "".join(f"line {n} of the file, with words of its own\n" for n in range(1, 201))
GUTTER = re.compile(r"^\s*\d+(?:\t|: )", re.MULTILINE)
CLIENTS = ("claude-code", "opencode", "pi", "gemini-cli")


def row(*lines: str) -> str:
    return "\n".join(("", *lines, ""))


def test_lines_that_stand_in_one_piece_are_not_torn() -> None:
    lines = [f"l{n}" for n in range(40)]
    assert torn(lines, 1, [row("before", *lines, "behind")], 8) == NO_LINES


def test_around_a_seam_so_many_lines_are_shown_that_each_run_across_it_is_whole() -> None:
    lines = [f"l{n}" for n in range(1, 41)]
    assert torn(lines, 1, [row(*lines[:20]), row(*lines[20:])], 8) == Spans.of((14, 27))


def test_lines_that_stand_nowhere_are_shown_with_what_is_around_them() -> None:
    lines = [f"l{n}" for n in range(1, 41)]
    assert torn(lines, 101, [row(*lines[:19]), row(*lines[20:])], 3) == Spans.of((118, 122))


def test_a_short_text_is_whole_or_shown() -> None:
    assert torn(["a", "b"], 1, [row("a"), row("b")], 8) == Spans.of((1, 2))
    assert torn(["a", "b"], 1, [row("x", "a", "b")], 8) == NO_LINES
    assert torn([], 1, [], 8) == NO_LINES


def test_a_text_in_too_many_pieces_is_shown_rather_than_searched_for_long() -> None:
    lines = [f"l{n}" for n in range(1, 2001)]
    held = [row(*lines[at : at + 5]) for at in range(0, 2000, 5)]
    assert torn(lines, 1, held, 8) == Spans.of((1, 2000))
    assert torn(lines, 1, [row(*lines)], 8, most=0) == NO_LINES
    assert torn(lines, 1, [row(*lines[:1000]), row(*lines[1000:])], 8, most=0) == Spans.of((994, 2000))


TEXTS = st.lists(st.sampled_from("abcd"), max_size=30)


@given(TEXTS, st.lists(TEXTS, max_size=4), st.integers(1, 6))
def test_exactly_the_runs_that_stand_nowhere_are_torn(lines: list[str], held: list[list[str]], whole: int) -> None:
    rows = [row(*one) for one in held]
    size = min(whole, len(lines))
    runs = [
        (at + 1, at + size)
        for at in range(len(lines) - size + 1)
        if not any(one[k : k + size] == lines[at : at + size] for one in held for k in range(len(one) - size + 1))
    ]
    assert torn(lines, 1, rows, whole) == Spans.of(*runs)


def visible(talk: Talk) -> list[str]:
    """The texts that stand in the request, each in one piece."""
    texts = []
    for message in talk.sent:
        for block in message.blocks:
            if isinstance(block, ToolResult):
                texts.append(row(GUTTER.sub("", block.text)))
            elif isinstance(block, ToolCall):
                values = arguments_of(block.arguments)
                edits = values.get("edits")
                texts += [row(str(one)) for one in (*values.values(), *_strings(edits))]
    return texts


def _strings(edits: object) -> list[object]:
    return [value for one in edits for value in one.values()] if isinstance(edits, list) else []


STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "part", "edit", "write"]), st.integers(0, 110), st.integers(1, 40)),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whatever_was_read_or_edited_before_a_read_leaves_every_quote_of_it_in_one_piece(
    client: str, steps: list[tuple[str, int, int]]
) -> None:
    talk = Talk(client, {"a.py": FILE})
    talk.read("a.py")
    for act, at, count in steps:
        lines = talk.files["a.py"].split("\n")
        if act == "edit":
            talk.edit("a.py", at, lines[at : at + 2], [f"{at} is another", f"of {count}"])
        elif act == "write":
            talk.write("a.py", "\n".join((*lines[:at], f"{at} was written", *lines[at + 1 :])))
        elif act == "part":
            talk.read("a.py", min(at + 1, len(lines) - 1), count)
        else:
            talk.read("a.py")
            texts = visible(talk)
            shown = lines_of(client, talk.files["a.py"])
            for first in range(max(1, len(shown) - WHOLE + 1)):
                quoted = row(*shown[first : first + WHOLE])
                assert any(quoted in text for text in texts), (first, quoted)
    assert talk.objections() == ()

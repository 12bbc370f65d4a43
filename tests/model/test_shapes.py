import pytest
from hypothesis import given
from tests.model.conversations import TURNS

from pagein.errors import BadInput
from pagein.model.chats import ChatCall, ChatTurn, turns_as_text, turns_from_value, turns_to_value
from pagein.model.messages import Image, Message, Text, Thinking, ToolCall, ToolResult
from pagein.model.references import Reference
from pagein.model.shapes import file_type, text_draft, toolcall_draft
from pagein.model.values import frozen
from pagein.model.version_hash import SealedDraft, metadata_view
from pagein.model.versions import Writer
from pagein.testing.object_store import object_number

TWO_TURNS = (
    ChatTurn(
        (Message("system", (Text("rules"),)), Message("user", (Text("first"),))),
        (
            Message("assistant", (Text("let me look"), ToolCall("a", "bash", '{"command":"ls -la"}'))),
            ChatCall("a", "bash", '{"command":"ls -la"}', "fail", Reference("a")),
            Message("assistant", (Thinking("hm"), Text("done"))),
        ),
    ),
    ChatTurn((Message("user", (Text("second"),)),), (Message("assistant", (Text("ok"),)),)),
)


@given(TURNS)
def test_turns_come_back_from_their_value_and_have_a_text(turns: list[ChatTurn]) -> None:
    assert turns_from_value(turns_to_value(turns)) == tuple(turns)
    text = turns_as_text(turns)
    calls = [step for turn in turns for step in turn.steps if isinstance(step, ChatCall)]
    assert text.count("--- toolcall [ref:toolcall/") >= len(calls)


@pytest.mark.parametrize("wrong", [3, [3], [{}], [{"said": [], "steps": [{}]}], [{"said": [{"v": 99}], "steps": []}]])
def test_what_is_no_chat_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        turns_from_value(frozen(wrong))


def test_a_chat_is_written_out_for_people_with_each_call_by_its_outcome() -> None:
    assert turns_as_text(TWO_TURNS).split("\n") == [
        *("--- system", "rules", "--- user", "first", "--- assistant", "let me look"),
        '--- toolcall [ref:toolcall/a] tool=bash args="{\\"command\\":\\"ls -la\\"}" status=fail',
        *("--- thinking", "hm", "--- assistant", "done", "--- user", "second", "--- assistant", "ok"),
    ]


def test_the_shapes_show_what_the_specification_lists() -> None:
    call = toolcall_draft(
        ToolCall("id", "bash", '{"command": "' + "x" * 300 + '"}'),
        ToolResult("id", "", is_error=True, images=(Image("image/png", 4, "abcd"),)),
    )
    shown = dict(metadata_view(SealedDraft.of(call).version(sequence=1, number=1, at=0.0, writer=Writer())))
    assert list(shown) == ["id", "type", "tool", "args_display", "status"]
    assert shown["status"] == "fail"
    assert len(str(shown["args_display"])) == 200
    assert call.content == ""
    assert dict(call.additional) == {
        "args": frozen({"command": "x" * 300}),
        "images": frozen([{"media_type": "image/png", "size": 4, "data": "abcd"}]),
    }


@pytest.mark.parametrize(
    "arguments", ["", "{", "not json", '"text"', "[1]", "\ud800", '{"n": NaN}', '{"n": 99999999999999999999}']
)
def test_arguments_of_any_form_are_kept(arguments: str) -> None:
    draft = toolcall_draft(ToolCall("id", "t", arguments), ToolResult("id", "out"))
    assert "args" in draft.additional
    SealedDraft.of(draft)


def test_files_are_told_by_their_names() -> None:
    assert [
        file_type(name) for name in ("/a/b.PY", "README.md", "Makefile", "a.b/c", "x.tar.gz", "C:\\d\\e.Ts", ".py")
    ] == [
        *("python", "markdown", "text", "text", "text", "typescript", "python"),
    ]
    assert file_type("photo.md", binary=True) == "binary"


def test_system_prompts_are_locked_and_pastes_are_not() -> None:
    prompt = text_draft(object_number(1), "system_prompt", "rules", origin="host", generator="system")
    paste = text_draft(object_number(2), "user", "long", origin="user-input", generator="human")
    assert (prompt.locked, paste.locked) == (True, False)

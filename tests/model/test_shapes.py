import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conversations import MESSAGES

from pagein.errors import BadInput
from pagein.model.chats import ChatCall, ChatTurn, turns_as_text, turns_from_value, turns_of, turns_to_value
from pagein.model.messages import Image, Message, Text, Thinking, ToolCall, ToolResult
from pagein.model.references import Reference
from pagein.model.shapes import chat_draft, file_draft, file_type, session_draft, text_draft, toolcall_draft
from pagein.model.values import frozen
from pagein.model.version_hash import SealedDraft, metadata_view
from pagein.model.versions import Version, Writer
from pagein.model.writes import Write, Written
from pagein.store.memory.memory_store import MemoryStore
from pagein.testing.object_store import object_number

pytestmark = pytest.mark.damages_store


def said(text: str) -> Message:
    return Message("user", (Text(text),))


def called(*ids: str, text: str = "") -> Message:
    return Message("assistant", (Text(text), *(ToolCall(one, "bash", '{"command":"ls -la"}') for one in ids)))


def answered(*ids: str) -> Message:
    return Message("user", tuple(ToolResult(one, f"out of {one}", is_error=one == "bad") for one in ids))


CONVERSATION = [
    Message("system", (Text("rules"),)),
    said("first"),
    called("a", "bad", text="let me look"),
    answered("a", "bad"),
    called("c"),
    answered("c"),
    Message("assistant", (Thinking("hm"), Text("done"))),
    said("second"),
    said("and third"),
    Message("assistant", (Text("ok"),)),
]


def kinds(turn: ChatTurn) -> list[str]:
    return [step.call_id if isinstance(step, ChatCall) else step.role for step in turn.steps]


def test_a_turn_holds_every_step_in_its_order() -> None:
    first, second = turns_of(CONVERSATION, Reference)
    assert [one.role for one in first.said] == ["system", "user"]
    assert kinds(first) == ["assistant", "a", "bad", "assistant", "c", "assistant"]
    assert first.steps[2] == ChatCall("bad", "bash", '{"command":"ls -la"}', "fail", Reference("bad"))
    assert second.said == (said("second"), said("and third"))
    assert kinds(second) == ["assistant"]


def test_words_beside_a_result_are_kept() -> None:
    both = Message("user", (ToolResult("a", "out"), Text("and stop")))
    (first, second) = turns_of([said("go"), called("a"), both, called("b")], Reference)
    assert kinds(first) == ["assistant"]
    assert second.said == ()
    assert kinds(second) == ["a", "user", "assistant"]


@given(st.lists(MESSAGES, max_size=8))
def test_nothing_that_was_said_is_lost(messages: list[Message]) -> None:
    turns = turns_of(messages, lambda call_id: Reference(f"call {call_id}"))
    again = turns_from_value(turns_to_value(turns))
    assert again == turns
    steps = [step for turn in turns for step in (*turn.said, *turn.steps)]
    blocks = [block for message in messages for block in message.blocks]
    assert [block for step in steps if isinstance(step, Message) for block in step.blocks] == [
        block for block in blocks if not isinstance(block, ToolResult)
    ]
    results = [block.call_id for block in blocks if isinstance(block, ToolResult)]
    assert [step.call_id for step in steps if isinstance(step, ChatCall)] == results
    turns_as_text(turns)


@pytest.mark.parametrize("wrong", [3, [3], [{}], [{"said": [], "steps": [{}]}], [{"said": [{"v": 99}], "steps": []}]])
def test_what_is_no_chat_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        turns_from_value(frozen(wrong))


def test_a_chat_is_written_out_for_people_without_what_the_tools_put_out() -> None:
    text = turns_as_text(turns_of(CONVERSATION, Reference))
    assert text.startswith(
        "--- system\nrules\n--- user\nfirst\n--- assistant\nlet me look\n--- toolcall [ref:toolcall/a] tool=bash"
    )
    assert 'tool=bash args="{\\"command\\":\\"ls -la\\"}" status=fail' in text
    assert "out of" not in text


def kept(store: MemoryStore, *drafts: object) -> list[Version]:
    made = []
    for number, draft in enumerate(drafts):
        outcome = store.write(Write(f"r{number} {draft!r}", draft, 1.0))  # type: ignore[arg-type]
        assert isinstance(outcome, Written)
        made.append(outcome.version)
    return made


def test_a_session_with_its_chat_and_calls_is_kept_and_linked_both_ways() -> None:
    store = MemoryStore()
    chat_id, session_id = object_number(1), object_number(2)
    chat_ref = Reference(chat_id, field="/additional/turns/0/steps/1")
    calls = [
        toolcall_draft(
            ToolCall(one, "bash", "{}"), ToolResult(one, "out"), chat=chat_ref, files=[Reference(object_number(3))]
        )
        for one in ("a", "bad", "c")
    ]
    made = {version.id: version for version in kept(store, *calls)}
    turns = turns_of(CONVERSATION, lambda call_id: made[call_id].static())
    sets = {"active_set": ["a"], "inactive_set": ["bad"], "pinned_set": []}
    (chat, session, file) = kept(
        store,
        chat_draft(chat_id, Reference(session_id), turns),
        session_draft(session_id, "host-7", "pi", chat=Reference(chat_id), sets=sets),
        file_draft(object_number(3), "/src/a.py", "x = 1\n"),
    )
    assert chat.locked
    assert turns_from_value(store.additional(chat, "turns")) == turns
    assert chat.metadata["turn_count"] == 2
    assert {link.source.id for link in store.backlinks("a")} == {chat_id, session_id}
    assert {link.source.id for link in store.backlinks(chat_id)} == {"a", "bad", "c", session_id}
    assert {link.source.id for link in store.backlinks(file.id)} == {"a", "bad", "c"}
    assert all(link.resolved for version in (chat, session) for link in store.references(version))


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
    assert file_draft(object_number(1), "/a.png", None).metadata["file_type"] == "binary"
    unread = file_draft(object_number(1), "/a.py", None, unread=True)
    assert (unread.metadata["file_type"], unread.metadata["unread"]) == ("python", True)


def test_system_prompts_are_locked_and_pastes_are_not() -> None:
    prompt = text_draft(object_number(1), "system_prompt", "rules", origin="host", generator="system")
    paste = text_draft(object_number(2), "user", "long", origin="user-input", generator="human", nickname="spec")
    assert (prompt.locked, paste.locked, paste.nickname) == (True, False, "spec")

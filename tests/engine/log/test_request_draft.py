from hypothesis import given
from hypothesis import strategies as st
from tests.engine.log.repaired_messages import repair_messages
from tests.model.conversations import MESSAGES, WILD, valid

from pagein.engine.log.request_draft import NO_REPAIRS, NOBODY_SPOKE, UNANSWERED, Repairs, RequestDraft, pieces_since
from pagein.model.messages import Image, Message, Text, Thinking, ToolCall, ToolResult
from pagein.providers.wire import check_body, check_messages, render

ASK = Message("user", (Text("please"),))


def calls(*names: str) -> Message:
    return Message("assistant", tuple(ToolCall(name, "Bash", "{}") for name in names))


def result(name: str, text: str = "done") -> Message:
    return Message("tool", (ToolResult(name, text, "Bash"),))


def said(*messages: Message) -> list[Message]:
    return repair_messages(messages)[0]


@given(valid())
def test_a_valid_conversation_comes_out_as_the_very_messages_that_went_in(messages: list[Message]) -> None:
    found, repairs = repair_messages(messages)
    assert repairs == NO_REPAIRS
    assert len(found) == len(messages)
    assert all(one is other for one, other in zip(found, messages, strict=True))


@given(WILD)
def test_whatever_was_said_becomes_a_request_that_is_not_refused(messages: list[Message]) -> None:
    found, _ = repair_messages(messages)
    assert check_messages(found) == []
    assert check_messages(found, "openai_chat") == []
    assert check_messages(found, "openai_responses") == []


@given(WILD)
def test_its_renderings_are_not_refused_either(messages: list[Message]) -> None:
    found, _ = repair_messages(messages)
    assert check_body(render(found, "anthropic", model="m"), "anthropic") == []
    assert check_body(render(found, "openai_chat", model="m"), "openai_chat") == []
    assert check_body(render(found, "openai_responses", model="m"), "openai_responses") == []


@given(WILD)
def test_what_was_repaired_needs_no_repair(messages: list[Message]) -> None:
    found, _ = repair_messages(messages)
    assert repair_messages(found) == (found, NO_REPAIRS)


@given(WILD)
def test_no_text_of_a_result_is_lost(messages: list[Message]) -> None:
    found, _ = repair_messages(messages)
    shown = [block.text for one in found for block in one.blocks if isinstance(block, Text | ToolResult)]
    for one in messages:
        for block in one.blocks:
            if isinstance(block, ToolResult):
                assert any(block.text in text for text in shown)


@given(WILD, st.lists(st.integers(0, 8)))
def test_what_was_sent_is_never_touched_again(messages: list[Message], sends: list[int]) -> None:
    draft = RequestDraft()
    sent: list[Message] = []
    for place, message in enumerate(messages):
        if place in sends:
            draft = draft.ready
            now = [piece.message for piece in pieces_since(draft.tip, 0)]
            assert now[: len(sent)] == sent
            sent = now
        draft = draft.with_said(message)


@given(st.lists(MESSAGES, max_size=5), MESSAGES)
def test_a_draft_that_moved_on_leaves_the_one_before_as_it_was(messages: list[Message], more: Message) -> None:
    draft = RequestDraft()
    for message in messages:
        draft = draft.with_said(message)
    before = [piece.message for piece in pieces_since(draft.ready.tip, 0)]
    assert draft.with_said(more).ready.tip is not None
    assert [piece.message for piece in pieces_since(draft.ready.tip, 0)] == before


def test_a_call_that_nobody_answered_gets_an_answer_that_says_so() -> None:
    found, repairs = repair_messages([ASK, calls("a", "b"), result("b"), Message("user", (Text("go on"),))])
    assert found[2:] == [
        result("b"),
        Message("tool", (ToolResult("a", UNANSWERED, "Bash"),)),
        Message("user", (Text("go on"),)),
    ]
    assert repairs == Repairs(unanswered=1)


def test_calls_at_the_end_are_answered_too() -> None:
    assert said(ASK, calls("a"))[2] == Message("tool", (ToolResult("a", UNANSWERED, "Bash"),))
    assert said(ASK, calls("a"), calls("b"))[2].blocks == (ToolResult("a", UNANSWERED, "Bash"),)


def test_a_result_without_its_call_becomes_text() -> None:
    found, repairs = repair_messages([ASK, result("gone", "precious")])
    assert repairs == Repairs(orphans=1)
    assert found[1].role == "user"
    (block,) = found[1].blocks
    assert isinstance(block, Text)
    assert "precious" in block.text


def test_an_image_of_an_orphaned_result_is_kept() -> None:
    image = Image("image/png", 5, "data")
    orphan = Message("tool", (ToolResult("gone", "text", images=(image,)),))
    assert image in said(ASK, orphan)[1].blocks


def test_a_second_result_for_a_call_becomes_text() -> None:
    found, repairs = repair_messages([ASK, calls("a"), result("a", "one"), result("a", "two")])
    assert found[2] == result("a", "one")
    assert repairs == Repairs(orphans=1)


def test_a_result_that_comes_after_the_request_went_without_it_becomes_text() -> None:
    draft = RequestDraft().with_said(ASK).with_said(calls("a")).ready.with_said(result("a", "late")).ready
    found = [piece.message for piece in pieces_since(draft.tip, 0)]
    assert found[2].blocks == (ToolResult("a", UNANSWERED, "Bash"),)
    assert isinstance(found[3].blocks[0], Text)


def test_words_that_a_tool_message_holds_beside_its_result_are_the_users() -> None:
    mixed = Message("tool", (ToolResult("a", "done"), Text("and more")))
    assert said(ASK, calls("a"), mixed)[2:] == [
        Message("tool", (ToolResult("a", "done"),)),
        Message("user", (Text("and more"),)),
    ]


def test_results_stand_in_front_of_text() -> None:
    mixed = Message("user", (Text("look"), ToolResult("a", "done")))
    found, repairs = repair_messages([ASK, calls("a", "b"), mixed, result("b")])
    assert found[2:] == [
        Message("user", (ToolResult("a", "done"),)),
        result("b"),
        Message("user", (Text("look"),)),
    ]
    assert repairs.moved == 1


def test_a_second_call_of_one_id_in_a_message_becomes_text() -> None:
    found, repairs = repair_messages([ASK, calls("a", "a", "b"), result("a"), result("b")])
    first, twin, other = found[1].blocks
    assert (first, other) == (ToolCall("a", "Bash", "{}"), ToolCall("b", "Bash", "{}"))
    assert isinstance(twin, Text)
    assert "call a of Bash" in twin.text
    assert repairs == Repairs(twins=1)


def test_two_assistant_messages_in_a_row_are_one() -> None:
    thought = Message("assistant", (Thinking("hm"), Text("first")))
    found, repairs = repair_messages([ASK, thought, calls("a"), result("a")])
    assert found[1].blocks == (*thought.blocks, *calls("a").blocks)
    assert repairs == Repairs(merged=1)


def test_a_request_begins_and_ends_with_words_of_the_user() -> None:
    filler = (Text(NOBODY_SPOKE, injected="repair"),)
    found = said(Message("assistant", (Text("hello"),)))
    assert [message.role for message in found] == ["user", "assistant", "user"]
    assert found[0].blocks == found[2].blocks == filler
    assert [message.role for message in said(Message("system", (Text("be good"),)))] == ["system", "user"]
    assert [message.role for message in said()] == ["user"]


def test_blank_text_and_empty_messages_are_dropped() -> None:
    blank = Message("user", (Text(" \n"),))
    found, repairs = repair_messages(
        [ASK, Message("assistant", (Text(""), Text("hi"))), blank, Message("user", ()), ASK]
    )
    assert found == [ASK, Message("assistant", (Text("hi"),)), ASK]
    assert repairs == Repairs(emptied=2)


def test_an_empty_result_is_a_result() -> None:
    assert said(ASK, calls("a"), result("a", "")) == [ASK, calls("a"), result("a", "")]


def test_a_system_message_between_a_call_and_its_result_waits() -> None:
    news = Message("system", (Text("news"),))
    assert said(ASK, calls("a"), news, result("a")) == [ASK, calls("a"), result("a"), news]

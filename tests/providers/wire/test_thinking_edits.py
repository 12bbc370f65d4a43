import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.validity.bodies import ASK, model, result, text, thought, use, user
from tests.providers.validity.random_bodies import anthropic_bodies

from pagein.errors import HostError
from pagein.model.messages import Message, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity import NOTHING_RECEIVED, check_body, check_messages, target, with_messages, with_request
from pagein.providers.wire import decode
from pagein.providers.wire.thinking_edits import (
    NOTHING_STALE,
    Stale,
    after_body_edit,
    after_edit,
    body_without,
    stale,
    stale_in_body,
    without,
)

Wire = dict[str, Any]
BOUND = target("claude-opus-5-5")
FREE = target("claude-opus-5")
NOBODY = target("some-model-of-tomorrow")


def said(*messages: Message) -> list[Message]:
    return list(messages)


def turn(number: int) -> list[Message]:
    name = f"call-{number}"
    return [
        Message("assistant", (Thinking("hm", f"signed-{number}"), Text("so"), ToolCall(name, "Read", "{}"))),
        Message("tool", (ToolResult(name, "long " * 9),)),
    ]


LOOP = [Message("user", (Text("do"),)), *turn(1), *turn(2)]
DONE = [*LOOP, Message("assistant", (Thinking("end", "signed-3"), Text("done"))), Message("user", (Text("more"),))]


def test_thinking_behind_an_edit_goes_and_thinking_before_it_stays() -> None:
    assert after_edit(DONE, (2, 0), BOUND) == Stale(frozenset({(3, 0), (5, 0)}))
    assert after_edit(DONE, (0, 0), BOUND) == Stale(frozenset({(1, 0), (3, 0), (5, 0)}))
    assert after_edit(DONE, (6, 0), BOUND) == NOTHING_STALE


def test_an_edit_within_the_models_own_message_leaves_the_thinking_before_it() -> None:
    assert after_edit(DONE, (3, 2), BOUND) == Stale(frozenset({(5, 0)}))


def test_in_a_tool_loop_an_edit_before_bound_thinking_has_to_wait() -> None:
    assert after_edit(LOOP, (2, 0), BOUND) == Stale(frozenset({(3, 0)}), stuck=True)
    assert after_edit(LOOP, (4, 0), BOUND) == NOTHING_STALE


def test_the_message_whose_calls_are_answered_is_not_edited_on_any_model() -> None:
    assert after_edit(LOOP, (3, 2), FREE) == Stale(stuck=True)
    assert after_edit(DONE, (3, 2), FREE) == NOTHING_STALE


def test_a_loop_without_thinking_in_its_last_message_is_not_stuck() -> None:
    plain = [*LOOP[:3], Message("assistant", (ToolCall("x", "Read", "{}"),)), Message("tool", (ToolResult("x", "y"),))]
    assert after_edit(plain, (0, 0), BOUND) == Stale(frozenset({(1, 0)}))


def test_models_that_do_not_bind_thinking_lose_none() -> None:
    assert after_edit(LOOP, (2, 0), FREE) == NOTHING_STALE
    assert after_edit(DONE, (2, 0), target("claude-mythos-5-1")) == NOTHING_STALE
    assert after_edit(DONE, (2, 0), target("gpt-5.5")) == NOTHING_STALE


def test_a_model_that_nobody_knows_is_taken_for_one_that_binds() -> None:
    assert after_edit(DONE, (2, 0), NOBODY).places == {(3, 0), (5, 0)}


def test_accounts_from_before_the_check_lose_none() -> None:
    old = target("claude-opus-5-5", account=date(2026, 8, 30))
    assert after_edit(DONE, (2, 0), old) == NOTHING_STALE
    assert after_edit(DONE, (2, 0), target("claude-opus-5-5", account=date(2026, 8, 31))).places


def test_where_the_server_drops_blocks_itself_none_has_to_go() -> None:
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    body = {"model": "claude-opus-5-5", "messages": [ASK, model(thought("s"), text()), ASK]}
    assert after_body_edit(body, (0, 0)).places == {(1, 0)}
    assert after_body_edit({**body, "thinking": binding}, (0, 0)) == NOTHING_STALE
    assert after_body_edit({**body, "model": "tomorrow", "thinking": binding}, (0, 0)) == NOTHING_STALE


def test_a_change_of_the_head_is_one_before_everything() -> None:
    body = {"model": "claude-opus-5-5", "messages": [ASK, model(thought("s"), text()), ASK]}
    assert after_body_edit(body, (-1, 0)).places == {(1, 0)}


def test_a_message_that_held_nothing_but_thinking_says_so() -> None:
    lone = [ASK, model(thought("s")), ASK]
    assert body_without({"messages": lone}, {(1, 0)})["messages"][1] == model(text("[thinking left out]"))
    kept = without([*LOOP[:1], Message("assistant", (Thinking("x", "s"),)), *LOOP[:1]], {(1, 0)})
    assert kept[1].blocks == (Text("[thinking left out]", injected="thinking"),)
    assert check_messages(kept) == []


def test_thinking_that_stands_where_it_was_made_is_not_stale() -> None:
    received = with_messages(NOTHING_RECEIVED, DONE)
    assert stale(DONE, received, BOUND) == NOTHING_STALE
    edited = [*DONE[:2], Message("tool", (ToolResult("call-1", "stub"),)), *DONE[3:]]
    assert stale(edited, received, BOUND) == after_edit(DONE, (2, 0), BOUND)
    assert stale(edited, received, FREE) == NOTHING_STALE
    assert stale(edited, NOTHING_RECEIVED, BOUND) == NOTHING_STALE


def test_what_the_model_thinks_behind_an_edit_is_bound_to_the_edit() -> None:
    received = with_messages(NOTHING_RECEIVED, DONE)
    places = after_edit(DONE, (2, 0), BOUND).places
    edited = without([*DONE[:2], Message("tool", (ToolResult("call-1", "stub"),)), *DONE[3:]], places)
    answer = Message("assistant", (Thinking("new", "signed-4"), Text("yes")))
    received = with_messages(received, [*edited, answer])
    later = [*edited, answer, Message("user", (Text("go on"),))]
    assert stale(later, received, BOUND) == NOTHING_STALE
    # The client still sends what it said itself: now the new thinking is the one behind a changed prefix.
    theirs = [*DONE, answer, Message("user", (Text("go on"),))]
    assert stale(theirs, received, BOUND).places == {(7, 0)}


def test_thinking_in_the_message_that_must_go_back_as_it_came_is_stuck() -> None:
    received = with_messages(NOTHING_RECEIVED, LOOP)
    assert stale([Message("user", (Text("other"),)), *LOOP[1:]], received, BOUND).stuck


def test_bytes_lose_their_thinking_and_nothing_else() -> None:
    body = {"messages": [ASK, model(thought("s"), text(), use("a")), user(result("a"))], "temperature": 1.0}
    raw = json.dumps(body, indent=1).encode()
    request = decode(raw, "anthropic")
    made = request.without_thinking({(1, 0)})
    assert json.loads(made.body()) == body_without(body, {(1, 0)})
    assert made.items[::2] == request.items[::2]
    assert made.messages[1] == Message("assistant", request.messages[1].blocks[1:])
    assert request.without_thinking(()).body() == raw
    with pytest.raises(HostError, match="block 1 of message 1 is not thinking"):
        request.without_thinking({(1, 1)})
    with pytest.raises(HostError, match="not thinking that can be left out"):
        decode(b'{"input": [{"type": "reasoning", "id": "rs_1"}]}', "openai_responses").without_thinking({(0, 0)})


def edited_at(body: Wire, message: int, block: int) -> Wire:
    """The body with one block changed."""
    messages = [*body["messages"]]
    one = messages[message]
    blocks = [*one["content"]] if isinstance(one["content"], list) else [text(one["content"])]
    old = blocks[block]
    blocks[block] = {**old, "content": "stub"} if old["type"] == "tool_result" else text("stub")
    messages[message] = {**one, "content": blocks}
    return {**body, "messages": messages}


@given(anthropic_bodies(), st.data())
def test_an_edit_with_the_thinking_that_goes_with_it_is_never_refused(body: Wire, data: st.DataObject) -> None:
    received = with_request(NOTHING_RECEIVED, body, "anthropic")
    assert check_body(body, "anthropic", BOUND, received) == []
    users = [place for place, one in enumerate(body["messages"]) if one["role"] == "user"]
    message = data.draw(st.sampled_from(users))
    content = body["messages"][message]["content"]
    block = data.draw(st.integers(0, len(content) - 1)) if isinstance(content, list) else 0
    found = after_body_edit(body, (message, block), BOUND)
    edited = edited_at(body, message, block)
    if found.stuck:
        assert {"T2", "M10"} & {one.rule for one in check_body(edited, "anthropic", BOUND, received)}
        return
    made = body_without(edited, found.places)
    assert check_body(made, "anthropic", BOUND, received) == []
    # and it is no more than what has to go
    assert stale_in_body(edited, received, BOUND).places <= found.places


@given(anthropic_bodies(), st.data())
def test_dropping_what_is_known_to_be_stale_is_enough(body: Wire, data: st.DataObject) -> None:
    received = with_request(NOTHING_RECEIVED, body, "anthropic")
    count = len(body["messages"])
    changed = body
    for place in data.draw(st.lists(st.integers(0, count - 1), max_size=2)):
        if changed["messages"][place]["role"] == "user":
            changed = edited_at(changed, place, 0)
    thinking = [
        (place, 0)
        for place, one in enumerate(changed["messages"])
        if one["content"][:1] and one["role"] == "assistant" and one["content"][0]["type"] == "thinking"
    ]
    gone = data.draw(st.sets(st.sampled_from(thinking))) if thinking else set()
    changed = body_without(changed, gone)
    found = stale_in_body(changed, received, BOUND)
    if not found.stuck:
        left = check_body(body_without(changed, found.places), "anthropic", BOUND, received)
        assert {one.rule for one in left} & {"T2", "T6", "M10"} == set()

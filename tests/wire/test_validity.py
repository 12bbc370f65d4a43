from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.conversations import WILD, valid

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.providers.validity import RULES, Api, Checker, Violation, check_body, check_messages

Wire = dict[str, Any]


def use(name: str) -> Wire:
    return {"type": "tool_use", "id": name, "name": "f", "input": {}}


def result(name: str, **more: object) -> Wire:
    return {"type": "tool_result", "tool_use_id": name, "content": "x", **more}


def text(words: str = "hi", **more: object) -> Wire:
    return {"type": "text", "text": words, **more}


def user(*blocks: Wire) -> Wire:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def marked(ttl: str | None = None) -> Wire:
    return {"cache_control": {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}}


ASK = user(text())
BROKEN: list[tuple[str, Wire, tuple[int, int]]] = [
    ("M1", {"messages": [ASK, model(use("a"))]}, (1, 0)),
    ("M1", {"messages": [ASK, model(use("a"), use("b")), user(result("b"))]}, (1, 0)),
    ("M1", {"messages": [ASK, model(use("a")), user(text()), user(result("a"))]}, (1, 0)),
    ("M1", {"messages": [ASK, model(use("a")), model(text())]}, (1, 0)),
    ("M2", {"messages": [user(result("a"))]}, (0, 0)),
    ("M2", {"messages": [ASK, model(use("a")), user(result("a")), user(result("a"))]}, (3, 0)),
    ("M2", {"messages": [ASK, model(text()), user(text(), result("b"))]}, (2, 1)),
    ("M3", {"messages": [ASK, model(use("a")), user(text(), result("a"))]}, (2, 1)),
    ("M4", {"messages": [ASK, model(use("a")), user(result("a"), result("a"))]}, (2, 1)),
    ("M7", {"messages": [user(text(""))]}, (0, 0)),
    ("M7", {"messages": [{"role": "user", "content": " \n"}]}, (0, 0)),
    ("M7", {"messages": [user()]}, (0, 0)),
    ("M7", {"messages": [ASK, model(text("and "))]}, (1, 0)),
    ("M8", {"messages": []}, (0, 0)),
    ("M8", {"messages": [model(text())]}, (0, 0)),
    (
        "M14",
        {
            "tools": [{"name": "f", **marked()}],
            "system": [text("s", **marked())],
            "messages": [user(*(text(**marked()) for _ in range(3)))],
        },
        (0, 2),
    ),
    ("M15", {"system": [text("s", **marked())], "messages": [user(text(**marked("1h")))]}, (0, 0)),
    (
        "M15",
        {
            "system": [text("s", **marked("5m"))],
            "tools": [{"name": "f", **marked("1h")}],
            "messages": [user(text(**marked("1h")))],
        },
        (0, 0),
    ),
    (
        "M17",
        {"messages": [ASK, model({"type": "thinking", "thinking": "", "signature": "s", **marked()}, text()), ASK]},
        (1, 0),
    ),
    ("M17", {"messages": [user(text("", **marked()), text())]}, (0, 0)),
    (
        "C1",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
                {"role": "tool", "tool_call_id": "a"},
            ]
        },
        (1, 1),
    ),
    (
        "C1",
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"id": "a"}]},
                {"role": "user", "content": "hi"},
                {"role": "tool", "tool_call_id": "a"},
            ]
        },
        (0, 0),
    ),
    ("C2", {"messages": [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a"}]}, (1, 0)),
    (
        "C2",
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"id": "a"}]},
                {"role": "tool", "tool_call_id": "a"},
                {"role": "tool", "tool_call_id": "b"},
            ]
        },
        (2, 0),
    ),
    ("R1", {"input": [{"type": "function_call_output", "call_id": "a", "output": "x"}]}, (0, 0)),
    (
        "R1",
        {
            "input": [
                {"type": "function_call_output", "call_id": "a"},
                {"type": "function_call", "call_id": "a"},
                {"type": "function_call_output", "call_id": "a"},
            ]
        },
        (0, 0),
    ),
    ("R2", {"input": [{"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "a"}]}, (1, 0)),
    (
        "R2",
        {
            "input": [
                {"type": "custom_tool_call", "call_id": "a"},
                {"type": "function_call_output", "call_id": "b"},
                {"type": "function_call", "call_id": "b"},
            ]
        },
        (0, 0),
    ),
]


@pytest.mark.parametrize(("rule", "body", "place"), BROKEN)
def test_a_broken_rule_is_found_where_it_is_broken(rule: str, body: Wire, place: tuple[int, int]) -> None:
    found = check_body(body, RULES[rule].api)
    assert (rule, *place) in [(one.rule, one.message, one.block) for one in found]
    assert all(one.text for one in found)


def test_every_rule_has_a_case_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


GOOD: list[tuple[Api, Wire]] = [
    ("anthropic", {"messages": [ASK, ASK, model(text(), use("a"), use("b")), user(result("b"), result("a"), text())]}),
    ("anthropic", {"messages": [ASK, model(use("a")), user(result("a", **marked())), model(text("done")), ASK]}),
    ("anthropic", {"messages": [ASK, model(use("a")), user({"type": "tool_result", "tool_use_id": "a"})]}),
    (
        "anthropic",
        {
            "messages": [
                ASK,
                model({"type": "server_tool_use", "id": "s"}, {"type": "web_search_tool_result", "tool_use_id": "s"}),
                ASK,
            ]
        },
    ),
    (
        "anthropic",
        {
            "tools": [{"name": "f", **marked("1h")}],
            "system": [text("s", **marked("1h"))],
            "messages": [user(text(**marked("5m"))), ASK],
        },
    ),
    ("anthropic", {"system": "plain", "messages": [{"role": "user", "content": "plain"}]}),
    (
        "openai_chat",
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
                {"role": "tool", "tool_call_id": "b"},
                {"role": "tool", "tool_call_id": "a"},
            ]
        },
    ),
    (
        "openai_responses",
        {
            "input": [
                {"type": "function_call", "call_id": "a"},
                {"type": "reasoning"},
                {"type": "function_call", "call_id": "b"},
                {"type": "function_call_output", "call_id": "a"},
                {"type": "function_call_output", "call_id": "b"},
            ]
        },
    ),
    ("openai_responses", {"input": "hi"}),
]


@pytest.mark.parametrize(("api", "body"), GOOD)
def test_what_providers_take_is_not_refused(api: Api, body: Wire) -> None:
    assert check_body(body, api) == []


@given(valid())
def test_a_valid_conversation_breaks_no_rule(messages: list[Message]) -> None:
    assert check_messages(messages) == []


def test_messages_are_judged_as_they_are_rendered() -> None:
    said = [
        Message("user", (Text("hi"),)),
        Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))),
        Message("tool", (ToolResult("a", "x"),)),
        Message("tool", (ToolResult("b", "x"),)),
        Message("user", (Text("more"),)),
    ]
    assert check_messages(said) == []
    assert [one.rule for one in check_messages([*said[:2], said[4], *said[2:4]])] == ["M3", "M3"]


@given(WILD, st.data())
def test_checking_what_is_new_finds_what_checking_all_finds(messages: list[Message], data: st.DataObject) -> None:
    checker = Checker()
    sent: list[Message] = []
    seen: set[Violation] = set()
    for _ in range(data.draw(st.integers(1, 4))):
        keep = data.draw(st.integers(0, len(sent)))
        more = data.draw(st.integers(0, len(messages)))
        request = [*sent[:keep], *messages[:more]]
        found = checker.check(keep, request[keep:])
        everything = check_messages(request)
        # What is not reported again was reported for a request that had it already.
        assert set(found) <= set(everything)
        assert set(everything) <= set(found) | seen
        seen |= set(found)
        sent = request

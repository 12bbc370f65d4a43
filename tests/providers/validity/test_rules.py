import re
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conversations import WILD, valid
from tests.providers.validity.bodies import (
    ASK,
    Wire,
    call,
    marked,
    model,
    output,
    reasoning,
    result,
    said,
    system,
    text,
    thought,
    use,
    user,
)

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.providers.validity import NOTHING_RECEIVED, AnswerFacts, Api, target
from pagein.providers.wire import RULES, Checker, Violation, check_body, check_messages, format_named, with_request

NEW = date(2026, 9, 1)
OLD = date(2026, 8, 30)
BETA = "thinking-binding-controls-2026-08-01"


@dataclass(frozen=True)
class Case:
    """A body, whom it is sent to, and what is known of earlier answers in it."""

    rule: str
    body: Wire
    place: tuple[int, int]
    api: Api = "anthropic"
    model: str | None = None
    more: dict[str, Any] = field(default_factory=dict)
    received: AnswerFacts = NOTHING_RECEIVED
    size: int = 0

    def check(self) -> list[Violation]:
        return check_body(self.body, self.api, target(self.model, **self.more), self.received, size=self.size)


def messages(*said: Wire, **fields: object) -> Wire:
    return {**fields, "messages": list(said)}


def items(*said: Wire, **fields: object) -> Wire:
    return {**fields, "input": list(said)}


def chat(*said: Wire, **fields: object) -> Wire:
    return {**fields, "messages": list(said)}


def m(rule: str, body: Wire, place: tuple[int, int], model: str | None = None, **more: object) -> Case:
    return Case(rule, body, place, "anthropic", model, more)


def c(rule: str, body: Wire, place: tuple[int, int], model: str | None = None) -> Case:
    return Case(rule, body, place, "openai_chat", model)


def r(rule: str, body: Wire, place: tuple[int, int], model: str | None = None, received: Wire | None = None) -> Case:
    known = NOTHING_RECEIVED if received is None else with_request(NOTHING_RECEIVED, received, "openai_responses")
    return Case(rule, body, place, "openai_responses", model, received=known)


def g(rule: str, contents: list[Wire], place: tuple[int, int], model: str | None = None, **fields: object) -> Case:
    return Case(rule, {**fields, "contents": contents}, place, "gemini_generate_content", model)


def content(role: str, *parts: Wire) -> Wire:
    return {"role": role, "parts": list(parts)}


WHOLE = (-1, 0)
SAYS = content("user", {"text": "hi"})
CALLS: Wire = {"functionCall": {"name": "f", "args": {}}}
SIGNED = {**CALLS, "thoughtSignature": "c2ln"}
ANSWERS: Wire = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
ANSWERED = content("user", ANSWERS)
FUNCTIONS = [{"functionDeclarations": [{"name": "f"}]}]
CALLING = {"functionCallingConfig": {"mode": "AUTO"}}
FUNCTION = {"type": "function", "function": {"name": "f"}}
SEARCH = {"type": "web_search_20260209", "name": "web_search"}
TOOL_SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
SERVER = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
SERVED = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
CITED = {
    "type": "web_search_result_location",
    "url": "https://a",
    "title": "t",
    "cited_text": "c",
    "encrypted_index": "x",
}
FOUND = [{"type": "web_search_result", "url": "https://a", "title": "t", "encrypted_content": "x"}]
STRANGE = {"type": "web_search_tool_result", "tool_use_id": "t", "content": []}
LOOP = (ASK, model(thought("S1"), use("a")), user(result("a")))
SECOND = (*LOOP, model(thought("S2"), use("b")), user(result("b")))
BOUND = with_request(NOTHING_RECEIVED, messages(*SECOND), "anthropic")
CLEAR_THINKING = {"type": "clear_thinking_20251015"}
CLEAR_TOOLS = {"type": "clear_tool_uses_20250919"}
ASSISTANT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
BREAK: Wire = {"prompt_cache_breakpoint": {"mode": "explicit"}}
MEMBER = use("a", toolset_name="browser")


def bound(rule: str, body: Wire, place: tuple[int, int], **more: object) -> Case:
    return Case(rule, body, place, "anthropic", "claude-opus-5-5", more, BOUND)


def edits(*edits: Wire, **fields: object) -> Wire:
    return messages(ASK, context_management={"edits": list(edits)}, **fields)


BROKEN = [
    m("M1", messages(ASK, model(use("a"))), (1, 0)),
    m("M1", messages(ASK, model(use("a"), use("b")), user(result("b"))), (1, 0)),
    m("M1", messages(ASK, model(use("a")), user(text()), user(result("a"))), (1, 0)),
    m("M1", messages(ASK, model(use("a")), model(text())), (1, 0)),
    m("M1", messages(ASK, model(use("a")), system(), user(result("a"))), (1, 0)),
    m("M2", messages(user(result("a"))), (0, 0)),
    m("M2", messages(ASK, model(use("a")), user(result("a")), user(result("a"))), (3, 0)),
    m("M2", messages(ASK, model(text()), user(text(), result("b"))), (2, 1)),
    m("M3", messages(ASK, model(use("a")), user(text(), result("a"))), (2, 1)),
    m("M4", messages(ASK, model(use("a")), user(result("a"), result("a"))), (2, 1)),
    m("M4", messages(ASK, model(use("a"), use("a")), user(result("a"))), (1, 1)),
    m("M5", messages(ASK, model(SERVED, text()), ASK), (1, 0)),
    m("M5", messages(ASK, model(SERVER, STRANGE), ASK, tools=[SEARCH]), (1, 1)),
    m("M5", messages(ASK, model(SERVER, use("a")), user(result("a"), text()), tools=[SEARCH]), (1, 0)),
    m("M5", messages(ASK, model(SERVER), ASK, model(text()), ASK, tools=[SEARCH]), (1, 0)),
    m("M5", messages(ASK, model(SERVER, use("a")), user(result("a")), tools=[{"name": "f"}]), (1, 0)),
    m("M6", messages(ASK, model(MEMBER), user(result("a"))), (2, 0)),
    m("M6", messages(ASK, model(MEMBER), user(result("a", toolset_name="other"))), (2, 0)),
    m(
        "M6",
        messages(ASK, model(MEMBER), user(result("a", toolset_name="browser", content=[{"type": "document"}]))),
        (2, 0),
    ),
    m("M7", messages(user(text(""))), (0, 0)),
    m("M7", messages({"role": "user", "content": " \n"}), (0, 0)),
    m("M7", messages(user()), (0, 0)),
    m("M7", messages(ASK, model(text("and "))), (1, 0)),
    m("M7", messages(ASK, system=[text("")]), WHOLE),
    m("M8", messages(), (0, 0)),
    m("M8", messages(model(text())), (0, 0)),
    m("M8", messages(ASK, ASK), (1, 0), platform="legacy"),
    m("M9", messages(ASK, model(text())), (1, 0), "claude-opus-4-6"),
    m("M9", messages(ASK, model(text())), (1, 0), "claude-sonnet-5-5"),
    bound("M10", messages(*SECOND[:3], model(thought("S2", "other"), use("b")), user(result("b"))), (3, 0)),
    bound("M10", messages(*SECOND[:3], model(thought("S2"), thought("S1"), use("b")), user(result("b"))), (3, 0)),
    m("M11", messages(ASK, model(use("a")), user(result("a")), thinking={"type": "enabled"}), (1, 0)),
    m("M11", messages(ASK, thinking={"type": "enabled"}, tool_choice={"type": "any"}), WHOLE),
    m("M11", messages(ASK, tool_choice={"type": "tool", "name": "f"}), WHOLE, "claude-fable-5-1"),
    m("M13", messages(ASK, thinking={"type": "enabled"}), WHOLE, "claude-opus-4-7"),
    m("M13", messages(ASK, thinking={"type": "adaptive"}), WHOLE, "claude-sonnet-4-5-20250929"),
    m("M13", messages(ASK, thinking={"type": "disabled"}), WHOLE, "claude-opus-5-5"),
    m(
        "M14",
        messages(
            user(*(text(**marked()) for _ in range(3))),
            tools=[{"name": "f", **marked()}],
            system=[text("s", **marked())],
        ),
        (0, 2),
    ),
    m(
        "M14",
        messages(
            ASK,
            model(use("a")),
            user(result("a", content=[text(**marked()) for _ in range(4)], **marked())),
        ),
        (2, 0),
    ),
    m("M15", messages(user(text(**marked("1h"))), system=[text("s", **marked())]), (0, 0)),
    m(
        "M15",
        messages(user(text(**marked("1h"))), system=[text("s", **marked("5m"))], tools=[{"name": "f", **marked("1h")}]),
        (0, 0),
    ),
    m("M16", messages(user(text(**marked("1h"))), **marked()), (0, 0)),
    m("M16", messages(user(*(text(**marked()) for _ in range(4)), text()), **marked()), WHOLE),
    m("M16", messages(ASK, **marked()), WHOLE, platform="legacy"),
    m("M17", messages(ASK, model(thought("s", **marked()), text()), ASK), (1, 0)),
    m("M17", messages(user(text("", **marked()), text())), (0, 0)),
    m("M17", messages(ASK, tools=[{"name": "g"}, {"name": "f", "defer_loading": True, **marked()}]), (-1, 1)),
    m("M18", messages(system(), ASK), (0, 0)),
    m("M18", messages(ASK, model(text()), system(), ASK), (2, 0)),
    m("M18", messages(ASK, system(), ASK), (1, 0)),
    m("M18", messages(ASK, system(), system()), (1, 0)),
    m("M18", messages(ASK, model(use("a")), system(), user(result("a"))), (2, 0)),
    m("M18", messages(ASK, system()), (1, 0), "claude-opus-4-7"),
    m("M18", messages(ASK, system()), (1, 0), "claude-sonnet-5", on=date(2026, 9, 1)),
    m("M5", messages(ASK, model(SERVER), ASK, model(SERVED, text()), ASK), (1, 0)),
    m("M24", messages(ASK, model(text(citations=[CITED])), ASK), (1, 0)),
    m("M24", messages(ASK, model(SERVER, SERVED, text(citations=[CITED])), ASK), (1, 2)),
    m("M19", messages(ASK, tools=[{"name": "f", "defer_loading": True}]), WHOLE),
    m(
        "M19",
        messages(
            ASK,
            model(use("a")),
            user(result("a", content=[{"type": "tool_reference", "tool_name": "gone"}])),
            tools=[{"name": "f"}],
        ),
        (2, 0),
    ),
    m(
        "M19",
        messages(
            ASK,
            model(
                {"type": "server_tool_use", "id": "s", "name": "tool_search"},
                {
                    "type": "tool_search_tool_result",
                    "tool_use_id": "s",
                    "content": {"tool_references": [{"type": "tool_reference", "tool_name": "gone"}]},
                },
            ),
            ASK,
        ),
        (1, 1),
    ),
    m(
        "M19",
        messages(
            ASK,
            model(use("a")),
            user(result("a", content=[{"type": "tool_reference", "tool_name": "f"}])),
            tools=[{"name": "f"}],
        ),
        (2, 0),
    ),
    m("M20", messages(ASK, temperature=0.2), WHOLE, "claude-opus-4-7"),
    m("M20", messages(ASK, top_p=0.5), WHOLE, "claude-haiku-5-5"),
    m("M20", messages(ASK, top_k=40), WHOLE, "claude-mythos-5"),
    m("M20", messages(ASK, temperature=1, top_p=0.9), WHOLE, "claude-sonnet-4-5"),
    m("M20", messages(ASK, thinking={"type": "disabled"}, output_config={"effort": "max"}), WHOLE, "claude-opus-5"),
    m("M25", messages(ASK, tools=[TOOL_SEARCH, {"name": "f"}]), WHOLE, "claude-haiku-3-5"),
    m("M26", messages(ASK, tools=[{"name": "f"}, {"name": "g"}, {"name": "f"}]), WHOLE),
    Case("M21", messages(ASK), WHOLE, size=(32 << 20) + 1),
    m("M21", {"messages": [ASK] * 100_001}, WHOLE),
    m("M22", edits(CLEAR_TOOLS), WHOLE, betas=()),
    m("M22", edits({"type": "compact_20260112"}), WHOLE, betas=("context-management-2025-06-27",)),
    m("M27", messages(ASK, diagnostics=True), WHOLE, betas=()),
    m("M27", messages(ASK, diagnostics={"previous_message_id": 7}), WHOLE, betas=()),
    m("M22", messages(ASK, {**ASK, "output_config": {"effort": "low"}}), WHOLE, betas=()),
    m("M22", messages(ASK, model(text()), user({"type": "tool_addition"})), WHOLE, betas=()),
    m("M23", edits(CLEAR_TOOLS, CLEAR_THINKING), WHOLE),
    m("M23", edits(CLEAR_THINKING, thinking={"type": "disabled"}), WHOLE),
    m("M23", edits(CLEAR_THINKING), WHOLE, "claude-opus-4-6"),
    m("M23", edits({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 49_999}}), WHOLE),
    bound("T2", messages(user(text("other")), *SECOND[1:]), (1, 0)),
    bound("T2", messages(user(text("other")), *SECOND[1:]), (3, 0)),
    bound("T2", messages(*SECOND[:2], user(result("a", content="stub")), *SECOND[3:]), (3, 0)),
    bound("T2", messages(*SECOND, system="new"), (1, 0)),
    bound("T2", messages(*SECOND, tools=[{"name": "new"}]), (1, 0)),
    bound("T2", messages(ASK, *SECOND), (2, 0), account=NEW),
    bound(
        "T2",
        messages(ASK, *SECOND, thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}),
        (2, 0),
        account=OLD,
        betas=[BETA],
    ),
    m("T5", messages(ASK, thinking={"type": "adaptive", "block_binding": {}}), WHOLE, betas=()),
    Case(
        "T6",
        messages(
            *LOOP[:1],
            model(thought("S1"), use("a")),
            user(result("a")),
            model(use("b")),
            user(result("b")),
            model(thought("S3"), text("done")),
            ASK,
        ),
        (5, 0),
        model="claude-sonnet-5-5",
        received=with_request(NOTHING_RECEIVED, messages(*SECOND, model(thought("S3"), text("done"))), "anthropic"),
    ),
    c(
        "C1",
        chat(
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
            {"role": "tool", "tool_call_id": "a"},
        ),
        (1, 1),
    ),
    c(
        "C1",
        chat(
            {"role": "assistant", "tool_calls": [{"id": "a"}]},
            {"role": "user", "content": "hi"},
            {"role": "tool", "tool_call_id": "a"},
        ),
        (0, 0),
    ),
    c("C2", chat({"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a"}), (1, 0)),
    c(
        "C2",
        chat(
            {"role": "assistant", "tool_calls": [{"id": "a"}]},
            {"role": "tool", "tool_call_id": "a"},
            {"role": "tool", "tool_call_id": "b"},
        ),
        (2, 0),
    ),
    c("C3", chat(tools=[FUNCTION], reasoning_effort="low", model="gpt-5.4"), WHOLE, "gpt-5.4"),
    c("C3", chat(tools=[FUNCTION], reasoning_effort="high"), WHOLE, "gpt-6.1-sol"),
    c("C4", chat(prompt_cache_options={"mode": "explicit"}), WHOLE, "gpt-5.5"),
    c("C4", chat({"role": "user", "content": [{"type": "text", "text": "x", **BREAK}]}), (0, 0), "gpt-4o"),
    r("C4", items(said(**BREAK)), (0, 0), "gpt-5.1-codex"),
    g("G1", [content("model", CALLS), ANSWERED], (0, 0)),
    g("G1", [SAYS, content("model", {"text": "hm"}), content("model", CALLS), ANSWERED], (2, 0)),
    g("G2", [ANSWERED], (0, 0)),
    g("G2", [SAYS, content("model", CALLS), SAYS, ANSWERED], (3, 0)),
    g("G3", [SAYS, content("model", CALLS, CALLS), ANSWERED], (1, 0)),
    g("G3", [SAYS, content("model", CALLS), content("user", ANSWERS, ANSWERS)], (1, 0)),
    g("G3", [SAYS, content("model", CALLS), SAYS], (1, 0)),
    g("G4", [SAYS, content("model", CALLS), ANSWERED], (1, 0), "gemini-3-flash-preview"),
    g("G4", [SAYS, content("model", CALLS, SIGNED), content("user", ANSWERS, ANSWERS)], (1, 0), "gemini-3.1-pro"),
    g("G5", [SAYS, content("model", {"text": "so"})], (1, 0), "gemini-3.8-flash"),
    g("G6", [], WHOLE),
    g("G6", [content("user")], (0, 0)),
    g("G6", [SAYS, content("model", CALLS), content("user", {"functionResponse": {"response": {}}})], (2, 0)),
    g("G7", [SAYS], WHOLE, toolConfig=CALLING),
    g("G8", [SAYS], WHOLE, cachedContent="cachedContents/1", tools=FUNCTIONS),
    g("G8", [SAYS], WHOLE, "gemini-4-argon", cachedContent="cachedContents/1"),
    r("R1", items(output("a")), (0, 0)),
    r("R1", items(output("a"), call("a"), output("a")), (0, 0)),
    r("R2", items(said(), call("a")), (1, 0)),
    r("R2", items({"type": "custom_tool_call", "call_id": "a"}, output("b"), call("b")), (0, 0)),
    r(
        "R3",
        items(said(), call("a", id="fc_1"), output("a")),
        (1, 0),
        received=items(said(), reasoning("rs_1"), call("a", id="fc_1"), output("a")),
    ),
    r("R4", items(said(), reasoning("rs_1")), (1, 0)),
    r("R4", items(said(), reasoning("rs_1"), said()), (1, 0)),
    r(
        "R4",
        items(said(), reasoning("rs_1"), call("b"), output("b")),
        (1, 0),
        received=items(said(), reasoning("rs_1"), call("a", id="fc_1"), output("a")),
    ),
    r("R5", items(said(), call("a", id="call_a"), output("a")), (1, 0)),
    r("R5", items(said(), {**ASSISTANT, "id": "item_1"}), (1, 0)),
    r("R5", items(said(), call("a", id="fc_1"), output("a"), call("b", id="fc_1"), output("b")), (3, 0)),
    r("R6", items(said(), reasoning("rs_1"), ASSISTANT, store=False), (1, 0)),
    r("R7", items(said(), prompt_cache_options={}, prompt_cache_retention="24h"), WHOLE),
    r("O6", items(said(), {**ASSISTANT, "content": [{"type": "output_text", "text": "x", **BREAK}]}), (1, 0)),
    c("O6", chat({"role": "assistant", "content": [{"type": "text", "text": "x", **BREAK}]}), (0, 0)),
    r("O6", items(said(), tools=[{**FUNCTION, **BREAK}]), WHOLE),
]


def shape(template: str) -> str:
    """A pattern for the texts that a template makes."""
    return "".join(".*" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", template))


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.rule)
def test_a_broken_rule_is_found_where_it_is_broken_in_the_words_of_the_provider(case: Case) -> None:
    rule = RULES[case.rule]
    found = [one for one in case.check() if one.rule == case.rule]
    assert case.place in [(one.message, one.block) for one in found]
    assert case.rule in format_named(case.api).validity.rules
    assert {one.status for one in found} == {rule.status}
    templates = (*rule.errors, *rule.words)
    assert all(any(re.fullmatch(shape(known), one.text) for known in templates) for one in found)


def test_every_rule_that_refuses_has_a_case_that_breaks_it() -> None:
    assert {case.rule for case in BROKEN} == {name for name, rule in RULES.items() if rule.check}


def test_every_text_of_a_rule_is_seen() -> None:
    texts = [one.text for case in BROKEN for one in case.check()]
    unseen = {
        template
        for rule in RULES.values()
        for template in (*rule.errors, *rule.words)
        if not any(re.fullmatch(shape(template), text) for text in texts)
    }
    assert unseen == set()


def test_a_rule_that_refuses_nothing_says_where_it_is_kept() -> None:
    for rule in RULES.values():
        assert rule.check is not None or rule.kept
        assert (rule.check is None) == (not rule.errors and not rule.words)


def good(body: Wire, model: str | None = None, **more: object) -> Case:
    return Case("", body, WHOLE, "anthropic", model, more)


GOOD = [
    good(messages(ASK, ASK, model(text(), use("a"), use("b")), user(result("b"), result("a"), text()))),
    good(messages(ASK, model(use("a")), user(result("a", **marked())), model(text("done")), ASK)),
    good(messages(ASK, model(use("a")), user({"type": "tool_result", "tool_use_id": "a"}))),
    good(messages(ASK, model(SERVER, SERVED), ASK)),
    good(messages(ASK, model(SERVER), model(SERVED, text()), ASK)),
    good(messages(ASK, model(SERVER, {**SERVED, "content": FOUND}, text(citations=[CITED])), ASK)),
    good(messages(ASK, model(SERVER, use("a")), user(result("a")), model(SERVED, text()), ASK, tools=[SEARCH])),
    good(messages(ASK, model(SERVER, use("a")), user(result("a")), tools=[SEARCH])),
    good(messages(ASK, model(SERVER), tools=[SEARCH]), "claude-opus-5"),
    good(messages(ASK, model(MEMBER), user(result("a", toolset_name="browser")))),
    good(
        messages(
            user(text(**marked("5m"))),
            ASK,
            tools=[{"name": "f", **marked("1h")}],
            system=[text("s", **marked("1h"))],
        )
    ),
    good(messages({"role": "user", "content": "plain"}, system="plain")),
    good(messages(ASK, system="")),
    good(messages(ASK, model())),
    good(messages(ASK, model(text())), "claude-haiku-4-5"),
    good(messages(ASK, model(text())), "some-model-of-tomorrow"),
    good(messages(*LOOP, thinking={"type": "enabled"}), "claude-sonnet-4-5"),
    good(messages(ASK, model(use("a")), user(result("a")), model(text()), ASK, thinking={"type": "enabled"})),
    good(messages(ASK, thinking={"type": "enabled"}), "claude-opus-4-6"),
    good(messages(ASK, thinking={"type": "between_tools"}), "claude-sonnet-5-5"),
    good(messages(ASK, **marked())),
    good(messages(user(text(**marked())), **marked())),
    good(messages(user(*(text(**marked()) for _ in range(4))), **marked())),
    good(messages(ASK, system(), model(text()), ASK), "claude-opus-4-8"),
    good(messages(ASK, model(SERVER, SERVED), system(), model(text()), ASK)),
    good(messages(ASK, system()), "claude-sonnet-5"),
    good(messages(ASK, model(use("gone")), user(result("gone")), tools=[{"name": "other"}])),
    good(messages(ASK, temperature=1, top_p=1, top_k=None), "claude-opus-5"),
    good(messages(ASK, temperature=0.2), "claude-opus-4-6"),
    good(messages(ASK, thinking={"type": "disabled"}, output_config={"effort": "high"}), "claude-opus-5"),
    good(edits(CLEAR_TOOLS)),
    good(edits(CLEAR_THINKING, CLEAR_TOOLS, thinking={"type": "adaptive"}), betas=["context-management-2025-06-27"]),
    good(edits(CLEAR_THINKING), "claude-opus-5"),
    good(edits({"type": "compact_20260112", "trigger": {"value": 50_000}}), betas=["compact-2026-01-12"]),
    bound("", messages(*SECOND), WHOLE),
    bound("", messages(*SECOND[:3], model(thought("S2"), use("b", **marked())), user(result("b"))), WHOLE),
    bound("", messages(ASK, model(use("a")), user(result("a")), *SECOND[3:]), WHOLE),
    bound(
        "", messages(user(text("other")), model(use("a")), user(result("a")), model(use("b")), user(result("b"))), WHOLE
    ),
    bound("", messages(user(text("other")), *SECOND[1:]), WHOLE, account=OLD),
    bound(
        "",
        messages(
            ASK, *SECOND, thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        ),
        WHOLE,
        betas=[BETA],
    ),
    Case("", messages(user(text("other")), *SECOND[1:]), WHOLE, model="claude-opus-5", received=BOUND),
    Case("", messages(user(text("other")), *SECOND[1:]), WHOLE, model="claude-mythos-5-1", received=BOUND),
    c(
        "",
        chat(
            {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
            {"role": "tool", "tool_call_id": "b"},
            {"role": "tool", "tool_call_id": "a"},
        ),
        WHOLE,
    ),
    c("", chat(tools=[FUNCTION], reasoning_effort="none"), WHOLE, "gpt-5.6-terra"),
    c("", chat(tools=[FUNCTION], reasoning_effort="low"), WHOLE, "gpt-5.2"),
    c("", chat({"role": "user", "content": [{"type": "text", "text": "x", **BREAK}]}), WHOLE, "gpt-5.6-sol"),
    r("", items(call("a"), {"type": "reasoning"}, call("b"), output("a"), output("b")), WHOLE),
    r("", {"input": "hi"}, WHOLE),
    g("", [SAYS, content("model", CALLS), ANSWERED], WHOLE, "gemini-2.5-pro"),
    g("", [SAYS, content("model", SIGNED, CALLS), content("user", ANSWERS, ANSWERS)], WHOLE, "gemini-3-flash-preview"),
    g("", [SAYS, content("model", CALLS), ANSWERED, content("model", {"text": "so"}), SAYS], WHOLE, "gemini-3-pro"),
    g("", [SAYS, SAYS], WHOLE, tools=FUNCTIONS, toolConfig=CALLING),
    g("", [SAYS], WHOLE, "gemini-2.5-pro", cachedContent="cachedContents/1", toolChoice="x"),
    r("", items(output("a"), previous_response_id="resp_1"), WHOLE),
    r("", items({"type": "item_reference", "id": "fc_1"}, output("a")), WHOLE),
    r("", items({"type": "shell_call", "call_id": "a"}, {"type": "shell_call_output", "call_id": "a"}), WHOLE),
    r("", items(said(), reasoning("rs_1"), call("a", id="fc_1"), output("a")), WHOLE),
    r("", items(said(), reasoning("rs_1"), {"type": "web_search_call", "id": "ws_1"}, ASSISTANT), WHOLE),
    r("", items(said(), reasoning("rs_1", encrypted_content="x"), ASSISTANT, store=False), WHOLE),
    r("", items({**said(), "id": "mine"}), WHOLE),
    r("", items(said(**BREAK), prompt_cache_options={"mode": "implicit"}), WHOLE, "gpt-6-sol"),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.api)
def test_what_providers_take_is_not_refused(case: Case) -> None:
    assert case.check() == []


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.rule)
def test_a_model_that_nobody_knows_is_refused_nothing_for_being_itself(case: Case) -> None:
    by_model = {"M9", "M13", "M20", "C3", "C4", "T2", "T6", "G4", "G5"}
    found = check_body(case.body, case.api, target("some-model-of-tomorrow"), case.received)
    assert not by_model & {one.rule for one in found}


def test_the_model_of_a_request_is_asked_where_nobody_says_whom_it_goes_to() -> None:
    assert [one.rule for one in check_body(messages(ASK, model(text()), model="claude-opus-5"), "anthropic")] == ["M9"]


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

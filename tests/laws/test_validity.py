"""Random conversations: pagein never makes a valid request invalid, and the checker names the broken rule of an invalid
one.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.providers.validity.bodies import marked, text, thought, without_thinking
from tests.providers.validity.random_bodies import BODIES, CONVERSATIONS, LONG_ONES, anthropic_bodies, openai_bodies

from pagein.model.messages import Message, Text, Thinking
from pagein.providers.validity import NOTHING_RECEIVED, Api, target, with_messages
from pagein.providers.wire import Checker, check_body, check_messages, with_request
from pagein.providers.wire.breakpoint_edits import Client, Wishes
from pagein.providers.wire.breakpoint_edits import add_breakpoints as with_marks

Wire = dict[str, Any]
Mutation = Callable[[Wire], Wire | None]
BOUND = target("claude-opus-5-5", betas=[])
TARGETS = {
    "anthropic": BOUND,
    "openai_chat": target("gpt-5.6-sol"),
    "openai_responses": target("gpt-5.6-sol"),
}


def results_of(body: Wire, api: Api) -> list[tuple[int, int]]:
    """Where the results stand."""
    key = "input" if api == "openai_responses" else "messages"
    found = []
    for message, one in enumerate(body[key]):
        if one.get("role") == "tool" or one.get("type") == "function_call_output":
            found.append((message, 0))
        elif isinstance(one.get("content"), list):
            found += [(message, place) for place, block in enumerate(one["content"]) if block["type"] == "tool_result"]
    return found


def with_stub(body: Wire, api: Api, place: tuple[int, int]) -> Wire:
    """The body with a stub in place of a result."""
    made = deepcopy(body)
    message, block = place
    if api == "anthropic":
        made["messages"][message]["content"][block]["content"] = "stub"
    else:
        key, name = ("input", "output") if api == "openai_responses" else ("messages", "content")
        made[key][message][name] = "stub"
    return made


@given(BODIES, st.data(), st.sampled_from(["kept", "replaced"]))
def test_an_epoch_with_its_thinking_dropped_and_its_marks_set_is_never_refused(
    given_body: tuple[Api, Wire], data: st.DataObject, client: Client
) -> None:
    api, body = given_body
    whom = TARGETS[api]
    received = with_request(NOTHING_RECEIVED, body, api)
    sent, memory = with_marks(body, api, Wishes(client=client))
    assert check_body(sent, api, whom, received) == []
    places = results_of(body, api)
    assume(places)
    place = data.draw(st.sampled_from(places))
    edited = with_stub(sent, api, place)
    if api == "anthropic":
        freed = without_thinking(edited)
        assume(freed is not None)
        edited = freed or edited
    frontier = min((one for one in places if one > place), default=None)
    made, _ = with_marks(edited, api, Wishes(frontier, memory, client))
    assert check_body(made, api, whom, received) == []


@given(CONVERSATIONS, st.data())
def test_changed_messages_without_thinking_are_not_refused(said: list[Message], data: st.DataObject) -> None:
    signed = [
        Message("assistant", (Thinking("hm", f"signed-{place}"), *one.blocks)) if one.role == "assistant" else one
        for place, one in enumerate(said)
    ]
    received = with_messages(NOTHING_RECEIVED, signed)
    place = data.draw(st.integers(0, len(said) - 1))
    changed = tuple(Text("changed") if isinstance(one, Text) else one for one in said[place].blocks)
    assume(said[place].role == "user" and changed != said[place].blocks and said[-1].role == "user")
    made = [*said[:place], Message("user", changed), *said[place + 1 :]]
    assert check_messages(made, "anthropic", BOUND, received) == []
    checker = Checker("anthropic", BOUND)
    half = data.draw(st.integers(0, len(made)))
    checker.check(0, made[:half], received)
    assert {one.rule for one in checker.check(half, made[half:], received)} == set()


def first(body: Wire, kind: str) -> tuple[Wire, list[Wire], int] | None:
    """The first block of a kind, with its message and the list it stands in."""
    for message in body["messages"]:
        if isinstance(message["content"], list):
            for place, block in enumerate(message["content"]):
                if block["type"] == kind:
                    return message, message["content"], place
    return None


def without_first(kind: str) -> Mutation:
    def mutate(body: Wire) -> Wire | None:
        found = first(body, kind)
        if found is None:
            return None
        _, blocks, place = found
        blocks[place] = text("in its place")
        return body

    return mutate


def text_before_results(body: Wire) -> Wire | None:
    found = first(body, "tool_result")
    if found is None:
        return None
    found[1].insert(0, text())
    return body


def result_twice(body: Wire) -> Wire | None:
    found = first(body, "tool_result")
    if found is None:
        return None
    found[1].insert(0, found[1][found[2]])
    return body


def blank_text(body: Wire) -> Wire | None:
    found = first(body, "text")
    if found is None:
        return None
    found[1][found[2]] = text(" ")
    return body


def no_first_message(body: Wire) -> Wire | None:
    while body["messages"] and body["messages"][0]["role"] == "user":
        body["messages"].pop(0)
    return body


def answered_by_the_client(body: Wire) -> Wire | None:
    body["messages"].append({"role": "assistant", "content": [text("well,")]})
    return body


def other_prefix(body: Wire) -> Wire | None:
    if first(body, "thinking") is None:
        return None
    body["messages"].insert(0, {"role": "user", "content": "words that were not there"})
    return body


def thinking_left_out_between(body: Wire) -> Wire | None:
    thinking = [
        one for one in body["messages"] if isinstance(one["content"], list) and one["content"][0]["type"] == "thinking"
    ]
    if len(thinking) < 3:
        return None
    thinking[1]["content"].pop(0)
    return None if not thinking[1]["content"] else body


def other_words_in_the_loop(body: Wire) -> Wire | None:
    if len(body["messages"]) < 2:
        return None
    latest, last = body["messages"][-2:]
    blocks = latest["content"]
    looping = isinstance(last["content"], list) and last["content"][0]["type"] == "tool_result"
    if not looping or not isinstance(blocks, list) or blocks[0]["type"] != "thinking":
        return None
    blocks[0] = thought(blocks[0]["signature"], "other words")
    return body


def many_marks(body: Wire) -> Wire | None:
    body["system"] = [text(str(place), **marked()) for place in range(5)]
    return body


def long_mark_late(body: Wire) -> Wire | None:
    body["system"] = [text("short", **marked()), text("long", **marked("1h"))]
    return body


def marked_thinking(body: Wire) -> Wire | None:
    found = first(body, "thinking")
    if found is None:
        return None
    found[1][found[2]].update(marked())
    return body


def field(**fields: object) -> Mutation:
    return lambda body: {**body, **fields}


MUTATIONS: list[tuple[str, Mutation]] = [
    ("M1", without_first("tool_result")),
    ("M2", without_first("tool_use")),
    ("M3", text_before_results),
    ("M4", result_twice),
    ("M7", blank_text),
    ("M8", no_first_message),
    ("M9", answered_by_the_client),
    ("M10", other_words_in_the_loop),
    ("M11", field(tool_choice={"type": "any"})),
    ("M13", field(thinking={"type": "enabled", "budget_tokens": 1024})),
    ("M14", many_marks),
    ("M15", long_mark_late),
    ("M17", marked_thinking),
    ("M20", field(temperature=0)),
    ("M22", field(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})),
    ("T2", other_prefix),
    ("T5", field(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}})),
    ("T6", thinking_left_out_between),
]


def _uses_an_id_twice(body: Wire) -> bool:
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    ids = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    return len(ids) != len(set(ids))


@pytest.mark.parametrize(("rule", "mutation"), MUTATIONS, ids=[rule for rule, _ in MUTATIONS])
def test_a_mutated_request_is_refused_by_the_rule_that_it_breaks(rule: str, mutation: Mutation) -> None:
    applied = 0

    @settings(max_examples=60)
    @given(anthropic_bodies() | anthropic_bodies(LONG_ONES, st.just(True)))  # noqa: FBT003 -- what hypothesis draws
    def mutated(body: Wire) -> None:
        nonlocal applied
        received = with_request(NOTHING_RECEIVED, body, "anthropic")
        # by an id that two answers used nothing can be proven of either
        broken = None if rule == "M10" and _uses_an_id_twice(body) else mutation(deepcopy(body))
        if broken is not None:
            applied += 1
            assert rule in {one.rule for one in check_body(broken, "anthropic", BOUND, received)}

    mutated()
    assert applied


OPENAI: list[tuple[str, Api, str]] = [
    ("C1", "openai_chat", "tool"),
    ("C2", "openai_chat", "assistant"),
    ("R1", "openai_responses", "function_call"),
    ("R2", "openai_responses", "function_call_output"),
]


@pytest.mark.parametrize(("rule", "api", "gone"), OPENAI, ids=[rule for rule, _, _ in OPENAI])
def test_a_call_or_result_that_is_gone_is_missed(rule: str, api: Api, gone: str) -> None:
    applied = 0

    def is_gone(one: Wire) -> bool:
        return gone in (one.get("type"), one.get("role")) and (gone != "assistant" or "tool_calls" in one)

    @settings(max_examples=60)
    @given(openai_bodies(api))
    def mutated(body: Wire) -> None:
        nonlocal applied
        key = "input" if api == "openai_responses" else "messages"
        calls = [one for one in body[key] if is_gone(one)]
        names = [
            one.get("call_id") or one.get("tool_call_id") or call["id"]
            for one in calls
            for call in one.get("tool_calls", [one])
        ]
        if len(set(names)) < len(names):
            return  # hosts do give an id twice
        if calls:
            applied += 1
            left = {**body, key: [one for one in body[key] if one is not calls[0]]}
            assert rule in {one.rule for one in check_body(left, api)}

    mutated()
    assert applied


def test_thinking_is_not_taken_for_that_of_another_answer_that_used_the_same_id() -> None:
    def turn(*blocks: Wire) -> list[Wire]:
        call: Wire = {"type": "tool_use", "id": "a", "name": "run", "input": {}}
        result: Wire = {"type": "tool_result", "tool_use_id": "a", "content": "done"}
        return [{"role": "assistant", "content": [*blocks, call]}, {"role": "user", "content": [result]}]

    thought: Wire = {"type": "thinking", "thinking": "hm", "signature": "signed"}
    asked: Wire = {"role": "user", "content": "go"}
    first: Wire = {"model": "claude-opus-5-5", "max_tokens": 8192, "messages": [asked, *turn()]}
    second: Wire = {**first, "messages": [asked, *turn(), *turn(thought)]}
    received = with_request(NOTHING_RECEIVED, first, "anthropic")
    assert check_body(second, "anthropic", TARGETS["anthropic"], received) == []

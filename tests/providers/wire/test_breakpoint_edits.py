import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.validity.bodies import ASK, marked, model, result, text, thought, use, user
from tests.providers.validity.random_bodies import BODIES, anthropic_bodies

from pagein.errors import HostError
from pagein.providers.caches.breakpoint_plan import Manner
from pagein.providers.caches.cache_values import LONG
from pagein.providers.validity import Api
from pagein.providers.wire import check_body, decode
from pagein.providers.wire.breakpoint_edits import NO_WISHES, Changes, Wishes, changes, with_changes
from pagein.providers.wire.breakpoint_edits import add_breakpoints as with_marks
from pagein.providers.wire.spliced_breakpoints import with_marks as with_marks_in_bytes

Wire = dict[str, Any]
REPLACED = Wishes(client="replaced")
LONG_ONES = Manner(head=LONG, frontier=LONG, end=LONG)
WISHES = st.builds(
    Wishes,
    frontier=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 2)),
    client=st.sampled_from(["kept", "replaced"]),
    manner=st.sampled_from([None, Manner(), LONG_ONES]),
)


def marks_in(value: object, place: str = "") -> list[tuple[str, str]]:
    """All marks in a body, by their paths."""
    if isinstance(value, list):
        return [one for index, item in enumerate(value) for one in marks_in(item, f"{place}.{index}")]
    if not isinstance(value, dict):
        return []
    own = [
        (place, str(value[name].get("ttl", "")))
        for name in ("cache_control", "prompt_cache_breakpoint")
        if name in value
    ]
    return own + [one for name, item in value.items() for one in marks_in(item, f"{place}.{name}")]


def bare(value: object, api: Api) -> object:
    """A body without marks, strings of content written out."""
    if isinstance(value, list):
        return [bare(one, api) for one in value]
    if not isinstance(value, dict):
        return value
    marks = ("cache_control", "prompt_cache_breakpoint")
    made = {name: bare(one, api) for name, one in value.items() if name not in marks}
    for name in ("content", "system"):
        if isinstance(made.get(name), str) and "tool_use_id" not in made:
            kind = "input_text" if api == "openai_responses" else "text"
            made[name] = [{"type": kind, "text": made[name]}]
    return made


LOOP = [user(text("do")), model(thought("s"), use("a")), user(result("a")), model(text("done")), user(text("more"))]


def test_system_frontier_previous_end_and_end_are_marked() -> None:
    body = {"system": "be good", "messages": LOOP[:3]}
    first, memory = with_marks(body, "anthropic", Wishes(frontier=(2, 0)))
    assert marks_in(first) == [(".system.0", ""), (".messages.1.content.1", ""), (".messages.2.content.0", "")]
    second, _ = with_marks({**body, "messages": LOOP}, "anthropic", Wishes(frontier=(2, 0), memory=memory))
    assert [place for place, _ in marks_in(second)] == [
        ".system.0",
        ".messages.1.content.1",
        ".messages.2.content.0",
        ".messages.4.content.0",
    ]


def test_after_an_edit_the_old_frontier_is_marked() -> None:
    body = {"system": "be good", "messages": LOOP}
    _, memory = with_marks(body, "anthropic", Wishes(frontier=(2, 0)))
    edited = {**body, "messages": [*LOOP[:2], user(result("a", content="stub")), *LOOP[3:], model(text("x")), ASK]}
    made, _ = with_marks(edited, "anthropic", Wishes(frontier=(6, 0), memory=memory))
    assert [place for place, _ in marks_in(made)] == [
        ".system.0",
        ".messages.1.content.1",
        ".messages.5.content.0",
        ".messages.6.content.0",
    ]


def test_the_clients_marks_are_kept_and_the_free_slots_filled() -> None:
    body = {
        "system": [text("a", **marked("1h")), text("b", **marked("1h"))],
        "messages": [user(text("do", **marked())), *LOOP[1:4], user(text("more"))],
    }
    made, _ = with_marks(body, "anthropic", Wishes(frontier=(2, 0)))
    assert marks_in(made) == [
        (".system.0", "1h"),
        (".system.1", "1h"),
        (".messages.0.content.0", ""),
        (".messages.4.content.0", ""),
    ]
    replaced, _ = with_marks(body, "anthropic", Wishes(frontier=(2, 0), client="replaced"))
    assert marks_in(replaced) == [(".system.1", "1h"), (".messages.1.content.1", ""), (".messages.4.content.0", "")]


def test_the_automatic_mark_of_the_client_counts_and_is_taken_away_with_the_others() -> None:
    body = {"system": "be good", "messages": LOOP, **marked("1h")}
    made, _ = with_marks(body, "anthropic")
    assert marks_in(made) == [("", "1h"), (".system.0", "1h")]
    replaced, _ = with_marks(body, "anthropic", REPLACED)
    assert marks_in(replaced) == [(".system.0", "1h"), (".messages.4.content.0", "1h")]


def test_marks_inside_of_results_count_and_go_with_the_others() -> None:
    inner = [text("x", **marked()) for _ in range(4)]
    body = {"messages": [ASK, model(use("a")), user(result("a", content=inner))]}
    assert changes(body, "anthropic").is_nothing
    replaced, _ = with_marks(body, "anthropic", REPLACED)
    assert marks_in(replaced) == [(".messages.2.content.0", "")]


def test_a_tool_that_is_loaded_later_carries_no_mark() -> None:
    body = {"tools": [{"name": "f"}, {"name": "g", "defer_loading": True}], "messages": [ASK]}
    assert marks_in(with_marks(body, "anthropic")[0]) == [(".tools.0", ""), (".messages.0.content.0", "")]


def test_openai_gets_breakpoints_on_input_only_and_none_at_the_end() -> None:
    body = {
        "input": [
            {"role": "developer", "content": "be good"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]},
            {"type": "function_call", "call_id": "a"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ]
    }
    made, memory = with_marks(body, "openai_responses", Wishes(frontier=(1, 0)))
    assert marks_in(made) == [(".input.0.content.0", "")]
    assert made["input"][0]["content"] == [
        {"type": "input_text", "text": "be good", "prompt_cache_breakpoint": {"mode": "explicit"}}
    ]
    more = {"input": [*body["input"], {"role": "user", "content": "more"}]}
    again, _ = with_marks(more, "openai_responses", Wishes(frontier=(1, 0), memory=memory))
    assert [place for place, _ in marks_in(again)] == [".input.0.content.0", ".input.1.content.0"]


def test_sizes_of_another_prompt_are_a_broken_promise() -> None:
    with pytest.raises(HostError, match="2 blocks of a prompt of 1"):
        changes({"messages": [ASK]}, "anthropic", Wishes(tokens=[1, 2]))
    small = changes({"messages": [ASK]}, "anthropic", Wishes(tokens=[100], manner=Manner(min_prefix=512)))
    assert small.is_nothing


@given(BODIES, WISHES)
def test_marks_are_never_refused_and_nothing_else_changes(given_body: tuple[Api, Wire], wishes: Wishes) -> None:
    api, body = given_body
    before = json.dumps(body)
    assert check_body(body, api) == []
    made, memory = with_marks(body, api, wishes)
    assert check_body(made, api) == []
    assert bare(made, api) == bare(body, api)
    assert json.dumps(body) == before
    assert len(marks_in(made)) <= 4
    again, remembered = with_marks(made, api, wishes)
    assert again == made
    assert remembered == memory


@given(BODIES, BODIES, WISHES)
def test_marks_that_remember_another_request_are_not_refused_either(
    first: tuple[Api, Wire], then: tuple[Api, Wire], wishes: Wishes
) -> None:
    _, memory = with_marks(first[1], first[0], wishes)
    api, body = then
    made, _ = with_marks(body, api, Wishes(wishes.frontier, memory, wishes.client, wishes.manner))
    assert check_body(made, api) == []


@given(BODIES, WISHES, st.sampled_from([None, 1]))
def test_bytes_get_the_marks_that_the_values_get(
    given_body: tuple[Api, Wire], wishes: Wishes, indent: int | None
) -> None:
    api, body = given_body
    raw = json.dumps(body, indent=indent).encode()
    request = decode(raw, api)
    wanted: Changes = changes(body, api, wishes)
    made = with_marks_in_bytes(request, wanted)
    assert json.loads(made.body()) == with_changes(body, wanted)
    if wanted.is_nothing:
        assert made.body() == raw
    touched = {message for message, _ in wanted.marks}
    assert [item for place, item in enumerate(made.items) if place not in touched] == [
        item for place, item in enumerate(request.items) if place not in touched
    ]


@given(anthropic_bodies())
def test_a_request_that_appends_reads_at_the_mark_where_the_one_before_ended(body: Wire) -> None:
    first, memory = with_marks(body, "anthropic", REPLACED)
    more = {**body, "messages": [*body["messages"], model(text("answer")), user(text("next"))]}
    second, _ = with_marks(more, "anthropic", Wishes(memory=memory, client="replaced"))
    ends = {place for place, _ in marks_in(first)[-1:]}
    assert ends <= {place for place, _ in marks_in(second)}


def test_no_wishes_are_the_clients_marks_and_ours_in_the_free_slots() -> None:
    assert NO_WISHES.client == "kept"
    assert changes({"messages": [ASK]}, "anthropic").marks == {(0, 0): {"type": "ephemeral"}}

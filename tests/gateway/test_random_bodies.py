"""Whatever comes in goes out: the upstream sees each body, and nothing of ours chokes on it."""

import copy
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.upstreams import gateway_to, run, says, stage

from pagein import wiring
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.simulator import SimulatedProvider

TEXT = st.text(max_size=6) | st.just("x" * 9000)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
TYPES = ["text", "tool_use", "tool_result", "thinking", "image", "function_call", "function_call_output", "message", 7]
BLOCK = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES),
        "text": SCALAR,
        "id": st.sampled_from(["a", "b", 1, None]),
        "tool_use_id": st.sampled_from(["a", "b", [], None]),
        "call_id": st.sampled_from(["a", "b"]),
        "name": SCALAR,
        "input": SCALAR | st.dictionaries(st.text(max_size=3), SCALAR, max_size=2),
        "arguments": SCALAR,
        "output": SCALAR,
        "content": SCALAR | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=2),
        "cache_control": SCALAR | st.just({"type": "ephemeral"}),
    },
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "tool", "system", "developer", "", 3]),
        "content": SCALAR | st.lists(BLOCK | SCALAR, max_size=4),
        "tool_calls": SCALAR | st.lists(BLOCK, max_size=2),
        "tool_call_id": SCALAR,
        "type": st.sampled_from(TYPES),
    },
)
BODY = st.fixed_dictionaries(
    {},
    optional={
        "model": SCALAR,
        "messages": SCALAR | st.lists(MESSAGE | SCALAR | BLOCK, max_size=6),
        "input": SCALAR | st.lists(MESSAGE | BLOCK | SCALAR, max_size=6),
        "system": SCALAR | st.lists(BLOCK, max_size=2),
        "tools": SCALAR | st.lists(BLOCK | SCALAR, max_size=3),
        "metadata": SCALAR | st.dictionaries(st.just("user_id"), SCALAR),
        "prompt_cache_key": SCALAR,
        "stream": SCALAR,
        "thinking": SCALAR | st.just({"type": "enabled", "budget_tokens": 3}),
    },
)
PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses"]
PACKED = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(BODY, PACKED), min_size=1, max_size=6), st.sampled_from(PATHS))
def test_any_body_goes_out_and_is_no_failure_of_ours(bodies: list[tuple[object, tuple[str, str]]], path: str) -> None:
    sent = [json.dumps(body, separators=packed).encode() for body, packed in bodies]

    async def go() -> None:
        with tempfile.TemporaryDirectory() as folder:
            curator = EngineCurator(wiring.open(":memory:"), recall=False)
            async with stage(says(b"{}", "Content-Type: application/json"), Path(folder), curator=curator) as on:
                for body in sent:
                    assert await on.post(path, body) == (200, b"{}")
                calls = await on.calls()
                failures = [line for line in on.logged() if line["event"] == "failure"]
                assert [one for one in failures if one["kind"] != "unreadable"] == []
                for got, body, call in zip(on.upstream.got, sent, calls, strict=True):
                    assert call["replaced"] or got.body == body

    run(go())


LONG = "a line of output\n" * 600
PROMPT = 'go SCRIPT:[[{"text": "a"}], [{"text": "b"}], [{"text": "c"}]]'
VALID: dict[str, dict[str, Any]] = {
    "/v1/messages": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 50,
        "system": [{"type": "text", "text": "fix it", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": PROMPT},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"c": 1}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": LONG}]},
                    {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
    },
    "/v1/chat/completions": {
        "model": "gpt-5.1",
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "fix it"},
            {"role": "user", "content": PROMPT},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": LONG},
            {"role": "user", "content": "go on"},
        ],
    },
    "/v1/responses": {
        "model": "gpt-5.1-codex",
        "instructions": "fix it",
        "store": False,
        "tools": [{"type": "function", "name": "shell", "parameters": {"type": "object"}}],
        "input": [
            {"role": "user", "content": PROMPT},
            {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": LONG},
            {"role": "user", "content": [{"type": "input_text", "text": "go on"}]},
        ],
    },
}
ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, "", 0, -1, [], {}, [[]], "x", True, "\ud800", 1 << 70, {"type": "text"}, [{"type": "text", "text": ""}]]
)
CHANGE = st.tuples(st.integers(0, 10_000), st.sampled_from(["drop", "twice", "odd", "odd", "rename"]), ODD)
# What an answer has of its own every time, and what our tools add to the prompt.
OWN = re.compile(
    rb'(?:msg|req|resp|chatcmpl|rs|fc)[-_]?[0-9a-f]{8,}|"created(?:_at)?": ?\d+|"\w*(?:tokens|_details)": ?(?:\d+|{[^}]*})|\d+ tokens'
)


def places(value: object) -> list[tuple[Any, Any]]:
    """All places in a body, each as what holds it and its key."""
    keys: list[Any] = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    return [one for key in keys for one in ((value, key), *places(value[key]))]  # type: ignore[index]


def changed(body: dict[str, Any], changes: list[tuple[int, str, object]]) -> dict[str, Any]:
    """The body with something gone, twice or odd in it, here and there."""
    body = copy.deepcopy(body)
    for where, how, odd in changes:
        found = places(body)
        if not found:
            return body
        holder, key = found[where % len(found)]
        if how == "drop":
            del holder[key]
        elif how == "twice" and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif how == "rename" and isinstance(holder, dict):
            holder["x" + key] = holder.pop(key)
        else:
            holder[key] = copy.deepcopy(odd)
    return body


@pytest.mark.parametrize("path", PATHS)
def test_a_request_gone_wrong_is_answered_as_the_provider_answers_it(path: str) -> None:
    @settings(max_examples=5, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.lists(CHANGE, min_size=1, max_size=3), min_size=1, max_size=4), st.booleans())
    def law(cases: list[list[tuple[int, str, object]]], stream: bool) -> None:  # noqa: FBT001 -- drawn
        bodies = [changed(VALID[path] | ({"stream": True} if stream else {}), changes) for changes in cases]

        async def go() -> None:
            curator = EngineCurator(wiring.open(":memory:"))
            async with gateway_to(provider.url, Path(folder), curator) as on:
                for body in [VALID[path], *bodies, VALID[path]]:
                    raw = json.dumps(body).encode()
                    status, said = await on.post(path, raw, x_api_key="k")
                    alone, told = await on.direct(provider.url + path, raw)
                    assert (status, OWN.sub(b"", said)) == (alone, OWN.sub(b"", told)), body
                await on.calls()
            failures = [line for line in on.logged() if line["event"] in ("failure", "http")]
            assert [one for one in failures if one.get("kind") != "unreadable"] == []

        with tempfile.TemporaryDirectory() as folder, SimulatedProvider() as provider:
            run(go())

    law()


@pytest.mark.parametrize(
    ("path", "odd"),
    [("/v1/responses", {"tools": None}), ("/v1/chat/completions", {"tools": None}), ("/v1/messages", {"tools": []})],
)
def test_a_request_that_offers_no_tools_any_more_is_no_failure(path: str, odd: dict[str, Any], tmp_path: Path) -> None:
    async def go() -> None:
        async with gateway_to(provider.url, tmp_path, EngineCurator(wiring.open(":memory:"))) as on:
            for body in (VALID[path], VALID[path] | odd):
                assert (await on.post(path, json.dumps(body).encode(), x_api_key="k"))[0] == 200
            assert [line for line in on.logged() if line["event"] == "failure"] == []

    with SimulatedProvider() as provider:
        run(go())


def test_a_block_may_have_anything_for_its_type(tmp_path: Path) -> None:
    body = json.dumps(VALID["/v1/messages"]).replace('"type": "text"', '"type": []').encode()

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, curator=EngineCurator(wiring.open(":memory:"))) as on:
            await on.post("/v1/messages", body)
            assert [line for line in on.logged() if line["event"] == "failure" and line["kind"] != "unreadable"] == []

    run(go())


@pytest.mark.parametrize("path", PATHS)
def test_a_model_may_be_called_anything(path: str, tmp_path: Path) -> None:
    body = json.dumps(VALID[path] | {"model": "\ud800"}).encode()

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, curator=EngineCurator(wiring.open(":memory:"))) as on:
            await on.post(path, body)
            assert [line for line in on.logged() if line["event"] == "failure"] == []

    run(go())


@pytest.mark.parametrize("path", PATHS)
def test_a_role_may_be_called_anything(path: str, tmp_path: Path) -> None:
    body = copy.deepcopy(VALID[path])
    body["messages" if "messages" in body else "input"][-1]["role"] = "\ud800"
    usage = b'{"usage":{"input_tokens":3,"output_tokens":1,"prompt_tokens":3,"completion_tokens":1},"type":"message"}'

    async def go() -> None:
        answer = says(usage, "Content-Type: application/json")
        async with stage(answer, tmp_path, curator=EngineCurator(wiring.open(":memory:"))) as on:
            await on.post(path, json.dumps(body).encode())
            await on.calls()
            assert [line for line in on.logged() if line["event"] == "failure" and line["kind"] != "unreadable"] == []

    run(go())


def test_an_input_that_is_a_bare_string_is_answered_where_tools_are_offered(tmp_path: Path) -> None:
    async def go() -> None:
        async with gateway_to(provider.url, tmp_path, EngineCurator(wiring.open(":memory:"))) as on:
            body = json.dumps(VALID["/v1/responses"] | {"input": PROMPT}).encode()
            assert (await on.post("/v1/responses", body, x_api_key="k"))[0] == 200

    with SimulatedProvider() as provider:
        run(go())

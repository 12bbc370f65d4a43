"""Whatever comes in goes out: the upstream sees each body, and nothing of ours chokes on it."""

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.upstreams import run, says, stage

from pagein import wiring
from pagein.hosts.gateway.engine import EngineCurator

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
            curator = EngineCurator(wiring.open(wiring.MEMORY), recall=False)
            async with stage(says(b"{}", "Content-Type: application/json"), Path(folder), curator=curator) as on:
                for body in sent:
                    assert await on.post(path, body) == (200, b"{}")
                calls = await on.calls()
                failures = [line for line in on.logged() if line["event"] == "failure"]
                assert [one for one in failures if one["kind"] != "unreadable"] == []
                for got, body, call in zip(on.upstream.got, sent, calls, strict=True):
                    assert call["replaced"] or got.body == body

    run(go())

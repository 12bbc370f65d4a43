import asyncio
import json

import aiohttp
import pytest
from tests.simulator.raw_clients import APIS, MODELS, Heard, answered, ask, begun, job, talk

from pagein.providers.validity import Api
from pagein.simulator import SimulatedProvider

TURN = [
    {"thinking": "what is in it?"},
    {"text": "I shall read both of the files."},
    {"tool": "read", "args": {"path": "a.txt", "z": 1, "a": 2}},
    {"tool": "edit", "args": {"path": "b.txt", "text": "a line that takes several events"}},
]
CALLS = [{"path": "a.txt", "z": 1, "a": 2}, {"path": "b.txt", "text": "a line that takes several events"}]


def heard(api: Api, turn: object, **more: object) -> Heard:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> Heard:
        return await ask(session, provider.url, api, begun(api, "go", **more))

    return talk([turn], converse)


def shape(names: list[str]) -> list[str]:
    """The names, those that repeat named once."""
    return [name for place, name in enumerate(names) if not place or names[place - 1] != name]


def test_a_stream_of_messages_has_the_events_in_their_order() -> None:
    told = heard("anthropic", TURN, stream=True)
    assert told.names == [event["type"] for event in told.events]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert shape(told.names) == ["message_start", "ping", *block * 4, "message_delta", "message_stop"]
    start, end = told.events[0]["message"], told.events[-2]
    assert (start["content"], start["stop_reason"], start["role"]) == ([], None, "assistant")
    assert end["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert end["usage"]["output_tokens"] > 1
    assert told.headers["Content-Type"].startswith("text/event-stream")


def test_a_stream_of_messages_signs_thinking_at_its_end_and_begins_calls_without_input() -> None:
    told = heard("anthropic", TURN, stream=True)
    starts = [event["content_block"] for event in told.events if event["type"] == "content_block_start"]
    assert [start["type"] for start in starts] == ["thinking", "text", "tool_use", "tool_use"]
    assert (starts[0]["thinking"], starts[0]["signature"]) == ("", "")
    assert [start["input"] for start in starts[2:]] == [{}, {}]
    thinking = [event["delta"]["type"] for event in told.events if event.get("index") == 0 and "delta" in event]
    assert thinking == ["thinking_delta", "signature_delta"]


def test_chunks_of_chat_have_their_order_and_end_with_done() -> None:
    told = heard("openai_chat", TURN, stream=True, stream_options={"include_usage": True})
    assert set(told.names) == {""}
    assert told.events[-1] == {"type": "[DONE]"}
    chunks = told.events[:-1]
    assert {(chunk["object"], chunk["id"]) for chunk in chunks} == {("chat.completion.chunk", chunks[0]["id"])}
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] > 0
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    calls = [call for chunk in chunks[:-1] for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert [(call["index"], call["function"]["name"]) for call in calls if "id" in call] == [(0, "read"), (1, "edit")]


def test_a_stream_of_chat_reports_usage_only_where_that_is_asked_for() -> None:
    assert not any("usage" in event for event in heard("openai_chat", TURN, stream=True).events)


def test_a_stream_of_responses_has_the_events_in_their_order() -> None:
    told = heard("openai_responses", TURN, stream=True)
    assert told.names == [event["type"] for event in told.events]
    assert [event["sequence_number"] for event in told.events] == list(range(len(told.events)))
    summary = [f"response.reasoning_summary_{what}" for what in ("part.added", "text.delta", "text.done", "part.done")]
    part = ["response.content_part.added", "response.output_text.delta"]
    done = ["response.output_text.done", "response.content_part.done"]
    call = ["response.function_call_arguments.delta", "response.function_call_arguments.done"]
    added, over = "response.output_item.added", "response.output_item.done"
    assert shape(told.names) == [
        *("response.created", "response.in_progress"),
        *(added, *summary, over),
        *(added, *part, *done, over),
        *(added, *call, over) * 2,
        "response.completed",
    ]
    full = told.events[-1]["response"]
    assert [item["type"] for item in full["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert full["output"] == [event["item"] for event in told.events if event["type"] == over]


@pytest.mark.parametrize("api", APIS)
def test_a_stream_puts_together_what_comes_in_one_piece(api: Api) -> None:
    whole, streamed = (answered(api, heard(api, TURN, stream=stream)) for stream in (False, True))
    assert whole == streamed


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_parallel_calls_have_arguments_and_ids_of_their_own(api: Api, *, stream: bool) -> None:
    answer = answered(api, heard(api, TURN, stream=stream))
    if api == "anthropic":
        calls = [(block["id"], block["input"]) for block in answer[0]["content"] if block["type"] == "tool_use"]
    elif api == "openai_chat":
        calls = [(call["id"], json.loads(call["function"]["arguments"])) for call in answer[0]["tool_calls"]]
    else:
        found = [item for item in answer if item["type"] == "function_call"]
        calls = [(item["call_id"], json.loads(item["arguments"])) for item in found]
    assert [args for _, args in calls] == CALLS
    assert list(calls[0][1]) == ["path", "z", "a"]  # the order of keys is the script's
    assert len({name for name, _ in calls}) == 2


@pytest.mark.parametrize(
    ("api", "stop"), [("anthropic", "max_tokens"), ("openai_chat", "length"), ("openai_responses", "incomplete")]
)
def test_a_turn_may_say_why_it_stopped(api: Api, stop: str) -> None:
    body = heard(api, [{"text": "cut of"}, {"stop": "max_tokens"}]).body
    told = {
        "anthropic": lambda: body["stop_reason"],
        "openai_chat": lambda: body["choices"][0]["finish_reason"],
        "openai_responses": lambda: body["status"],
    }
    assert told[api]() == stop


def test_redacted_thinking_never_shows_its_words() -> None:
    told = heard("anthropic", [{"redacted": "nobody reads this"}, {"text": "x"}], stream=True)
    assert "nobody" not in told.raw
    assert answered("anthropic", told)[0]["content"][0]["type"] == "redacted_thinking"


def test_tools_in_namespaces_and_of_free_text_are_called_in_their_own_form() -> None:
    turn = [
        {"tool": "peek", "args": {"id": "x"}, "ns": "mcp__pagein"},
        {"tool": "apply_patch", "args": "*** Begin Patch\n*** End Patch"},
    ]
    first, second = heard("openai_responses", turn).body["output"]
    assert (first["type"], first["name"], first["namespace"]) == ("function_call", "peek", "mcp__pagein")
    assert (second["type"], second["input"]) == ("custom_tool_call", "*** Begin Patch\n*** End Patch")


def test_a_slow_stream_comes_event_by_event() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, float]:
        clock = asyncio.get_running_loop().time
        body = begun("anthropic", "go", stream=True)
        async with session.post(provider.url + "/v1/messages", json=body) as answer:
            times = [clock() async for _ in answer.content.iter_any()]
        return len(times), times[-1] - times[0]

    pieces, took = talk([[{"text": "a" * 100}, {"delay": 0.02}]], converse, chunk=10)
    assert pieces >= 10  # 16 events; on a busy machine some may come together
    assert took >= 0.15


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_a_job_of_many_turns_ends_with_its_last_words(api: Api, *, stream: bool) -> None:
    script = [
        [{"text": f"step {step}"}, {"tool": "read", "args": {"path": f"{step}.py"}}, {"tool": "edit", "args": {}}]
        for step in range(4)
    ]

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[str]:
        prompt = f"do it. SCRIPT:{json.dumps([*script, [{'text': 'done'}]])} thanks"
        _, words = await job(session, provider.url, api, prompt, stream=stream)
        assert [record.turn for record in provider.requests] == [0, 1, 2, 3, 4]
        assert {record.model for record in provider.requests} == {MODELS[api]}
        return words

    assert talk(None, converse) == ["step 0", "step 1", "step 2", "step 3", "done"]

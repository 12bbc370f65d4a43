"""Child models at a client's upstream, over real sockets, in each wire format, with the client's own key."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from pagein.errors import (
    BrokenConnection,
    ChildModelError,
    OverloadedProvider,
    RefusedKey,
    RefusedRequest,
    UnknownModel,
    UnsupportedCall,
)
from pagein.gateway.stream.child_wire import asked_wait, child_answer, http_error
from pagein.gateway.stream.upstream_models import UpstreamModels
from pagein.model.messages import Message, Text, ToolResult
from pagein.ports import ChildAnswer, ChildRequest, ChildTool, PrefixMark
from pagein.providers.validity import Api
from pagein.providers.wire.formats import FORMATS, format_named
from pagein.simulator import SimulatedProvider

PEEK = ChildTool("peek", "Shows an object.", {"type": "object", "properties": {"id": {"type": "string"}}})
ASK = ChildRequest("", "You are a child.", (Message("user", (Text("content"), Text("how many?"))),), (PEEK,), 500)
MODELS = {"anthropic": "claude-opus-5-5", "openai": "gpt-5.2"}
APIS = [one.name for one in FORMATS]


async def call(provider: SimulatedProvider, api: Api, *requests: ChildRequest) -> list[ChildAnswer]:
    form = format_named(api)
    async with ClientSession() as http:

        def send(body: bytes, model: str) -> AbstractAsyncContextManager[ClientResponse]:
            headers = {"content-type": "application/json", "x-api-key": "own-key", "authorization": "Bearer own-key"}
            return http.post(provider.url + form.http.path.format(model=model), data=body, headers=headers)

        models = UpstreamModels(send, api, MODELS.get(form.http.vendor, "gemini-3-pro"))
        return [await models.complete(one) for one in requests]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_child_calls_a_tool_and_goes_on_in_each_wire_format(api: Api, *, stream: bool) -> None:
    script = [[{"thinking": "hm"}, {"text": "looking"}, {"tool": "peek", "args": {"id": "pg-1"}}], [{"text": "four"}]]
    with SimulatedProvider(script) as provider:
        (first,) = asyncio.run(call(provider, api, replace(ASK, stream=stream)))
        results = tuple(ToolResult(one.id, "lines", one.name) for one in first.tool_calls)
        goes_on = replace(
            ASK, messages=(*ASK.messages, Message("assistant", first.blocks), Message("user", results)), stream=stream
        )
        (second,) = asyncio.run(call(provider, api, goes_on))
        assert [(one.status, one.refused) for one in provider.requests] == [(200, None)] * 2
        bill = provider.bill().usage
        assert "You are a child." in str(provider.requests[0].body)
    assert (first.text, first.stop) == ("looking", "tools")
    assert [(one.name, one.arguments.replace(" ", "")) for one in first.tool_calls] == [("peek", '{"id":"pg-1"}')]
    assert (second.text, second.stop) == ("four", "end")
    if first.usage is None or second.usage is None:  # this format reports no usage in a stream unless asked to
        assert stream
    else:
        assert first.usage + second.usage == bill


def test_a_marked_prefix_is_written_once_and_read_by_the_next_child() -> None:
    shared = Text("line of the target\n" * 2000)
    first, second = (
        replace(ASK, messages=(Message("user", (shared, Text(question))),), marks=(PrefixMark(0), PrefixMark(1)))
        for question in ("how many?", "which?")
    )
    with SimulatedProvider([[{"text": "4"}]]) as provider:
        answers = asyncio.run(call(provider, APIS[0], first, second))
    used = [one.usage for one in answers]
    assert used[0] is not None
    assert used[1] is not None
    assert used[0].written == used[1].read > 10_000


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"error": 401}, RefusedKey),
        ({"error": 401, "message": "Incorrect API key: own-key"}, RefusedKey),
        ({"error": 400, "message": "own-key is no key"}, RefusedRequest),
        ({"error": 404}, UnknownModel),
        ({"error": 429, "retry_after": 7}, OverloadedProvider),
        ({"error": 529}, OverloadedProvider),
        ({"error": 500}, BrokenConnection),
        ({"error": 400}, RefusedRequest),
        ({"error": 400, "message": "Stream must be set to true"}, UnsupportedCall),
        ({"break": None}, BrokenConnection),
        ({"break": 3}, BrokenConnection),
        ({"error": 529, "after": 3}, BrokenConnection),
    ],
)
def test_each_failure_says_who_must_act(item: dict[str, Any], error: type[ChildModelError]) -> None:
    with SimulatedProvider([[{"text": "words " * 20}, {**item, "times": 0}]]) as provider, pytest.raises(error) as told:
        asyncio.run(call(provider, APIS[0], replace(ASK, stream="after" in item or item == {"break": 3})))
    assert type(told.value) is error
    assert "own-key" not in str(told.value)
    if isinstance(told.value, OverloadedProvider):
        assert told.value.retry_after == item.get("retry_after")


def test_a_body_that_is_no_answer_is_a_broken_connection_and_no_key_is_repeated() -> None:
    with pytest.raises(BrokenConnection):
        child_answer(b"<html>", APIS[0], "a/b", ())
    key = "sk-ant-" + "api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cF" * 2
    assert key not in str(http_error(400, b'{"error": {"message": "bad key ' + key.encode() + b'"}}', None, "a/b"))


def test_only_models_of_the_upstream_are_known() -> None:
    models = UpstreamModels(lambda *_: pytest.fail("not called"), APIS[0], "claude-opus-5-5")
    assert models.default_model == "anthropic/claude-opus-5-5"
    assert models.knows("claude-haiku-4-5")
    assert models.knows("anthropic/claude-haiku-4-5")
    assert not models.knows("openai/gpt-5.2")
    assert not models.knows("")


@pytest.mark.parametrize("usage", [b"", b',"usage":{}', b',"usage":{"input_tokens":0,"output_tokens":0}'])
def test_an_answer_without_tokens_has_no_usage_and_so_is_not_free(usage: bytes) -> None:
    body = (
        b'{"type":"message","role":"assistant","content":[{"type":"text","text":"4"}],"stop_reason":"end_turn"'
        + usage
        + b"}"
    )
    answer = child_answer(body, APIS[0], "a/b", ())
    assert (answer.text, answer.usage) == ("4", None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "2", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Mon, 23 Nov 2026 10:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 23 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_the_wait_that_a_refusal_asks_for_is_a_number_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers, datetime(2026, 11, 23, 10, tzinfo=UTC).timestamp()) == seconds

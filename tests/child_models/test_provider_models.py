"""Child models of each provider over real sockets, against the simulated provider; and every way to fail."""

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from pagein.errors import (
    BrokenConnection,
    ChildModelError,
    OverloadedProvider,
    RefusedKey,
    RefusedRequest,
    UnknownModel,
    UnsupportedCall,
)
from pagein.model.messages import Message, Text, ToolResult
from pagein.policy.delegation.child_replies import REPLY_SCHEMA, parse_reply
from pagein.ports import ChildAnswer, ChildRequest, ChildTool, PrefixMark
from pagein.providers.vendors import VENDORS
from pagein.simulator import SimulatedProvider

pytest.importorskip("pydantic_ai")
from pagein.child_models.provider_errors import child_error
from pagein.child_models.provider_models import ProviderModels

PEEK = ChildTool("peek", "Shows an object.", {"type": "object", "properties": {"id": {"type": "string"}}})
REPLY = '{"answer": "4", "confidence": "high", "evidence": ["q"]}'
MODELS = ("anthropic/claude-opus-5-5", "openai/gpt-5.2", f"{VENDORS[2].name}/gemini-3-pro")
ASK = ChildRequest(
    "", "You are a child.", (Message("user", (Text("content"), Text("how many?"))),), (PEEK,), 500, REPLY_SCHEMA
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC", "OPENAI", VENDORS[2].name.upper()):
        monkeypatch.setenv(f"{name}_API_KEY", "any-key")


def models(provider: SimulatedProvider, default: str = MODELS[0]) -> ProviderModels:
    return ProviderModels(default, {one.name: provider.url for one in VENDORS})


def ask(provider: SimulatedProvider, *requests: ChildRequest, model: str = MODELS[0]) -> list[ChildAnswer]:
    async def run() -> list[ChildAnswer]:
        connection = models(provider, model)
        try:
            return [await connection.complete(request) for request in requests]
        finally:
            await connection.close()

    return asyncio.run(run())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_child_calls_a_tool_and_answers_in_the_form_of_the_schema(model: str, *, stream: bool) -> None:
    script = [[{"thinking": "hm"}, {"text": "looking"}, {"tool": "peek", "args": {"id": "pg-1"}}], [{"text": REPLY}]]
    with SimulatedProvider(script) as provider:
        (first,) = ask(provider, replace(ASK, stream=stream), model=model)
        results = tuple(ToolResult(call.id, "lines", call.name) for call in first.tool_calls)
        goes_on = (*ASK.messages, Message("assistant", first.blocks), Message("user", results))
        (second,) = ask(provider, replace(ASK, messages=goes_on, stream=stream), model=model)
        assert [(one.status, one.refused) for one in provider.requests] == [(200, None)] * 2
        bodies = [str(one.body) for one in provider.requests]
        bill = provider.bill().usage
    assert (first.text, first.stop, second.stop) == ("looking", "tools", "end")
    assert [(call.name, call.arguments.replace(" ", "")) for call in first.tool_calls] == [("peek", '{"id":"pg-1"}')]
    assert parse_reply(second.text).evidence == ("q",)
    assert all("You are a child." in body and "how many?" in body for body in bodies)
    assert "'confidence'" in bodies[0]  # the schema is part of the request
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage + second.usage == bill
    assert second.model == model.partition("/")[2]


@pytest.mark.parametrize("model", MODELS)
def test_half_a_surrogate_pair_is_sent_as_a_replacement_character(model: str) -> None:
    said = Message("assistant", (Text("half \ud83d"),))
    request = replace(
        ASK, system="half \ud83d", messages=(ASK.messages[0], said, Message("user", (Text("\ude00, \U0001f600"),)))
    )
    with SimulatedProvider([[{"text": "first"}], [{"text": REPLY}]]) as provider:
        (answer,) = ask(provider, request, model=model)
        sent = str(provider.requests[0].body)
    assert answer.text == REPLY
    assert sent.count("half \ufffd") == 2
    assert "\ufffd, \U0001f600" in sent


def test_a_model_without_structured_output_beside_tools_is_asked_by_the_prompt_alone() -> None:
    with SimulatedProvider([[{"text": REPLY}]]) as provider:
        (answer,) = ask(provider, ASK, model=f"{VENDORS[2].name}/gemini-2.5-flash")
        (record,) = provider.requests
    assert parse_reply(answer.text).answer == "4"
    assert "responseJsonSchema" not in str(record.body)


@pytest.mark.parametrize("model", ["anthropic/claude-opus-5-5", "openai/gpt-5.6", "openai-responses/gpt-5.6"])
def test_marks_stand_where_the_shared_prefix_ends_and_are_read_by_the_next_child(model: str) -> None:
    shared = Text("line of the target\n" * 2000)
    first, second = (
        replace(ASK, messages=(Message("user", (shared, Text(question))),), marks=(PrefixMark(0), PrefixMark(1)))
        for question in ("how many?", "which?")
    )
    with SimulatedProvider([[{"text": REPLY}]]) as provider:
        answers = ask(provider, first, second, model=model)
        assert [one.refused for one in provider.requests] == [None, None]
    used = [one.usage for one in answers]
    assert used[0] is not None
    assert used[1] is not None
    assert used[0].written == used[1].read > 9_000
    assert used[1].written == 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("item", "error", "retry_after"),
    [
        ({"error": 401}, RefusedKey, None),
        ({"error": 403}, RefusedKey, None),
        ({"error": 404}, UnknownModel, None),
        ({"error": 429, "retry_after": 7}, OverloadedProvider, 7.0),
        ({"error": 529}, OverloadedProvider, None),
        ({"error": 503}, OverloadedProvider, None),
        ({"error": 500}, BrokenConnection, None),
        ({"error": 400}, RefusedRequest, None),
        ({"error": 400, "message": "Stream must be set to true"}, UnsupportedCall, None),
        ({"break": None}, BrokenConnection, None),
    ],
)
def test_each_failure_says_who_must_act(
    model: str, item: dict[str, Any], error: type[ChildModelError], retry_after: float | None
) -> None:
    with SimulatedProvider([[{**item, "times": 0}]]) as provider:
        with pytest.raises(error) as told:
            ask(provider, ASK, model=model)
        assert len(provider.requests) == 1  # never retried below the caller's limits
    assert type(told.value) is error
    assert model in str(told.value)
    assert getattr(told.value, "retry_after", None) == retry_after


NO_FORM = [(model, body) for model in MODELS[:2] for body in (b"{broken", b"[]", b'{"content": null}', b"{}")]


@pytest.mark.parametrize(("model", "body"), [*NO_FORM, (MODELS[2], b"{broken")])
def test_an_answer_in_no_form_of_the_provider_is_one_that_broke_off(model: str, body: bytes) -> None:
    """The provider may bill it, so it is no refusal, which costs nothing."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        connection = ProviderModels(model, {one.name: address for one in VENDORS})
        async with server:
            try:
                await connection.complete(ASK)
            finally:
                await connection.close()

    with pytest.raises(BrokenConnection, match="could not be read") as told:
        asyncio.run(work())
    assert told.value.was_sent


@pytest.mark.parametrize("item", [{"break": 3}, {"error": 529, "after": 3}])
def test_a_stream_that_ends_early_is_no_answer(item: dict[str, Any]) -> None:
    script = [[{"text": "a long answer " * 20}, {**item, "times": 0}]]
    with SimulatedProvider(script) as provider, pytest.raises((BrokenConnection, OverloadedProvider)):
        ask(provider, replace(ASK, stream=True))


def test_an_empty_answer_is_an_answer_without_blocks() -> None:
    with SimulatedProvider([[]]) as provider:
        (answer,) = ask(provider, ASK)
    assert answer.text == ""
    assert answer.tool_calls == ()


def test_a_cancelled_call_of_a_slow_child_leaves_no_task_and_no_connection() -> None:
    async def run(provider: SimulatedProvider) -> tuple[float, int]:
        connection = models(provider)
        calls = [asyncio.ensure_future(connection.complete(ASK)) for _ in range(3)]
        while len(provider.requests) < len(calls):  # noqa: ASYNC110  the provider runs in a thread of its own
            await asyncio.sleep(0.01)
        began = time.perf_counter()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        took = time.perf_counter() - began
        await connection.close()
        return took, len(asyncio.all_tasks())

    with SimulatedProvider([[{"wait": 30}, {"text": REPLY}]]) as provider:
        took, tasks = asyncio.run(run(provider))
    assert took < 2
    assert tasks == 1


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with SimulatedProvider() as provider, pytest.raises(RefusedKey, match="ANTHROPIC_API_KEY"):
        ask(provider, ASK)


@pytest.mark.parametrize("model", ["", "claude", "nobody/model", "anthropic/"])
def test_a_name_that_cannot_be_called_is_known_before(model: str) -> None:
    with SimulatedProvider() as provider:
        assert not models(provider).knows(model)
        assert models(provider).knows(MODELS[1])
        with pytest.raises(UnknownModel, match="provider/model" if "nobody" not in model else "nobody"):
            ask(provider, ASK, model=model)


def test_a_key_in_a_refusal_is_not_told_again() -> None:
    key = "sk-ant-" + "api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cF" * 2
    told = child_error(NotImplementedError(f"bad key {key}"), "a/b")
    assert told is not None
    assert key not in str(told)


@pytest.mark.parametrize("model", MODELS)
def test_the_key_of_the_call_is_not_told_again_whatever_its_shape(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = f"{model.partition('/')[0].partition('-')[0].upper()}_API_KEY"
    assert variable in os.environ
    monkeypatch.setenv(variable, "sk-1234")
    refusal = {"error": 401, "message": "Incorrect API key provided: sk-1234. See our page.", "times": 0}
    with SimulatedProvider([[{"text": "x"}, refusal]]) as provider, pytest.raises(RefusedKey) as told:
        ask(provider, ASK, model=model)
    assert "sk-1234" not in str(told.value)
    assert "Incorrect API key provided: [key]. See our page." in str(told.value)


def test_the_library_is_loaded_with_the_first_call_only() -> None:
    code = "import sys, pagein.child_models.provider_models as m; m.ProviderModels('a/b'); print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("counts", [(-5, -7), (0, 0), (10, -1)])
def test_a_usage_that_cannot_be_counts_as_none(counts: tuple[int, int]) -> None:
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from pagein.child_models.provider_messages import child_answer

    usage = RequestUsage(input_tokens=counts[0], output_tokens=counts[1])
    told = ModelResponse([TextPart("4")], usage=usage)
    assert child_answer(told, "a/b").usage is None

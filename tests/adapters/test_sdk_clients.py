"""Real SDKs whose model calls go through pagein, against the simulated provider."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import anthropic
import httpx
import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.errors import BadInput
from pagein.policy.eviction.residency import Residency
from pagein.simulator import SimulatedProvider

ClientT = TypeVar("ClientT")
MODEL = "claude-sonnet-5-5"
GPT = "gpt-5.1"
# previews whatever they cost: what is tested here is the way of a call
PREVIEWED = Settings(Residency(economics=None, batch_tokens=40_000))
OUTPUT = "".join(f"line {number} of what make said at length\n" for number in range(400))
BASH: Any = {"name": "Bash", "description": "run", "input_schema": {"type": "object", "properties": {"command": {}}}}
SHELL: Any = {"type": "function", "function": {"name": "Bash", "parameters": BASH["input_schema"]}}
ACTION: Any = {"type": "function", "name": "Bash", "parameters": BASH["input_schema"], "strict": False}
CALL = {"tool": "Bash", "args": {"command": "make all"}}
CAPTURE = {"capture": {"id": 'peek\\("(pg-[0-9a-f-]+)"\\)'}}
PEEK = {"tool": "peek", "args": {"id": "{{id}}", "line": 199, "lines": 2}}
SAID = ["Looking.", "It", "is", "line", "198."]
SCRIPT: list[Any] = [[CALL], [CAPTURE, {"text": "Looking. "}, PEEK], [{"text": "It is line 198."}]]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=PREVIEWED) as made:
        yield made


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider(SCRIPT) as made:
        yield made


@pytest.fixture(autouse=True)
def closed_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what a test wraps: an SDK's client closes its connections no sooner than the collector finds it."""
    made: list[Any] = []
    wrap = pagein.wrap

    def kept(
        client: ClientT, *, session: str | None = None, engine: Engine | None = None, recall: bool = True
    ) -> ClientT:
        wrapped = wrap(client, session=session, engine=engine, recall=recall)
        made.append(wrapped)
        return wrapped

    monkeypatch.setattr(pagein, "wrap", kept, raising=False)
    yield
    for one in made:
        if isinstance(one, anthropic.Anthropic | openai.OpenAI):
            one.close()


def claude(provider: SimulatedProvider) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0)


def gpt(provider: SimulatedProvider) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=provider.url + "/v1", max_retries=0)


def after_call(answer: anthropic.types.Message) -> list[Any]:
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": OUTPUT}
    return [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_recalls_inside_one_answer(engine: Engine, provider: SimulatedProvider, *, stream: bool) -> None:
    client = pagein.wrap(claude(provider), session="build", engine=engine)
    messages: list[Any] = [{"role": "user", "content": "build it"}]

    def ask() -> anthropic.types.Message:
        if not stream:
            return client.messages.create(model=MODEL, max_tokens=4000, tools=[BASH], messages=messages)
        with client.messages.stream(model=MODEL, max_tokens=4000, tools=[BASH], messages=messages) as answer:
            return answer.get_final_message()

    messages += after_call(ask())
    said = ask()
    text = "".join(block.text for block in said.content if block.type == "text")
    assert ([block.type for block in said.content], text.split()) == (
        ["text", "text"],
        SAID,
    )
    _, second, third = [one.body for one in provider.requests]
    assert OUTPUT not in json.dumps(second)
    assert "line 198 of what make said at length" in json.dumps(third["messages"][-1])
    # the program sends back one message where two turns were: the provider sees both, and its cache holds
    messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": "thanks"}]
    ask()
    last = provider.requests[-1].body["messages"]
    assert [one["role"] for one in last] == ["user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert not provider.bill().refused
    assert engine.session("build").hand.window()


def test_the_bytes_are_those_of_the_engine(tmp_path: Path) -> None:
    """The same requests by a client without pagein, handed to an engine, give the bytes that the wrapped client sent."""

    def talk(provider: SimulatedProvider, engine: Engine | None) -> list[bytes]:
        sent: list[bytes] = []
        hook = httpx2.Client(event_hooks={"request": [lambda request: sent.append(request.content)]})
        plain = anthropic.Anthropic(api_key="k", base_url=provider.url, http_client=hook)
        with plain if engine is None else pagein.wrap(plain, session="s", engine=engine, recall=False) as client:
            messages: list[Any] = [{"role": "user", "content": "build it"}]
            messages += after_call(client.messages.create(model=MODEL, max_tokens=99, tools=[BASH], messages=messages))
            client.messages.create(model=MODEL, max_tokens=99, tools=[BASH], messages=messages)
        return sent

    with SimulatedProvider([[CALL], [{"text": "done"}]]) as provider:
        plain = talk(provider, None)
    with (
        SimulatedProvider([[CALL], [{"text": "done"}]]) as provider,
        pagein.open(tmp_path / "a.pagein", workspace=tmp_path, settings=PREVIEWED) as engine,
    ):
        wrapped = talk(provider, engine)
    with pagein.open(tmp_path / "b.pagein", workspace=tmp_path, settings=PREVIEWED) as engine:
        prepared = [engine.prepare(body, "anthropic", at=1.0, hint="s", offers=(), lasting=0.0).body for body in plain]
    names = re.compile(rb"pg-[0-9a-f]{8}-[0-9a-f]{8}")  # of the objects, made anew in each store
    assert [names.sub(b"pg", one) for one in wrapped] == [names.sub(b"pg", one) for one in prepared]
    assert OUTPUT in json.loads(plain[1])["messages"][2]["content"][0]["content"]
    assert len(wrapped[1]) < len(plain[1]) / 2


@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions(engine: Engine, provider: SimulatedProvider, *, stream: bool) -> None:
    client = pagein.wrap(gpt(provider), session="chat", engine=engine)
    messages: list[Any] = [{"role": "user", "content": "build it"}]

    def ask() -> ChatCompletionMessage:
        if not stream:
            return client.chat.completions.create(model=GPT, messages=messages, tools=[SHELL]).choices[0].message
        with client.chat.completions.stream(model=GPT, messages=messages, tools=[SHELL]) as answer:
            return answer.get_final_completion().choices[0].message

    (call,) = ask().tool_calls or []
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    told = {"id": call.id, "type": "function", "function": {"name": "Bash", "arguments": call.function.arguments}}
    messages += [
        {"role": "assistant", "tool_calls": [told]},
        {"role": "tool", "tool_call_id": call.id, "content": OUTPUT},
    ]
    answer = ask()
    assert ((answer.content or "").split(), answer.tool_calls or []) == (SAID, [])
    assert OUTPUT not in json.dumps(provider.requests[1].body)


def test_responses(engine: Engine, provider: SimulatedProvider) -> None:
    client = pagein.wrap(gpt(provider), session="responses", engine=engine)
    items: list[Any] = [{"role": "user", "content": "build it"}]
    first = client.responses.create(model=GPT, input=items, tools=[ACTION], store=False)
    (call,) = [one for one in first.output if one.type == "function_call"]
    items += [*first.output, {"type": "function_call_output", "call_id": call.call_id, "output": OUTPUT}]
    with client.responses.stream(model=GPT, input=items, tools=[ACTION], store=False) as answer:
        said = answer.get_final_response()
    assert said.output_text.split() == SAID
    assert OUTPUT not in json.dumps(provider.requests[1].body)


def test_coroutines(engine: Engine, provider: SimulatedProvider) -> None:
    async def talk() -> tuple[str, str]:
        plain = anthropic.AsyncAnthropic(api_key="k", base_url=provider.url, max_retries=0)
        async with pagein.wrap(plain, session="waiting", engine=engine) as client:
            messages: list[Any] = [{"role": "user", "content": "build it"}]
            first = await client.messages.create(model=MODEL, max_tokens=4000, tools=[BASH], messages=messages)
            messages += after_call(first)
            async with client.messages.stream(model=MODEL, max_tokens=4000, tools=[BASH], messages=messages) as answer:
                streamed = "".join([text async for text in answer.text_stream])
            whole = await client.messages.create(model=MODEL, max_tokens=4000, tools=[BASH], messages=messages)
            return streamed, "".join(block.text for block in whole.content if block.type == "text")

    streamed, whole = asyncio.run(talk())
    assert streamed.split() == SAID
    assert whole


def test_an_http_client_serves_a_program_without_an_sdk(engine: Engine) -> None:
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    for library in (httpx, httpx2):
        with (
            SimulatedProvider([[{"text": "hello"}]]) as provider,
            pagein.wrap(library.Client(), engine=engine) as client,
        ):
            answer = client.post(provider.url + "/v1/messages", json=body, headers={"x-api-key": "k"})
            assert answer.json()["content"][0]["text"] == "hello"
            assert client.get(provider.url + "/v1/models").status_code == 200


def test_errors_of_the_provider_come_through(engine: Engine) -> None:
    failing = [[{"error": 429, "retry_after": 7, "times": 1}], [{"text": "now"}], [{"break": 3}]]
    with SimulatedProvider(failing) as provider:
        client = pagein.wrap(claude(provider), engine=engine)
        messages: list[Any] = [{"role": "user", "content": "hi"}]
        with pytest.raises(anthropic.RateLimitError) as told:
            client.messages.create(model=MODEL, max_tokens=9, messages=messages)
        assert told.value.response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": []}])
        closed = pagein.wrap(
            anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0), engine=engine
        )
        with pytest.raises(anthropic.APIConnectionError):
            closed.messages.create(model=MODEL, max_tokens=9, messages=messages)


def test_a_stream_that_breaks_off_breaks_off(engine: Engine) -> None:
    with SimulatedProvider([[{"text": "word " * 50}, {"break": 4}]]) as provider:
        client = pagein.wrap(claude(provider), session="broken", engine=engine)
        with (
            pytest.raises((httpx2.HTTPError, anthropic.APIError)),
            client.messages.stream(model=MODEL, max_tokens=99, messages=[{"role": "user", "content": "hi"}]) as answer,
        ):
            answer.get_final_message()


def test_a_program_may_leave_a_stream(engine: Engine) -> None:
    with SimulatedProvider([[{"text": "word " * 500}], [{"text": "more"}]]) as provider:
        client = pagein.wrap(claude(provider), session="left", engine=engine)
        with client.messages.stream(model=MODEL, max_tokens=99, messages=[{"role": "user", "content": "hi"}]) as answer:
            next(iter(answer.text_stream))
        again = client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "hi again"}])
        assert again.content


def test_a_failing_engine_fails_no_call(
    engine: Engine, provider: SimulatedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    client = pagein.wrap(claude(provider), session="s", engine=engine)
    for name in ("prepare", "observe"):
        monkeypatch.setattr(Engine, name, fail)
    said = client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert said.content
    assert provider.requests[0].body["messages"] == [{"role": "user", "content": "hi"}]


def test_off_means_untouched(engine: Engine, provider: SimulatedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEIN_OFF", "1")
    client = pagein.wrap(claude(provider), session="s", engine=engine)
    client.messages.create(model=MODEL, max_tokens=9, tools=[BASH], messages=[{"role": "user", "content": "hi"}])
    assert provider.requests[0].body["tools"] == [BASH]


def test_other_objects_are_no_clients(engine: Engine, provider: SimulatedProvider) -> None:
    with pytest.raises(BadInput, match="anthropic or openai"):
        pagein.wrap(object(), engine=engine)
    wrapped = pagein.wrap(claude(provider), engine=engine)
    with pytest.raises(BadInput, match="already"):
        pagein.wrap(wrapped, engine=engine)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/v1/messages", True),
        ("/anthropic/v1/messages", True),
        ("/openai/deployments/x/chat/completions?api-version=2026-01-01", True),
        ("/api/v1/responses", True),
        ("/v1/messages/count_tokens", False),
        ("/v1/threads/t_1/messages", False),
        ("/v1/messages/batches", False),
        ("/v1/files", False),
    ],
)
def test_model_calls_are_told_by_their_path(engine: Engine, path: str, *, wanted: bool) -> None:
    from pagein.adapters.model_calls import SdkModelCalls

    calls = SdkModelCalls(engine, None, recall=True)
    assert calls.is_one("POST", "https://host.example" + path, [("x-api-key", "k")]) is wanted
    assert not calls.is_one("GET", "https://host.example" + path, [])

"""A raw client of the three wire formats, and what a real client makes of a stream: the assistant message it sends back."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import aiohttp

from pagein.providers.validity import Api
from pagein.simulator import ProviderSettings, SimulatedProvider

Wire = dict[str, Any]
T = TypeVar("T")

PATHS: Mapping[Api, str] = {
    "anthropic": "/v1/messages?beta=true",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
MODELS: Mapping[Api, str] = {
    "anthropic": "claude-opus-5-5",
    "openai_chat": "gpt-5.1",
    "openai_responses": "gpt-5.1",
}


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, at: float = 1_790_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@dataclass(frozen=True)
class Heard:
    """What came back. events: of a stream, in order; broken: it did not end as it should."""

    status: int
    headers: Mapping[str, str]
    body: Wire
    events: list[Wire] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    broken: bool = False
    raw: str = ""


async def ask(session: aiohttp.ClientSession, url: str, api: Api, body: Wire, **headers: str) -> Heard:
    async with session.post(url + PATHS[api], json=body, headers=headers) as answer:
        heard = Heard(answer.status, answer.headers, {})
        if answer.content_type != "text/event-stream":
            return replace(heard, body=await answer.json())
        raw, broken = b"", False
        try:
            async for part in answer.content.iter_any():
                raw += part
        except aiohttp.ClientPayloadError:
            broken = True
    frames = [frame for frame in raw.decode().split("\n\n") if frame]
    lines = [dict(line.split(": ", 1) for line in frame.split("\n")) for frame in frames]
    events = [json.loads(line["data"]) if line["data"] != "[DONE]" else {"type": "[DONE]"} for line in lines]
    names = [line.get("event", "") for line in lines]
    return replace(heard, events=events, names=names, broken=broken, raw=raw.decode())


def talk(
    script: object,
    converse: Callable[[SimulatedProvider, aiohttp.ClientSession], Awaitable[T]],
    **settings: Any,  # noqa: ANN401 - fields of Settings
) -> T:
    """Run a provider and a client in one loop."""
    import asyncio

    async def both() -> T:
        async with (
            SimulatedProvider(script, ProviderSettings(**settings)) as provider,
            aiohttp.ClientSession() as session,
        ):
            return await converse(provider, session)

    return asyncio.run(both())


def tools(api: Api) -> list[Wire]:
    if api == "anthropic":
        return [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "edit")]
    inner = [{"name": name, "parameters": {"type": "object"}} for name in ("read", "edit")]
    if api == "openai_chat":
        return [{"type": "function", "function": one} for one in inner]
    return [{"type": "function", **one} for one in inner]


def begun(api: Api, prompt: str, **more: object) -> Wire:
    """The first request of a conversation with tools."""
    body: Wire = {"model": MODELS[api], "tools": tools(api)}
    said = [{"role": "user", "content": prompt}]
    if api == "anthropic":
        body |= {"max_tokens": 1000, "messages": said}
    else:
        body |= {"messages" if api == "openai_chat" else "input": said}
    return body | more


def items_of(body: Wire) -> list[Wire]:
    found: list[Wire] = body["input"] if "input" in body else body["messages"]
    return found


def grown(body: Wire, *more: Wire) -> Wire:
    name = "input" if "input" in body else "messages"
    return {**body, name: [*body[name], *more]}


def answered(api: Api, heard: Heard) -> list[Wire]:
    """What goes back into the conversation for an answer, streamed or not."""
    if api == "anthropic":
        return [{"role": "assistant", "content": from_messages(heard) if heard.events else heard.body["content"]}]
    if api == "openai_chat":
        return [from_chat(heard) if heard.events else said_in_chat(heard.body)]
    if heard.events:
        return [event["item"] for event in heard.events if event["type"] == "response.output_item.done"]
    return list(heard.body["output"])


def said_in_chat(body: Wire) -> Wire:
    message = body["choices"][0]["message"]
    return {name: value for name, value in message.items() if name in ("role", "content", "tool_calls")}


def from_messages(heard: Heard) -> list[Wire]:
    blocks: list[Wire] = []
    for event in heard.events:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            for name, into in (
                ("text", "text"),
                ("thinking", "thinking"),
                ("signature", "signature"),
                ("partial_json", "json"),
            ):
                block[into] = block.get(into, "") + delta.get(name, "") if name in delta else block.get(into, "")
    kept: list[Wire] = []
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["json"])
        names = {
            "text": ("type", "text"),
            "thinking": ("type", "thinking", "signature"),
            "redacted_thinking": ("type", "data"),
            "tool_use": ("type", "id", "name", "input"),
        }[block["type"]]
        kept.append({name: block[name] for name in names})
    return kept


def from_chat(heard: Heard) -> Wire:
    message: Wire = {"role": "assistant", "content": ""}
    calls: list[Wire] = []
    for event in heard.events:
        for choice in event.get("choices", []):
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls", []):
                if "id" in call:
                    calls.append({**call, "function": dict(call["function"])})
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return (
        {**message, "tool_calls": [{k: c[k] for k in ("id", "type", "function")} for c in calls]} if calls else message
    )


def results(api: Api, answer: list[Wire], text: str) -> list[Wire]:
    """The results of all calls in an answer."""
    if api == "anthropic":
        blocks = [block for block in answer[0]["content"] if block["type"] == "tool_use"]
        said = [{"type": "tool_result", "tool_use_id": block["id"], "content": text} for block in blocks]
        return [{"role": "user", "content": said}] if said else []
    if api == "openai_chat":
        calls = answer[0].get("tool_calls", [])
        return [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in calls]
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": text}
        for item in answer
        if item["type"] == "function_call"
    ]


def spoken(api: Api, answer: list[Wire]) -> str:
    """The words in an answer."""
    if api == "anthropic":
        return "".join(block["text"] for block in answer[0]["content"] if block["type"] == "text")
    if api == "openai_chat":
        return answer[0]["content"] or ""
    return "".join(item["content"][0]["text"] for item in answer if item["type"] == "message")


async def job(
    session: aiohttp.ClientSession, url: str, api: Api, prompt: str, *, stream: bool, text: str = "result"
) -> tuple[Wire, list[str]]:
    """A whole job as a real client does it. Returns the last request and the words of every answer."""
    body = begun(api, prompt, stream=stream)
    words: list[str] = []
    while True:
        heard = await ask(session, url, api, body)
        assert heard.status == 200, heard.body
        answer = answered(api, heard)
        words.append(spoken(api, answer))
        more = results(api, answer, text)
        if not more:
            return body, words
        body = grown(body, *answer, *more)

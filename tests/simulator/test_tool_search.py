"""Deferred tools: what the provider leaves out of the prompt, how the model finds a tool, and what that costs."""

from typing import Any

import aiohttp
import pytest
from tests.simulator.raw_clients import Heard, Wire, ask, talk

from pagein.model.messages import Usage
from pagein.simulator import SimulatedProvider
from pagein.simulator.tool_search import SEARCH_TOOL_TOKENS

SEARCH: Wire = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
SCRIPT = [
    [{"tool": "CronCreate", "args": {"when": "noon"}}],
    [{"tool": "CronCreate", "args": {"when": "one"}}],
    ["done"],
]
MARK = {"cache_control": {"type": "ephemeral"}}


def tool(name: str, description: str = "", *, deferred: bool = False) -> Wire:
    schema = {"type": "object", "properties": {"when": {"type": "string", "description": "a time of the day"}}}
    made: Wire = {"name": name, "description": description or f"does {name} " * 400, "input_schema": schema}
    return {**made, "defer_loading": True} if deferred else made


def body(*messages: Wire, tools: list[Wire], **more: object) -> Wire:
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": tools, "messages": list(messages), **more}


def asked(text: str = "go") -> Wire:
    return {"role": "user", "content": [{"type": "text", "text": text, **MARK}]}


def serve(*bodies: Wire, script: object = SCRIPT) -> tuple[list[Heard], list[Usage | None], float]:
    """What some requests are answered with, what they use, and what all of them cost."""

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> Any:  # noqa: ANN401
        heard = [await ask(session, provider.url, "anthropic", one, **{"x-api-key": "k"}) for one in bodies]
        return heard, [record.usage for record in provider.requests], provider.bill().bit

    found: tuple[list[Heard], list[Usage | None], float] = talk(script, converse)
    return found


BASH, CRON = tool("Bash"), tool("CronCreate", deferred=True)
LAZY = [BASH, CRON, tool("CronDelete", "removes what CronCreate made " * 100, deferred=True), SEARCH]


def test_a_deferred_tool_is_not_billed_and_the_tool_that_searches_is() -> None:
    _, (bare,), _ = serve(body(asked(), tools=[BASH]), script=["hi"])
    _, (lazy,), _ = serve(body(asked(), tools=LAZY), script=["hi"])
    assert bare is not None
    assert lazy is not None
    assert lazy.prompt == bare.prompt + SEARCH_TOOL_TOKENS


def test_the_order_of_deferred_tools_does_not_void_the_cache() -> None:
    again = body(asked(), tools=[LAZY[2], SEARCH, BASH])
    _, (_, second), _ = serve(body(asked(), tools=[SEARCH, BASH, CRON]), again, script=lambda _: "hi")
    assert second is not None
    assert second.read > 0
    assert second.written == 0


def test_a_model_that_needs_a_deferred_tool_searches_for_it() -> None:
    (heard,), (usage,), _ = serve(body(asked(), tools=LAZY))
    search, found, call = heard.body["content"]
    assert (search["type"], search["name"]) == ("server_tool_use", "tool_search_tool_regex")
    assert found["tool_use_id"] == search["id"]
    names = [one["tool_name"] for one in found["content"]["tool_references"]]
    assert names == ["CronCreate", "CronDelete"], "the tool itself first, then one whose description speaks of it"
    assert (call["type"], call["name"]) == ("tool_use", "CronCreate")
    assert usage is not None
    assert usage.read >= usage.written, "the prompt is read once more behind the search"


def test_what_was_found_stays_loaded_and_is_billed_where_it_stands() -> None:
    (first,), (before,), _ = serve(body(asked(), tools=LAZY))
    said = {"role": "assistant", "content": first.body["content"]}
    result = {"type": "tool_result", "tool_use_id": first.body["content"][-1]["id"], "content": "ok", **MARK}
    grown = body(asked(), said, {"role": "user", "content": [result]}, tools=LAZY)
    (_, second), (_, usage), _ = serve(body(asked(), tools=LAZY), grown)
    assert [one["type"] for one in second.body["content"]] == ["tool_use"]
    assert before is not None
    assert usage is not None
    assert usage.read == before.written
    assert usage.written > 1000, "both definitions, behind the prefix that is read"


def test_usage_in_a_stream_is_that_of_the_first_part_and_then_the_sum() -> None:
    (heard,), (usage,), bit = serve(body(asked(), tools=LAZY, stream=True))
    start = heard.events[0]["message"]["usage"]
    end = next(one for one in heard.events if one["type"] == "message_delta")["usage"]
    assert usage is not None
    assert (
        end["cache_read_input_tokens"]
        == start["cache_read_input_tokens"] + start["cache_creation_input_tokens"] + (start["input_tokens"])
    )
    assert end["cache_read_input_tokens"] == usage.read
    assert bit == pytest.approx(1.25 * usage.written + 0.1 * usage.read + usage.fresh + 5 * usage.output)
    kinds = [one["content_block"]["type"] for one in heard.events if one["type"] == "content_block_start"]
    assert kinds == ["server_tool_use", "tool_search_tool_result", "tool_use"]


def test_without_a_tool_that_searches_a_deferred_tool_is_not_called() -> None:
    (heard,), _, _ = serve(body(asked(), tools=[BASH, CRON]))
    assert heard.body["content"] == [{"type": "text", "text": "there is no tool CronCreate"}]


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([CRON], "All tools have defer_loading set. At least one tool must be non-deferred."),
        (
            [BASH, {**CRON, **MARK}, SEARCH],
            "Tool 'CronCreate' cannot have both defer_loading=true and cache_control set.",
        ),
    ],
)
def test_wrong_forms_are_refused(tools: list[Wire], words: str) -> None:
    (heard,), _, _ = serve(body(asked(), tools=tools))
    assert heard.status == 400
    assert words in heard.body["error"]["message"]


def test_a_reference_to_a_tool_that_is_not_declared_is_refused() -> None:
    (first,), _, _ = serve(body(asked(), tools=LAZY))
    said = {"role": "assistant", "content": first.body["content"]}
    result = {"type": "tool_result", "tool_use_id": first.body["content"][-1]["id"], "content": "ok"}
    (heard,), _, _ = serve(body(asked(), said, {"role": "user", "content": [result]}, tools=[BASH, CRON, SEARCH]))
    assert heard.status == 400
    assert heard.body["error"]["message"] == "Tool reference 'CronDelete' has no corresponding tool definition"

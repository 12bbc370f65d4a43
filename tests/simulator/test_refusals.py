import asyncio
import gzip
import io
import json
import zlib
from collections.abc import Callable

import aiohttp
import pytest
import zstandard
from tests.providers.validity.bodies import (
    ASK,
    call,
    marked,
    model,
    output,
    reasoning,
    result,
    text,
    thought,
    use,
    user,
)
from tests.simulator.raw_clients import APIS, PATHS, Heard, Wire, answered, ask, begun, grown, results, talk

from pagein.providers.validity import Api
from pagein.simulator import ProviderSettings, Record, SimulatedProvider

BETAS = "context-management-2025-06-27,thinking-binding-controls-2026-08-01"


def messages(*turns: Wire, name: str = "claude-opus-5-5", **more: object) -> Wire:
    return {"model": name, "max_tokens": 100, "messages": list(turns), **more}


def chat(*turns: Wire, name: str = "gpt-5.1", **more: object) -> Wire:
    return {"model": name, "messages": list(turns), **more}


def items(*given: Wire, name: str = "gpt-5.1", **more: object) -> Wire:
    return {"model": name, "input": list(given), **more}


WORDS: Wire = {"role": "user", "content": "hi"}
CALLED: Wire = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}

# One body per family of rules at least: pairing, order, marks, betas, thinking, models, sizes.
BROKEN: list[tuple[str, Api, Wire, str]] = [
    ("M1", "anthropic", messages(ASK, model(use("t1")), user(text())), "were found without `tool_result` blocks"),
    ("M2", "anthropic", messages(ASK, model(text()), user(result("t1"))), "unexpected `tool_use_id` found"),
    ("M3", "anthropic", messages(ASK, model(use("t1")), user(text(), result("t1"))), "`tool_use` ids were found"),
    ("M4", "anthropic", messages(ASK, model(use("t1")), user(result("t1"), result("t1"))), "single result"),
    ("M7", "anthropic", messages(user(text(""))), "must be non-empty"),
    ("M8", "anthropic", messages(model(text()), ASK), "first message"),
    ("M9", "anthropic", messages(ASK, model(text())), "does not support assistant message prefill"),
    ("M11", "anthropic", messages(ASK, tool_choice={"type": "any"}), "are not supported for this model"),
    ("M13", "anthropic", messages(ASK, thinking={"type": "enabled", "budget_tokens": 2000}), "thinking.type.enabled"),
    ("M14", "anthropic", messages(user(*[text(**marked())] * 5)), "A maximum of 4 blocks with cache_control"),
    ("M15", "anthropic", messages(user(text(**marked()), text(**marked("1h")))), "must not come after a ttl='5m'"),
    ("M17", "anthropic", messages(ASK, model(thought("s", **marked()), text()), ASK), "Invalid `signature`"),
    ("M20", "anthropic", messages(ASK, temperature=0.2), "`temperature` is deprecated"),
    (
        "M22",
        "anthropic",
        messages(ASK, context_management={"edits": [{"type": "clear_tool_uses_20250919"}]}),
        "Extra inputs are not permitted",
    ),
    ("C1", "openai_chat", chat(WORDS, CALLED, WORDS), "must be followed by tool messages"),
    ("C2", "openai_chat", chat(WORDS, {"role": "tool", "tool_call_id": "c1", "content": "x"}), "role 'tool'"),
    ("C4", "openai_chat", chat(WORDS, prompt_cache_options={"mode": "implicit"}), "not supported on this model"),
    ("R1", "openai_responses", items(WORDS, output("c1")), "No tool call found for function call output"),
    ("R2", "openai_responses", items(WORDS, call("c1"), WORDS), "No tool output found for function call c1"),
    ("R4", "openai_responses", items(WORDS, reasoning("rs_1"), WORDS), "without its required following item"),
    ("R5", "openai_responses", items(WORDS, call("c1", id="x_1"), output("c1")), "begins with 'fc'"),
    ("R6", "openai_responses", items(WORDS, reasoning("rs_1"), call("c1"), output("c1"), store=False), "not found"),
]


def refused(api: Api, body: Wire, **headers: str) -> tuple[Heard, Record]:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[Heard, Record]:
        heard = await ask(session, provider.url, api, body, **headers)
        return heard, provider.requests[-1]

    return talk(["never said"], converse)


def message_of(heard: Heard) -> str:
    return str(heard.body["error"]["message"])


@pytest.mark.parametrize(("rule", "api", "body", "words"), BROKEN, ids=[case[0] for case in BROKEN])
def test_what_breaks_a_rule_is_refused_in_the_words_of_the_provider(
    rule: str, api: Api, body: Wire, words: str
) -> None:
    heard, record = refused(api, body)
    assert heard.status == (404 if rule == "R6" else 400)
    assert words in message_of(heard)
    assert record.refused == ("signature" if rule == "M17" else rule)
    assert (record.outcome, record.status, record.usage, record.bit) == ("refused", heard.status, None, 0.0)


def test_errors_have_the_form_of_their_provider() -> None:
    ours, _ = refused("anthropic", messages(model(text()), ASK))
    assert (ours.body["type"], ours.body["error"]["type"]) == ("error", "invalid_request_error")
    theirs, _ = refused("openai_responses", items(WORDS, output("c1")))
    assert theirs.body["error"] | {"message": ""} == {
        "message": "",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }


def test_a_stream_that_is_refused_is_answered_in_one_piece() -> None:
    heard, _ = refused("anthropic", messages(model(text()), ASK, stream=True))
    assert (heard.status, heard.events) == (400, [])


def test_fields_of_a_beta_pass_with_its_header() -> None:
    body = messages(ASK, context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})
    heard, record = refused("anthropic", body, **{"anthropic-beta": f"something-else, {BETAS}"})
    assert (heard.status, record.refused) == (200, None)


@pytest.mark.parametrize(
    ("api", "field", "words"),
    [
        ("anthropic", "max_tokens", "max_tokens: Field required"),
        ("anthropic", "model", "model: Field required"),
        ("anthropic", "messages", "messages: Field required"),
        ("openai_chat", "model", "you must provide a model parameter"),
        ("openai_chat", "messages", "Missing required parameter: 'messages'."),
    ],
)
def test_a_field_that_is_missing_is_refused(api: Api, field: str, words: str) -> None:
    body = {name: value for name, value in begun(api, "hi").items() if name != field}
    heard, record = refused(api, body)
    assert (heard.status, message_of(heard), record.refused) == (400, words, "field")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b'"x"', b"[" * 100_000, b'{"messages": 5, "input": {}, "model": "m"}', b"\xff\xfe"],
)
def test_what_is_no_request_is_refused_and_never_a_traceback(api: Api, raw: bytes) -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, Wire]:
        async with session.post(provider.url + PATHS[api], data=raw) as answer:
            return answer.status, await answer.json()

    status, body = talk(None, converse)
    assert status == 400
    assert body["error"]["message"]


def test_more_than_the_provider_takes_is_refused_as_too_large() -> None:
    raw = json.dumps(messages(user(text("a" * (33 << 20))))).encode()

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, str, str | None]:
        async with session.post(provider.url + "/v1/messages", data=io.BytesIO(raw)) as answer:
            return answer.status, (await answer.json())["error"]["type"], provider.requests[-1].refused

    assert talk(None, converse) == (413, "request_too_large", "M21")


def bare_deflate(raw: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(raw) + packer.flush()


def posted(raw: bytes, encoding: str) -> int:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> int:
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        async with session.post(provider.url + "/v1/responses", data=raw, headers=headers) as answer:
            return answer.status

    return talk(None, converse)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("identity", bytes),
    ],
)
def test_packed_bodies_are_read(encoding: str, packed: Callable[[bytes], bytes]) -> None:
    raw = json.dumps(begun("openai_responses", "hi")).encode()
    assert posted(packed(raw), encoding) == 200
    assert posted(packed(raw)[:-9], encoding) == 400


def test_an_encoding_that_nobody_knows_is_refused() -> None:
    assert posted(b"{}", "br") == 400


def test_a_reasoning_item_that_is_left_out_is_missed() -> None:
    turn = [{"thinking": "hm"}, {"tool": "read", "args": {}}]

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[str | None]:
        body = begun("openai_responses", "go", store=False)
        answer = answered("openai_responses", await ask(session, provider.url, "openai_responses", body))
        more = results("openai_responses", answer, "x")
        await ask(session, provider.url, "openai_responses", grown(body, *answer[1:], *more))
        bare = [{name: value for name, value in answer[1].items() if name != "id"}]
        await ask(session, provider.url, "openai_responses", grown(body, *bare, *more))
        await ask(session, provider.url, "openai_responses", grown(body, *answer, *more))
        return [record.refused for record in provider.requests]

    assert talk([turn, "done"], converse) == [None, "R3", None, None]


def test_encrypted_content_that_was_changed_is_refused() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, Wire]:
        body = begun("openai_responses", "go", store=False)
        thinking, said = answered("openai_responses", await ask(session, provider.url, "openai_responses", body))
        forged = {**thinking, "encrypted_content": "gAAAA" + thinking["encrypted_content"]}
        heard = await ask(session, provider.url, "openai_responses", grown(body, forged, said, WORDS))
        return heard.status, heard.body["error"]

    status, error = talk([[{"thinking": "hm"}, {"text": "x"}]], converse)
    assert (status, error["code"]) == (400, "invalid_encrypted_content")


def test_calls_without_credentials_are_refused_where_they_are_needed() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[int]:
        body = begun("anthropic", "hi")
        bare = await ask(session, provider.url, "anthropic", body)
        keyed = await ask(session, provider.url, "anthropic", body, **{"x-api-key": "k"})
        return [bare.status, keyed.status]

    assert talk(None, converse, needs_key=True) == [401, 200]


def test_a_format_that_is_not_spoken_is_not_found() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[int]:
        return [(await ask(session, provider.url, api, begun(api, "hi"))).status for api in APIS]

    assert talk(None, converse, apis=("openai_chat",)) == [404, 200, 404]


def test_a_refused_call_costs_nothing_and_leaves_nothing_in_the_cache() -> None:
    async def both() -> tuple[float, int]:
        async with SimulatedProvider(["a"], ProviderSettings()) as provider, aiohttp.ClientSession() as session:
            long = text("word " * 20_000, **marked())
            await ask(session, provider.url, "anthropic", messages(user(long), model(text())))
            before = provider.bill()
            heard = await ask(session, provider.url, "anthropic", messages(user(long)))
            return before.bit, heard.body["usage"]["cache_read_input_tokens"]

    assert asyncio.run(both()) == (0.0, 0)

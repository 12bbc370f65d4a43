"""Caches of Gemini that a client makes and names: their life, their price, and the way through the gateway."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.gateway.recalling_clients import gateway_on
from tests.gateway.stream.test_recalls import OUTPUT

from pagein.providers.prices.price_lookup import prices
from pagein.simulator import SimulatedProvider

MODEL = "gemini-2.5-pro"
CACHES = "/v1beta/cachedContents"
CALL = f"/v1beta/models/{MODEL}:generateContent"
INSTRUCTIONS = {"parts": [{"text": "Check each listing with care. " * 1000}]}
CONTENTS = [{"role": "user", "parts": [{"text": "Begin."}]}]


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider([[{"text": "well"}]] * 9) as running:
        yield running


def asked(url: str, path: str, body: object = None, method: str = "", key: str = "k") -> tuple[int, dict[str, Any]]:
    raw = None if body is None else json.dumps(body).encode()
    method = method or ("GET" if raw is None else "POST")
    request = Request(url + path, raw, {"x-goog-api-key": key, "content-type": "application/json"}, method=method)  # noqa: S310 - HTTP
    try:
        with urlopen(request) as answer:  # noqa: S310 - as above
            return answer.status, json.load(answer)
    except HTTPError as problem:
        with problem:
            return problem.code, json.load(problem)


def made(url: str, **more: object) -> dict[str, Any]:
    status, told = asked(url, CACHES, {"model": f"models/{MODEL}", "systemInstruction": INSTRUCTIONS, **more})
    assert status == 200, told
    return told


def test_a_call_that_names_a_cache_reads_it_at_the_price_of_reads(provider: SimulatedProvider) -> None:
    cache = made(provider.url)
    held = cache["usageMetadata"]["totalTokenCount"]
    status, told = asked(provider.url, CALL, {"contents": CONTENTS, "cachedContent": cache["name"]})
    usage = told["usageMetadata"]
    assert (status, usage["cachedContentTokenCount"]) == (200, held)
    fresh, rates = usage["promptTokenCount"] - held, prices(MODEL)
    assert 0 < fresh < 20
    bill = provider.bill()
    assert bill.bit == pytest.approx(fresh + rates.read * held + rates.output * usage["candidatesTokenCount"])
    assert (bill.stored.tokens, bill.stored.bit) == (held, held)  # once, at the price of input


def test_storage_is_billed_by_the_hour_until_the_cache_ends(provider: SimulatedProvider) -> None:
    cache = made(provider.url, ttl="7200s")
    held = cache["usageMetadata"]["totalTokenCount"]
    provider.advance(1800)
    assert provider.bill().stored.token_hours == pytest.approx(held / 2, rel=0.01)
    assert asked(provider.url, f"/v1beta/{cache['name']}", method="DELETE") == (200, {})
    provider.advance(36_000)
    stored = provider.bill().stored
    assert stored.token_hours == pytest.approx(held / 2, rel=0.01)
    assert stored.storage_usd == pytest.approx(4.5 * held / 2 / 1e6, rel=0.01)
    assert stored.storage_bit == pytest.approx(4.5 / 1.25 * held / 2, rel=0.01)


def test_a_model_whose_storage_has_no_known_price_is_told_apart(provider: SimulatedProvider) -> None:
    made(provider.url, model="models/gemini-3-flash-preview")
    assert (provider.bill().stored.storage_bit, provider.bill().stored.storage_usd) == (None, None)


def test_a_cache_lives_for_an_hour_or_as_long_as_asked(provider: SimulatedProvider) -> None:
    usual, brief = made(provider.url), made(provider.url, ttl="60s", displayName="brief")
    assert [one["name"] for one in asked(provider.url, CACHES)[1]["cachedContents"]] == [usual["name"], brief["name"]]
    assert asked(provider.url, f"/v1beta/{brief['name']}")[1]["displayName"] == "brief"
    provider.advance(120)
    status, told = asked(provider.url, CALL, {"contents": CONTENTS, "cachedContent": brief["name"]})
    assert (status, told["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert asked(provider.url, f"/v1beta/{usual['name']}", {"ttl": "7200s"}, "PATCH")[0] == 200
    provider.advance(3600)
    assert asked(provider.url, CALL, {"contents": CONTENTS, "cachedContent": usual["name"]})[0] == 200
    provider.advance(3600)
    assert asked(provider.url, f"/v1beta/{usual['name']}")[0] == 403


def test_what_the_provider_refuses(provider: SimulatedProvider) -> None:
    status, told = asked(provider.url, CACHES, {"model": f"models/{MODEL}", "contents": CONTENTS})
    assert (status, "Cached content is too small" in told["error"]["message"]) == (400, True)
    cache = made(provider.url)
    named = {"contents": CONTENTS, "cachedContent": cache["name"]}
    assert asked(provider.url, CALL, named, key="another")[0] == 403
    assert asked(provider.url, CALL, {**named, "systemInstruction": INSTRUCTIONS})[0] == 400
    assert asked(provider.url, CALL.replace(MODEL, "gemini-2.5-flash"), named)[0] == 400
    assert provider.bill().requests == 3


def test_the_gateway_passes_caches_through_and_adds_nothing_before_what_they_hold(tmp_path: Path) -> None:
    call = {"functionCall": {"id": "c1", "name": "Bash", "args": {"command": "make"}}}
    result = {"functionResponse": {"id": "c1", "name": "Bash", "response": {"output": OUTPUT}}}
    contents = [*CONTENTS, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]

    async def go(provider: SimulatedProvider) -> tuple[list[int], dict[str, Any]]:
        async with gateway_on(provider, tmp_path) as gateway:
            held = await asyncio.to_thread(made, gateway.url)
            body = {"contents": contents, "cachedContent": held["name"]}
            status, told = await asyncio.to_thread(asked, gateway.url, CALL, body)
            gone, _ = await asyncio.to_thread(asked, gateway.url, f"/v1beta/{held['name']}", None, "DELETE")
            assert told["usageMetadata"]["cachedContentTokenCount"] == held["usageMetadata"]["totalTokenCount"]
            return [status, gone], body

    with SimulatedProvider([[{"text": "before"}], [{"text": "well"}]]) as provider:
        statuses, body = asyncio.run(go(provider))
        assert statuses == [200, 200]
        [sent] = [one.body for one in provider.requests if one.path == CALL]
        assert set(sent) == set(body)  # no instructions, no tools: the provider would refuse them beside a named cache
        assert sent["cachedContent"] == body["cachedContent"]

"""Which tools of ours a conversation has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pagein import wiring
from pagein.engine.engine import Engine
from pagein.providers.validity import Api
from pagein.providers.wire.tools import Offer

OFFERS = (Offer("peek", "Show it."), Offer("search", "Find it."))
BASH: dict[str, Any] = {"name": "Bash", "input_schema": {"type": "object"}}
FUNCTION = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
FLAT = {"type": "function", "name": "bash", "parameters": {"type": "object"}}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with wiring.open(":memory:") as opened:
        yield opened


def body(api: Api, words: tuple[str, ...] = ("hi",), **fields: object) -> bytes:
    said = [{"role": "user" if place % 2 == 0 else "assistant", "content": text} for place, text in enumerate(words)]
    tools: dict[Api, Any] = {"anthropic": BASH, "openai_chat": FUNCTION, "openai_responses": FLAT}
    more: dict[str, Any] = {"store": False} if api == "openai_responses" else {"max_tokens": 9}
    key = "input" if api == "openai_responses" else "messages"
    return json.dumps({"model": "m", key: said, "tools": [tools[api]], **more, **fields}).encode()


def offered(engine: Engine, given: bytes, api: Api, offers: tuple[Offer, ...] = OFFERS) -> tuple[str, ...]:
    prepared = engine.prepare(given, api, at=0.0, hint="one", offers=offers)
    assert prepared.failure is None
    names = [one.get("function", one).get("name") for one in prepared.request.get("tools", ())]
    assert tuple(name for name in names if name in {"peek", "search"}) == prepared.offered
    return prepared.offered


@pytest.mark.parametrize("api", ["anthropic", "openai_chat", "openai_responses"])
def test_agents_are_offered_them(engine: Engine, api: Api) -> None:
    assert offered(engine, body(api), api) == ("peek", "search")
    assert offered(engine, body(api), api) == ("peek", "search"), "also when it is said again"


@pytest.mark.parametrize(
    ("api", "fields"),
    [
        ("anthropic", {"tools": []}),
        ("anthropic", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
        ("anthropic", {"tool_choice": {"type": "tool", "name": "Bash"}}),
        ("anthropic", {"tools": [BASH, {**BASH, "name": "mcp__pagein__peek"}]}),
        ("anthropic", {"tools": [BASH, {**BASH, "name": "rlm_peek"}]}),
        ("openai_chat", {"tool_choice": "required"}),
        ("openai_chat", {"n": 2}),
        ("openai_responses", {"store": True}),
        ("openai_responses", {"previous_response_id": "resp_1"}),
    ],
)
def test_requests_that_are_no_agents_own_or_have_them_already_are_not(
    engine: Engine, api: Api, fields: dict[str, Any]
) -> None:
    assert offered(engine, body(api, **fields), api) == ()


def test_a_name_that_the_client_has_taken_stays_the_clients(engine: Engine) -> None:
    given = body("anthropic", tools=[BASH, {**BASH, "name": "search"}])
    prepared = engine.prepare(given, "anthropic", at=0.0, hint="one", offers=OFFERS)
    assert prepared.offered == ("peek",)
    assert [one["name"] for one in prepared.request["tools"]] == ["Bash", "search", "peek"]


def test_a_request_that_forces_a_tool_has_those_that_its_conversation_began_with(engine: Engine) -> None:
    offered(engine, body("anthropic"), "anthropic")
    forced = body("anthropic", ("hi", "yes", "go on"), tool_choice={"type": "any"})
    assert offered(engine, forced, "anthropic") == ("peek", "search")


def test_a_conversation_keeps_the_words_of_its_tools_when_ours_have_changed(tmp_path: Path) -> None:
    with wiring.open(tmp_path) as engine:
        first = engine.prepare(body("anthropic"), "anthropic", at=0.0, hint="one", offers=OFFERS)
    changed = (Offer("peek", "Better words."),)
    with wiring.open(tmp_path) as engine:
        later = body("anthropic", ("hi", "yes", "go on"))
        second = engine.prepare(later, "anthropic", at=1.0, hint="one", offers=changed)
        fresh = engine.prepare(later, "anthropic", at=1.0, hint="two", offers=changed)
    assert second.request["tools"] == first.request["tools"]
    assert [one.get("description") for one in fresh.request["tools"]] == [None, "Better words."]


def test_a_session_that_began_without_them_stays_so_also_when_the_client_compacts_it(engine: Engine) -> None:
    assert offered(engine, body("anthropic"), "anthropic", ()) == ()
    assert offered(engine, body("anthropic", ("hi", "yes", "go on")), "anthropic") == ()
    assert offered(engine, body("anthropic", ("what was said so far",)), "anthropic") == ()


def test_a_session_that_began_with_them_keeps_them_when_the_client_compacts_it(engine: Engine) -> None:
    assert offered(engine, body("anthropic"), "anthropic") == ("peek", "search")
    forced = body("anthropic", ("what was said so far",), tool_choice={"type": "any"})
    assert offered(engine, forced, "anthropic") == ("peek", "search")

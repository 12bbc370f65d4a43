"""Which tools of ours a conversation has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pagein import wiring
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.model.messages import Usage
from pagein.policy.clients.profiles import CODEX
from pagein.policy.stubs.recall_ways import are_small, tokens_of
from pagein.policy.stubs.result_stubs import LONGEST
from pagein.providers.validity import Api
from pagein.providers.wire.tool_offers import ToolOffer

OFFERS = (ToolOffer("peek", "Show it."), ToolOffer("search", "Find it."))
BASH: dict[str, Any] = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {}}}}
READS = {"type": "object", "properties": {"filePath": {}}}
FUNCTION = {"type": "function", "function": {"name": "read", "parameters": READS}}
RUNS = {"type": "object", "properties": {"cmd": {}}}
FLAT = {"type": "function", "name": "exec_command", "parameters": RUNS}


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


def offered(engine: Engine, given: bytes, api: Api, offers: tuple[ToolOffer, ...] = OFFERS) -> tuple[str, ...]:
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
    changed = (ToolOffer("peek", "Better words."),)
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


# --- strangers with small prompts, and other ways back ---

QUERY: dict[str, Any] = {"name": "query", "input_schema": {"type": "object"}}
PROGRAMS = {"type": "additional_tools", "tools": [{"type": "namespace", "tools": [{"type": "custom", "name": "exec"}]}]}


def answered(*outputs: str, **fields: object) -> bytes:
    """A conversation whose model was given these outputs."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "How many are there?"}]
    for place, text in enumerate(outputs):
        call = {"type": "tool_use", "id": f"toolu_{place}", "name": "query", "input": {"place": place}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{place}", "content": text}
        said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    front = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Know this. " * 2000, "tools": [QUERY]}
    whole = {**front, "messages": said, **fields}
    return json.dumps(whole).encode()


def called(engine: Engine, given: bytes, at: float, offers: tuple[ToolOffer, ...] = OFFERS) -> PreparedRequest:
    """A request that was sent, and whose provider told how large it was."""
    prepared = engine.prepare(given, "anthropic", at=at, hint="one", offers=offers)
    assert prepared.failure is None
    engine.observe(prepared, Usage(read=0, written=len(prepared.body) // 4, fresh=0, output=20))
    return prepared


def lines(count: int) -> str:
    return "".join(f"row {place} of what was asked for\n" for place in range(count))


def test_a_stranger_with_a_small_prompt_pays_for_no_tools_while_nothing_leaves(engine: Engine) -> None:
    for count in range(8):
        given = answered(*["a short answer"] * count)
        assert called(engine, given, float(count)).body == given


def test_a_stranger_gets_the_tools_with_the_first_thing_that_leaves_and_from_then_on(tmp_path: Path) -> None:
    with wiring.open(tmp_path) as engine:
        assert called(engine, answered(), 0.0).offered == ()
        small = called(engine, answered(lines(300)), 1.0)
        big = answered(lines(300), lines(3000))
        first = called(engine, big, 2.0)
        assert (small.previewed, small.offered) == ((), ()), "it would not pay for the cache that the tools void"
        assert first.previewed
        assert first.offered == ("peek", "search")
    with wiring.open(tmp_path) as engine:  # and another process says the same
        assert engine.prepare(big, "anthropic", at=3.0, hint="one", offers=OFFERS).body == first.body
        later = called(engine, answered(lines(300), lines(3000), "ok"), 4.0)
    assert later.request["tools"] == first.request["tools"]
    assert later.request["messages"][:5] == first.request["messages"]


def test_what_the_cache_loses_by_the_tools_is_in_the_account(engine: Engine) -> None:
    called(engine, answered(), 0.0)
    called(engine, answered(lines(300)), 1.0)
    prepared = called(engine, answered(lines(300), lines(3000)), 2.0)
    free = engine.session("two")
    for count in range(3):
        whole = free.prepare(answered(*[lines(300), lines(3000)][:count]), at=float(count))
        free.observe(Usage(read=0, written=len(whole.body) // 4, fresh=0, output=20), whole)
    session = engine.session(prepared.session)
    accounts = [one.journal.state_at(one.leaf).account for one in (free, session)]
    assert accounts[0].saved - accounts[1].saved > 1.15 * 5000, "the prompt of 5,000 tokens is written again"


def test_a_stranger_with_a_large_prompt_has_the_tools_from_the_first_request_on(engine: Engine) -> None:
    assert called(engine, answered(system="Know this. " * 20_000), 0.0).offered == ("peek", "search")


@pytest.mark.parametrize(
    ("reported", "words", "tools"),
    [
        ((Usage(fresh=500, output=9),), 6000, ("peek", "search")),  # nothing is cached that they could void
        ((Usage(fresh=500, output=9),), 1000, ()),  # still too small
        ((Usage(fresh=0, written=500, output=9),), 6000, ()),  # they come with the first eviction
        ((), 6000, ()),  # nobody knows what is cached
    ],
)
def test_they_come_later_with_a_large_request_if_nothing_is_cached(
    engine: Engine, reported: tuple[Usage, ...], words: int, tools: tuple[str, ...]
) -> None:
    strange: dict[str, Any] = {
        "model": "claude-opus-4-6",
        "tools": [{**BASH, "name": "lookup", "description": "Look it up."}],
    }
    small = engine.prepare(body("anthropic", **strange), "anthropic", at=0.0, hint="one", offers=OFFERS)
    assert small.offered == ()
    for usage in reported:
        engine.observe(small, usage)
    more = body("anthropic", ("hi", "so", "read this. " * words), **strange)
    assert engine.prepare(more, "anthropic", at=9.0, hint="one", offers=OFFERS).offered == tools


@pytest.mark.parametrize(
    ("model", "words", "tools"),
    [
        ("claude-opus-4-6", 1000, ()),  # the cache stores 4,096 tokens and more
        ("claude-opus-4-6", 3000, ("peek", "search")),
        ("claude-sonnet-4-5", 1000, ("peek", "search")),  # 1,024
        ("claude-sonnet-4-5", 100, ()),
        ("gpt-5.1", 100, ("peek", "search")),  # storing costs nothing
        ("a model without a price", 100, ("peek", "search")),
    ],
)
def test_a_known_agent_gets_them_at_once_where_they_lift_no_prompt_over_the_minimum_of_the_cache(
    engine: Engine, model: str, words: int, tools: tuple[str, ...]
) -> None:
    given = body("anthropic", model=model, system="Know this. " * words)
    assert offered(engine, given, "anthropic") == tools


def turn(
    engine: Engine, words: tuple[str, ...], api: Api = "anthropic", usage: Usage | None = None, **fields: object
) -> tuple[str, ...]:
    """The tools of a request to a model whose cache stores little prompts at a higher price, after its answer."""
    model = {"anthropic": "claude-sonnet-4-5", "openai_chat": "gpt-5.6-sol"}[api]
    given = body(api, words, model=model, **fields)
    prepared = engine.prepare(given, api, at=float(len(words)), hint="one", offers=OFFERS)
    engine.observe(prepared, usage or Usage(fresh=len(prepared.body) // 4, output=9))
    return prepared.offered


@pytest.mark.parametrize("api", ["anthropic", "openai_chat"])
def test_a_known_agent_whose_prompt_prefix_is_too_small_for_the_cache_never_gets_them(engine: Engine, api: Api) -> None:
    """It may compact at any time, and they would lift what is left over the minimum."""
    large = "read this. " * 2000
    assert turn(engine, (large,), api) == ()
    assert turn(engine, (large, "yes", "and this. " * 300), api) == ()


def test_a_known_agent_recalls_by_its_shell_where_the_provider_stored_more_than_was_expected(engine: Engine) -> None:
    first = "read this. " * 300
    assert turn(engine, (first,), usage=Usage(fresh=0, written=1100, output=9)) == ()
    assert turn(engine, (first, "yes", "and this. " * 900), usage=Usage(read=1100, written=3000, output=9)) == ()
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": lines(3000)}
    said = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "and this. " * 900},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    given = body("anthropic", model="claude-sonnet-4-5", messages=said)
    prepared = engine.prepare(given, "anthropic", at=9.0, hint="one", offers=OFFERS)
    assert prepared.offered == ()
    assert [f"Run `pagein peek {one.object_id}`" in one.stub for one in prepared.previewed] == [True]


def test_a_conversation_that_is_compacted_to_less_than_the_cache_stores_begins_without_them(engine: Engine) -> None:
    large = "read this. " * 9000
    usage = Usage(fresh=0, written=25_000, output=9)
    assert turn(engine, (large,), usage=usage, tools=[QUERY]) == ("peek", "search")
    assert turn(engine, ("what was said so far",), tools=[QUERY]) == ()
    assert turn(engine, ("what was said so far", "yes", large), tools=[QUERY]) == ("peek", "search")
    assert turn(engine, (f"{large} was said so far",), tools=[QUERY]) == ("peek", "search")


def test_tools_leave_a_compacted_conversation_of_which_nothing_was_ever_cached(engine: Engine) -> None:
    large = "read this. " * 9000
    usage = Usage(fresh=25_000, output=9)
    assert turn(engine, (large,), usage=usage, tools=[QUERY]) == ("peek", "search")
    assert turn(engine, (large[: len(large) // 4],), tools=[QUERY]) == ()


def test_tools_that_do_more_than_recall_are_there_at_once(engine: Engine) -> None:
    small = body("anthropic", model="claude-opus-4-6")
    more = ToolOffer("query", "Ask a child.")
    prepared = engine.prepare(small, "anthropic", at=0.0, hint="one", offers=(*OFFERS, more))
    assert prepared.offered == ("peek", "search", "query")


def test_nothing_leaves_where_no_way_leads_back(engine: Engine) -> None:
    for count in range(3):
        given = answered(*[lines(3000)] * count)
        assert called(engine, given, float(count), ()).body == given


def test_without_tools_of_ours_stubs_name_the_shell_of_an_agent_that_has_one(engine: Engine) -> None:
    for tools in ([QUERY, BASH], [QUERY, {**BASH, "name": "mcp__pagein__peek"}]):
        hint = str(len(str(tools)))
        engine.prepare(answered(tools=tools), "anthropic", at=0.0, hint=hint, offers=())
        prepared = engine.prepare(answered(lines(3000), tools=tools), "anthropic", at=1.0, hint=hint, offers=())
        (one,) = prepared.previewed
        way = f"Run `pagein peek {one.object_id}`" if BASH in tools else f'Use mcp__pagein__peek("{one.object_id}")'
        assert f"{way} to view them, or " in one.stub
        assert f"{way} to view, or " in one.short
        assert len(one.short) <= LONGEST


def test_tools_that_are_handed_over_in_the_input_may_be_a_shell(engine: Engine) -> None:
    call = {"type": "custom_tool_call", "call_id": "call_1", "name": "exec", "input": "text(1)"}
    said = [PROGRAMS, {"role": "user", "content": "hi"}, call]
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": lines(3000)}
    given = json.dumps({"model": "gpt-5.6-sol", "store": False, "input": [*said, output]}).encode()
    prepared = engine.prepare(given, "openai_responses", at=0.0, hint="one", offers=OFFERS)
    assert prepared.offered == ()
    assert [f"Run `pagein peek {one.object_id}`" in one.stub for one in prepared.previewed] == [True]


def test_tools_are_small_up_to_half_a_percent_of_the_first_request() -> None:
    assert are_small(500, 100_000)
    assert not are_small(501, 100_000)
    assert tokens_of(4000) == 1000.0


@pytest.mark.parametrize(
    "more", [{}, {"tools": [{"type": "web_search"}]}], ids=["alone", "beside a tool of the provider"]
)
def test_codex_is_known_by_the_tools_that_it_adds_to_the_input(engine: Engine, more: dict[str, Any]) -> None:
    given = {"model": "gpt-5.6-sol", "input": [PROGRAMS, {"role": "user", "content": "hi"}], "store": False, **more}
    assert engine.prepare(json.dumps(given).encode(), "openai_responses", at=0.0, hint="one").failure is None
    assert engine.session("one").client is CODEX

"""What the provider itself keeps and clears."""

import json
import stat
from pathlib import Path

import aiohttp
import pytest
from tests.providers.validity.bodies import result, text, use
from tests.simulator.raw_clients import Wire, answered, ask, begun, grown, results, talk

from pagein.model.json_text import encode_json
from pagein.simulator import SimulatedProvider
from pagein.simulator.cleared_context import CLEARED
from pagein.simulator.kept_responses import KeptResponses
from pagein.simulator.model_call import parse_call
from pagein.simulator.refusals import SimulatedRefusal

BETA = {"anthropic-beta": "context-management-2025-06-27"}
LONG = "word " * 2000


def test_a_request_may_go_on_from_a_response_that_was_kept() -> None:
    script = [[{"thinking": "hm"}, {"tool": "read", "args": {}}], "done", "more"]

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[object]:
        told = await ask(session, provider.url, "openai_responses", begun("openai_responses", LONG))
        items = results("openai_responses", answered("openai_responses", told), LONG)
        more = begun("openai_responses", "") | {"input": items, "previous_response_id": told.body["id"]}
        second = await ask(session, provider.url, "openai_responses", more)
        third = begun("openai_responses", "and now?", previous_response_id=second.body["id"])
        last = await ask(session, provider.url, "openai_responses", third)
        details = last.body["usage"]["input_tokens_details"]
        assert last.body["usage"]["input_tokens"] > 4000
        assert details["cached_tokens"] > 3900
        return [record.turn for record in provider.requests]

    assert talk(script, converse) == [0, 1, 2]


@pytest.mark.parametrize("store", [None, False])
def test_a_response_that_is_not_kept_cannot_be_gone_on_from(store: bool | None) -> None:  # noqa: FBT001 - a table of cases
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, Wire, str | None]:
        body = begun("openai_responses", "hi") | ({} if store is None else {"store": store})
        told = await ask(session, provider.url, "openai_responses", body)
        name = told.body["id"] if store is False else "resp_unheard_of"
        heard = await ask(session, provider.url, "openai_responses", {**body, "previous_response_id": name})
        return heard.status, heard.body["error"], provider.requests[-1].refused

    status, error, rule = talk(["a", "b"], converse)
    assert (status, error["code"], rule) == (400, "previous_response_not_found", "previous")


def used(count: int, **edit: object) -> Wire:
    """A conversation of so many calls with long results, and an edit that is asked for."""
    body = begun("anthropic", "go", cache_control={"type": "ephemeral"})
    for number in range(count):
        body = grown(
            body,
            {"role": "assistant", "content": [use(f"t{number}", input={"n": number, "long": LONG[:50]})]},
            {"role": "user", "content": [result(f"t{number}", content=f"{number} {LONG}")]},
        )
    return {**body, "context_management": {"edits": [{"type": "clear_tool_uses_20250919", **edit}]}}


def after(*bodies: Wire, stream: bool = False) -> list[Wire]:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[Wire]:
        said = []
        for body in bodies:
            heard = await ask(session, provider.url, "anthropic", {**body, "stream": stream}, **BETA)
            assert heard.status == 200, heard.body
            said.append(heard.events[-2] if stream else heard.body)
        return said

    return talk(lambda _: "ok", converse)


def prompt_of(body: Wire) -> int:
    usage = body["usage"]
    found: int = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    return found


def tokens(value: int) -> Wire:
    return {"type": "input_tokens", "value": value}


def uses(value: int) -> Wire:
    return {"type": "tool_uses", "value": value}


def test_old_results_are_cleared_behind_the_trigger_all_but_the_latest() -> None:
    bare = prompt_of(after({k: v for k, v in used(8).items() if k != "context_management"})[0])
    (body,) = after(used(8, trigger=tokens(10_000), keep=uses(2)))
    (edit,) = body["context_management"]["applied_edits"]
    assert (edit["type"], edit["cleared_tool_uses"]) == ("clear_tool_uses_20250919", 6)
    assert edit["cleared_input_tokens"] == bare - prompt_of(body)
    assert prompt_of(body) < bare / 3


@pytest.mark.parametrize(
    ("edit", "gone"),
    [
        ({}, 0),
        ({"trigger": tokens(1_000_000)}, 0),
        ({"trigger": uses(8)}, 0),
        ({"trigger": uses(7)}, 5),
        ({"trigger": uses(0), "keep": uses(100)}, 0),
        ({"trigger": uses(0), "keep": uses(0)}, 8),
        ({"trigger": uses(0), "exclude_tools": ["f"]}, 0),
        ({"trigger": uses(0), "clear_at_least": tokens(1_000_000)}, 0),
        ({"trigger": uses(0), "clear_at_least": tokens(10_000)}, 5),
    ],
)
def test_an_edit_is_made_as_its_parameters_say(edit: Wire, gone: int) -> None:
    (body,) = after(used(8, **edit))
    applied = body["context_management"]["applied_edits"]
    assert sum(one["cleared_tool_uses"] for one in applied) == gone


def test_clearing_voids_the_cache_from_the_first_result_that_goes() -> None:
    edit = {"trigger": uses(8), "keep": uses(3)}
    _, calm = after(used(7, **edit), used(8, **edit))
    _, cut = after(used(8, **edit), used(9, **edit))
    assert calm["usage"]["cache_read_input_tokens"] > prompt_of(calm) / 2
    assert cut["usage"]["cache_read_input_tokens"] == 0


def test_inputs_go_along_only_where_that_is_asked_for() -> None:
    edit = {"trigger": uses(0), "keep": uses(0)}
    less, more = after(used(8, **edit, clear_tool_inputs=True), used(8, **edit))
    assert prompt_of(less) < prompt_of(more)


def test_a_stream_tells_the_edits_at_its_end() -> None:
    (event,) = after(used(8, trigger=uses(0)), stream=True)
    assert event["type"] == "message_delta"
    assert event["context_management"]["applied_edits"][0]["cleared_tool_uses"] == 5


def test_thinking_is_cleared_turn_by_turn_and_what_stays_is_still_bound() -> None:
    script = [
        [{"thinking": LONG}, {"tool": "read", "args": {}}],
        [{"thinking": LONG}, {"tool": "read", "args": {}}],
        "done",
        "well",
    ]

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[object]:
        edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
        body = begun("anthropic", "go", context_management={"edits": [edit]})
        said: list[object] = []
        for _ in range(3):
            heard = await ask(session, provider.url, "anthropic", body, **BETA)
            assert heard.status == 200, heard.body
            said.append(heard.body["context_management"]["applied_edits"])
            answer = answered("anthropic", heard)
            body = grown(body, *answer, *(results("anthropic", answer, "x") or [{"role": "user", "content": [text()]}]))
        all_kept = {**body, "context_management": {"edits": [{**edit, "keep": "all"}]}}
        last = await ask(session, provider.url, "anthropic", all_kept, **BETA)
        return [*said, last.body["context_management"]["applied_edits"]]

    first, second, third, last = talk(script, converse)
    assert (first, second, last) == ([], [], [])
    assert isinstance(third, list)
    assert third[0]["cleared_thinking_turns"] == 1
    assert third[0]["cleared_input_tokens"] > 2000


def test_counting_tells_the_tokens_before_and_after() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> Wire:
        url = provider.url + "/v1/messages/count_tokens"
        async with session.post(url, json=used(8, trigger=uses(0)), headers=BETA) as answer:
            found: Wire = await answer.json()
            return found

    told = talk(None, converse)
    assert told["context_management"]["original_input_tokens"] > 2 * told["input_tokens"]


def test_what_is_cleared_is_not_cleared_twice() -> None:
    body = used(8, trigger=uses(0), keep=uses(0))
    for message in body["messages"][2::2]:
        message["content"][0]["content"] = CLEARED
    assert after(body)[0]["context_management"]["applied_edits"] == []


def test_bodies_of_the_oldest_requests_are_let_go_and_what_they_cost_is_not() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[bool]:
        for _ in range(6):
            await ask(session, provider.url, "anthropic", begun("anthropic", LONG))
        assert provider.bill().requests == 6
        assert provider.bill().bit == sum(record.bit for record in provider.requests) > 0
        return [record.body is not None for record in provider.requests]

    assert talk(["a"] * 6, converse, most_bodies=25_000) == [False] * 4 + [True] * 2


def test_of_conversations_that_may_be_gone_on_from_the_oldest_are_let_go() -> None:
    kept = KeptResponses(most=1)
    calls = [parse_call(encode_json(begun("openai_responses", str(number))), "openai_responses") for number in range(2)]
    for number, call in enumerate(calls):
        kept.keep(call, f"resp_{number}", [])
    goes_on = [
        parse_call(encode_json({"model": "m", "previous_response_id": f"resp_{n}"}), "openai_responses")
        for n in range(2)
    ]
    assert [isinstance(kept.resolve_call(call), SimulatedRefusal) for call in goes_on] == [True, False]


@pytest.mark.parametrize("there", [False, True])
def test_only_its_owner_may_read_what_was_recorded(tmp_path: Path, there: bool) -> None:  # noqa: FBT001 - a table of cases
    path = tmp_path / "requests.jsonl"
    if there:
        path.touch(0o644)

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> None:
        await ask(session, provider.url, "anthropic", begun("anthropic", "hi"))

    talk(["a"], converse, record=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["body"]["messages"]

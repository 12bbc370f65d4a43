import copy
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from tests.simulator.raw_clients import Heard, Wire, answered, ask, begun, grown, results, talk

from pagein.simulator import SimulatedProvider

BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
SCRIPT = [
    [{"thinking": "first"}, {"text": "one"}, {"thinking": "between"}, {"tool": "read", "args": {"path": "a"}}],
    [{"thinking": "second"}, {"text": "two"}],
    [{"thinking": "third"}, {"text": "three"}],
    "four",
]


async def conversation(provider: SimulatedProvider, session: aiohttp.ClientSession, **more: object) -> Wire:
    """Three answers with thinking, and the request for a fourth."""
    body = begun("anthropic", "go", system="be brief", **more)
    for words in ("", "go on", "and now?"):
        answer = answered("anthropic", await ask(session, provider.url, "anthropic", body))
        more_turns = results("anthropic", answer, "content of a")
        body = grown(body, *answer, *(more_turns or [{"role": "user", "content": words}]))
    return body


def sent(
    change: Callable[[Wire], None],
    *,
    headers: dict[str, str] | None = None,
    **settings: Any,  # noqa: ANN401 - fields of Settings
) -> tuple[Heard, str | None]:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[Heard, str | None]:
        body = copy.deepcopy(await conversation(provider, session))
        change(body)
        heard = await ask(session, provider.url, "anthropic", body, **(headers or {}))
        return heard, provider.requests[-1].refused

    return talk(SCRIPT, converse, **settings)


def kinds(body: Wire, message: int) -> list[str]:
    return [block["type"] for block in body["messages"][message]["content"]]


def nothing(_body: Wire) -> None:
    pass


def change_system(body: Wire) -> None:
    body["system"] = "be very brief"


def change_first_prompt(body: Wire) -> None:
    body["messages"][0]["content"] = "go!"


def stub_result(body: Wire) -> None:
    body["messages"][2]["content"][0]["content"] = "[paged out]"


def change_tool(body: Wire) -> None:
    body["tools"][0]["description"] = "reads"


def leave_out_thinking_between(body: Wire) -> None:
    assert kinds(body, 3) == ["thinking", "text"]
    del body["messages"][3]["content"][0]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (change_system, "T2"),
        (change_first_prompt, "T2"),
        (stub_result, "T2"),
        (change_tool, "T2"),
        (leave_out_thinking_between, "T6"),
    ],
)
def test_thinking_behind_a_changed_prefix_is_refused(change: Callable[[Wire], None], rule: str) -> None:
    heard, refused = sent(change)
    assert (heard.status, refused) == (400, rule)
    assert "is bound to a different conversation" in heard.body["error"]["message"]


def move_marks(body: Wire) -> None:
    body["system"] = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
    body["messages"][0]["content"] = [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]


def reorder_tools(body: Wire) -> None:
    body["tools"].reverse()


def leave_out_the_oldest_thinking(body: Wire) -> None:
    body["messages"][1]["content"] = [one for one in body["messages"][1]["content"] if one["type"] != "thinking"]


def leave_out_all_thinking_and_edit(body: Wire) -> None:
    stub_result(body)
    for message in body["messages"]:
        if message["role"] == "assistant":
            message["content"] = [one for one in message["content"] if one["type"] != "thinking"]


def edit_behind_all_thinking(body: Wire) -> None:
    body["messages"][-1]["content"] = "something else"


def of_another_model(body: Wire) -> None:
    body["model"] = "claude-sonnet-5-5"
    change_system(body)


@pytest.mark.parametrize(
    "change",
    [
        nothing,
        move_marks,
        reorder_tools,
        leave_out_the_oldest_thinking,
        leave_out_all_thinking_and_edit,
        edit_behind_all_thinking,
        of_another_model,
    ],
)
def test_what_breaks_no_binding_passes(change: Callable[[Wire], None]) -> None:
    heard, refused = sent(change)
    assert (heard.status, refused) == (200, None)


def test_a_changed_prefix_is_taken_where_the_client_asks_to_drop_what_it_breaks() -> None:
    def drop(body: Wire) -> None:
        change_system(body)
        body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}

    assert sent(drop, headers=BETA)[1] is None
    assert sent(drop)[1] == "T5"


def test_accounts_from_before_the_check_are_refused_only_where_they_ask_for_it() -> None:
    from datetime import date

    def ask_for_it(body: Wire) -> None:
        change_system(body)
        body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}

    assert sent(change_system, account=date(2026, 8, 30))[1] is None
    assert sent(ask_for_it, headers=BETA, account=date(2026, 8, 30))[1] == "T2"


def test_models_that_bind_nothing_take_changes() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> int:
        body = {**await conversation(provider, session, model="claude-opus-4-5"), "system": "be very brief"}
        return (await ask(session, provider.url, "anthropic", body)).status

    assert talk(SCRIPT, converse) == 200


def forge(body: Wire) -> None:
    block = body["messages"][1]["content"][0]
    block["signature"] = "A" + block["signature"][1:]


def reword(body: Wire) -> None:
    body["messages"][1]["content"][0]["thinking"] = "first thoughts"


def unsign(body: Wire) -> None:
    body["messages"][1]["content"][0]["signature"] = ""


@pytest.mark.parametrize("change", [forge, reword, unsign])
def test_a_signature_that_is_not_for_these_words_is_refused_by_every_model(change: Callable[[Wire], None]) -> None:
    heard, refused = sent(change)
    assert (heard.status, refused) == (400, "signature")
    assert heard.body["error"]["message"] == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_thinking_that_was_signed_elsewhere_passes_only_where_that_is_set() -> None:
    def foreign(body: Wire) -> None:
        body["messages"][1]["content"] = [
            {"type": "thinking", "thinking": "hm", "signature": "RXJyb3I="},
            *body["messages"][1]["content"][3:],
        ]
        for place in (3, 5):
            del body["messages"][place]["content"][0]

    assert sent(foreign)[1] == "signature"
    assert sent(foreign, takes_foreign_thinking=True)[1] is None


def test_thinking_of_the_message_whose_calls_are_answered_must_be_complete() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[str | None]:
        body = begun("anthropic", "go", model="claude-opus-4-5")
        answer = answered("anthropic", await ask(session, provider.url, "anthropic", body))
        more = results("anthropic", answer, "content of a")
        less = [{**answer[0], "content": answer[0]["content"][1:]}]
        await ask(session, provider.url, "anthropic", grown(body, *less, *more))
        await ask(session, provider.url, "anthropic", grown(body, *answer, *more))
        return [record.refused for record in provider.requests]

    assert talk(SCRIPT, converse) == [None, "M10", None]


def test_a_provider_that_was_started_again_knows_its_signatures() -> None:
    async def before(provider: SimulatedProvider, session: aiohttp.ClientSession) -> Wire:
        return await conversation(provider, session)

    body = talk(SCRIPT, before)

    async def after(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[str | None]:
        await ask(session, provider.url, "anthropic", body)
        await ask(session, provider.url, "anthropic", {**body, "system": "other"})
        return [record.refused for record in provider.requests]

    assert talk(SCRIPT, after) == [None, "T2"]
    other = {"secret": "another"}
    assert talk(SCRIPT, after, **other) == ["signature", "signature"]


def drop(body: Wire) -> None:
    body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def told(heard: Heard) -> list[tuple[str, str]]:
    assert heard.status == 200, heard.body
    return [(one["path"], one["reason"]) for one in heard.body.get("input_transformations", [])]


def test_what_is_dropped_is_told() -> None:
    def changed(body: Wire) -> None:
        drop(body)
        body["messages"][2]["content"][0]["content"] = "[paged out]"

    broken = [("messages.3.content.0", "prefix_mismatch"), ("messages.5.content.0", "prefix_mismatch")]
    assert told(sent(changed, headers=BETA)[0]) == broken
    assert told(sent(drop, headers=BETA)[0]) == []
    assert told(sent(nothing)[0]) == []


def test_the_thinking_of_another_model_is_dropped_without_being_asked() -> None:
    places = [f"messages.{message}.content.{block}" for message, block in ((1, 0), (1, 2), (3, 0), (5, 0))]
    assert told(sent(of_another_model)[0]) == [(place, "model_binding_mismatch") for place in places]


def test_dropped_thinking_is_not_paid_for() -> None:
    def size(change: Callable[[Wire], None]) -> int:
        usage = sent(change, headers=BETA)[0].body["usage"]
        found: int = usage["input_tokens"]
        return found

    def changed(body: Wire) -> None:
        drop(body)
        body["messages"][2]["content"][0]["content"] = "content of b"

    assert 0 < size(drop) - size(changed) < 20

"""The figures of the page and of `pagein status` against the provider's own bill: recalls, retries, two models, all counted once."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.gateway.recalling_clients import KINDS, Kind, stage
from tests.gateway.stream.test_recalls import CALL, CAPTURE, PEEK
from tests.gateway.test_serve import conversation, sent
from tests.gateway.upstreams import run, says
from tests.gateway.upstreams import stage as upstream

from pagein import wiring
from pagein.gateway.pages.call_history import Board
from pagein.gateway.pages.call_totals import cost_since, session_calls, totals_of
from pagein.gateway.pages.journal_calls import summary_of
from pagein.model.messages import Usage
from pagein.simulator import SimulatedProvider

SCRIPT = [
    [CALL],
    [CAPTURE, PEEK],  # answered by the gateway, and the model goes on within the same answer
    [CALL],
    [{"error": 400, "times": 1}, CAPTURE, PEEK],
    [{"text": "done"}],
]
OTHER = {"Messages": "claude-opus-4-8", "Chat": "gpt-5-mini", "Responses": "gpt-5-mini"}


def billed(provider: SimulatedProvider) -> tuple[Usage, float]:
    """The usage and the dollars of every answered call, from the provider's records."""
    made = [record for record in provider.requests if record.usage is not None]
    return sum((one.usage for one in made if one.usage is not None), Usage()), sum(one.usd or 0.0 for one in made)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_page_and_store_count_what_the_provider_billed_for_recalls_a_retry_and_two_models(
    kind: Kind, tmp_path: Path
) -> None:
    async def go() -> tuple[Usage, float, Board]:
        async with stage(kind, SCRIPT, tmp_path, stream=False) as at:
            await at.client.turn()
            await at.client.turn()
            body, other = at.client.body, OTHER[type(at.client).__name__]
            at.client.body = lambda: {**body(), "model": other}  # type: ignore[method-assign]
            assert (await at.raw())[0] == 400
            await at.client.turn()
            return *billed(at.provider), at.gateway.board

    usage, usd, board = run(go())
    (live,) = board.sessions()
    with closing(wiring.open_for_upkeep(tmp_path / "s.pagein")) as store:
        (name,) = [one.name for one in store.sessions()]
        sessions = [session_calls(name, summary_of(store.entries(name)), {})]
    totals = totals_of(sessions)
    assert live["recalls"] == totals["whole"]["recalls"] == 2
    for seen in (live, totals["whole"]):
        assert (seen["fresh"], seen["read"], seen["written"], seen["output"]) == (
            usage.fresh,
            usage.read,
            usage.written,
            usage.output,
        )
        assert seen["usd"] == pytest.approx(usd)
    assert sorted(row["calls"] for row in totals["model"]) == [1, 2]
    assert sum(row["usd"] or 0.0 for row in totals["model"]) == pytest.approx(usd)
    # what the models recalled is charged to pagein, in the session since the start and in the store's account
    ledger = totals["ledger_usd"]
    assert ledger["recalling"] > 0
    assert live["saved_usd"] == pytest.approx(ledger["gained"] - ledger["spent"] - ledger["recalling"])
    assert cost_since(0.0, sessions)["usd"] == pytest.approx(usd)


def _streamed(message: dict[str, object]) -> bytes:
    end: dict[str, object] = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 1},
    }
    events: list[dict[str, object]] = [{"type": "message_start", "message": message}, end, {"type": "message_stop"}]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 5120}},
            "tools changed, 5120 tokens",
        ),
        ({"cache_miss_reason": {"type": "previous_message_not_found"}}, "previous message not found"),
        ({"cache_miss_reason": None}, ""),  # the comparison is not over
        ({"cache_miss_reason": {"type": 7}}, ""),
        (None, ""),
    ],
)
def test_the_provider_s_own_reason_for_a_cache_miss_stands_beside_pagein_s(
    asked: object, told: str, *, stream: bool, tmp_path: Path
) -> None:
    message = {"type": "message", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}, "diagnostics": asked}
    kind = "text/event-stream" if stream else "application/json"
    answer = says(_streamed(message) if stream else json.dumps(message).encode(), f"Content-Type: {kind}")

    async def go() -> Board:
        async with upstream(answer, tmp_path) as on:
            await sent(on.gateway.url, conversation(1))
        return on.gateway.board

    board = run(go())
    (call,) = board.calls(board.sessions()[0]["name"])
    assert call["told"] == told

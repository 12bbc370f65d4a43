"""Recalls over all wire formats, streamed and not: several rounds, beside calls of the client's, at the cap, broken off, after a restart."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.recalling_clients import KINDS, Kind, Messages, Stage, gateway_on, stage, unmarked
from tests.gateway.stream.test_recalls import CALL, CAPTURE, PEEK, assembled
from tests.gateway.stream.test_recalls_openai import Chat
from tests.gateway.upstreams import run, until

from pagein import wiring
from pagein.model.entries import RequestSent
from pagein.simulator import SimulatedProvider

SEARCH = {"tool": "search", "args": {"pattern": "line 321 of"}}
ROUNDS: list[object] = [
    [CALL],
    [CAPTURE, {"text": "let me see"}, PEEK, SEARCH],
    [CAPTURE, {"text": "and again"}, PEEK],
    [{"text": "all is well"}],
    [{"text": "bye"}],
]
each = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def extends(later: list[dict[str, object]], earlier: list[dict[str, object]]) -> bool:
    return later[: len(earlier)] == earlier


async def said_more(here: Stage, words: str = "go on") -> str:
    here.client.items.append({"role": "user", "content": words})
    return "".join(await here.client.turn())


async def read_into(parts: list[bytes], here: Stage) -> None:
    async with here.client.http.post(here.client.url + "/v1/messages", json=here.client.body()) as answer:
        while part := await answer.content.readany():
            parts.append(part)


@each
@both
def test_each_request_goes_on_from_the_one_before_through_any_number_of_rounds(
    kind: Kind, stream: object, tmp_path: Path
) -> None:
    async def go() -> None:
        async with stage(kind, ROUNDS, tmp_path, stream=bool(stream)) as here:
            assert "Bash" in await here.client.turn()
            shown = "".join(await here.client.turn())
            assert [word for word in shown.split("\n\n") if word] == ["let me see", "and again", "all is well"] or (
                kind is not Chat and shown == "let me seeand againall is well"
            )
            assert await said_more(here) == "bye"
            sent = here.sent()
            assert len(sent) == 5
            assert all(extends(later, earlier) for earlier, later in itertools.pairwise(sent))
            told = json.dumps(sent[3])
            assert "line 198 of what make said" in told
            assert "Found 1 match" in told

    run(go())


def test_what_was_sent_before_a_recall_and_with_it_is_all_read_from_the_cache_afterwards(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(Messages, ROUNDS, tmp_path, stream=True) as here:
            await here.client.turn()
            await here.client.turn()
            await said_more(here)
            used = [record.usage for record in here.provider.requests]
            prompts = [one.fresh + one.read + one.written for one in used if one is not None]
            reads = [one.read for one in used if one is not None]
            assert len(prompts) == 5
            assert [before - read for before, read in zip(prompts, reads[1:], strict=False)] == [0, 0, 0, 0]

    run(go())


def test_a_client_is_told_what_all_turns_wrote_behind_the_prompt_of_the_last(tmp_path: Path) -> None:
    async def go(*, stream: bool) -> None:
        folder = tmp_path / str(stream)
        folder.mkdir()
        async with stage(Messages, ROUNDS, folder, stream=stream) as here:
            await here.client.turn()
            await here.client.turn()
            used = [one.usage for one in here.provider.requests if one.usage is not None]
            assert isinstance(here.client, Messages)
            told = here.client.usage
            assert told["output_tokens"] == sum(one.output for one in used[1:])
            assert told["cache_read_input_tokens"] == used[-1].read
            assert here.gateway._relay is not None
            await here.gateway._relay.wait_for_reports()
            figures = here.gateway.metrics.text().decode()
            assert f'kind="read",route="messages"}} {float(sum(one.read for one in used))}' in figures
            assert 'pagein_recalls_total{answer="text",tool="peek"} 2.0' in figures
            assert here.gateway.board.sessions()[0]["recalls"] == 3

    run(go(stream=True))
    run(go(stream=False))


@each
@both
def test_a_recall_beside_calls_of_the_clients_is_put_beside_its_results(
    kind: Kind, stream: object, tmp_path: Path
) -> None:
    script = [[CALL], [CAPTURE, {"text": "both"}, CALL, PEEK, CALL, SEARCH], [{"text": "done"}], [{"text": "bye"}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=bool(stream)) as here:
            await here.client.turn()
            assert await here.client.turn() == ["both", "Bash", "Bash"]
            assert "".join(await here.client.turn()) == "done"
            assert await said_more(here) == "bye"
            sent = here.sent()
            assert len(sent) == 4
            assert extends(sent[3], sent[2])
            assert extends(sent[2], sent[1])
            news = json.dumps(sent[2][len(sent[1]) :])
            assert news.count("line 198 of what make said") >= 1
            assert "Found 1 match" in news

    run(go())


@each
@both
def test_a_model_that_goes_in_circles_is_told_so_once_and_then_its_answer_is_an_error(
    kind: Kind, stream: object, tmp_path: Path
) -> None:
    async def go(again: int, folder: Path) -> tuple[int, str, int]:
        script = [[CALL], *([[CAPTURE, {"text": "look"}, PEEK]] * again), [{"text": "at last"}]]
        async with stage(kind, script, folder, stream=bool(stream), recalls=2) as here:
            await here.client.turn()
            try:
                status, text = await here.raw()
            except aiohttp.ClientError:
                status, text = 0, ""
            return status, text, len(here.provider.requests)

    (tmp_path / "enough").mkdir()
    (tmp_path / "circles").mkdir()
    status, text, requests = run(go(3, tmp_path / "enough"))
    assert (status, "at last" in text, requests) == (200, True, 5)
    status, text, requests = run(go(9, tmp_path / "circles"))
    assert requests == 5, "two recalls, one that is told that it was enough, and no more"
    assert "message_stop" not in text
    assert "[DONE]" not in text
    assert "response.completed" not in text
    assert ("error" in text) == bool(stream)


@each
def test_a_continuation_that_breaks_off_is_a_break(kind: Kind, tmp_path: Path) -> None:
    script = [[CALL], [CAPTURE, {"text": "look"}, PEEK], [{"break": 4}, {"text": "well " * 40}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=True) as here:
            await here.client.turn()
            with pytest.raises(aiohttp.ClientPayloadError):
                await here.raw()
            assert 'pagein_breaks_total{side="upstream"} 1.0' in here.gateway.metrics.text().decode()

    run(go())


def test_what_a_client_kept_of_an_answer_that_broke_off_stands_behind_what_was_recalled_for_it(tmp_path: Path) -> None:
    script = [
        [{"thinking": "first make"}, CALL],
        [CAPTURE, {"thinking": "what was it"}, {"text": "look"}, PEEK],
        [{"break": 12}, {"delay": 0.02}, {"thinking": "aha"}, {"text": "well " * 400}],
        [{"text": "bye"}],
    ]

    async def go() -> None:
        async with stage(Messages, script, tmp_path, stream=True) as here:
            await here.client.turn()
            parts: list[bytes] = []
            with pytest.raises(aiohttp.ClientPayloadError):
                await read_into(parts, here)
            frames = [frame for frame in b"".join(parts).decode().split("\n\n")[:-1] if frame]
            events = [json.loads(frame.partition("data: ")[2]) for frame in frames]
            end: list[dict[str, Any]] = [{"type": "message_delta", "delta": {"stop_reason": None}, "usage": {}}]
            end.append({"type": "message_stop"})
            kept = assembled([*events, *end])["content"]
            assert [one["type"] for one in kept] == ["thinking", "text", "thinking", "text"]
            here.client.items.append({"role": "assistant", "content": kept})
            assert await said_more(here) == "bye"
            sent = here.sent()
            assert extends(sent[-1], sent[-2])

    run(go())


@each
def test_an_error_in_the_middle_of_a_continuation_passes_as_it_came(kind: Kind, tmp_path: Path) -> None:
    script = [
        [CALL],
        [CAPTURE, {"text": "look"}, PEEK],
        [{"error": 529, "after": 4, "times": 0}, {"text": "well " * 40}],
    ]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=True) as here:
            await here.client.turn()
            status, text = await here.raw()
            assert status == 200
            assert "verloaded" in text
            assert not any(end in text for end in ("message_stop", "[DONE]", "response.completed"))

    run(go())


@each
@both
def test_a_continuation_that_is_refused_is_told_in_the_providers_words(
    kind: Kind, stream: object, tmp_path: Path
) -> None:
    script = [
        [CALL],
        [CAPTURE, {"text": "look"}, PEEK],
        [{"error": 429, "retry_after": 2, "times": 0}],
    ]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=bool(stream)) as here:
            await here.client.turn()
            status, text = await here.raw()
            assert status == (200 if stream else 429)
            assert "rate limit" in text.lower()
            assert not any(end in text for end in ("message_stop", "[DONE]", "response.completed"))

    run(go())


@each
@both
def test_after_a_restart_the_same_turns_stand_in_place_of_the_clients_message(
    kind: Kind, stream: object, tmp_path: Path
) -> None:
    async def go() -> None:
        async with SimulatedProvider(ROUNDS) as provider, aiohttp.ClientSession() as http:
            async with gateway_on(provider, tmp_path) as gateway:
                client = kind(gateway.url, http, bool(stream))
                await client.turn()
                await client.turn()
            async with gateway_on(provider, tmp_path) as gateway:
                client.url = gateway.url
                client.items.append({"role": "user", "content": "go on"})
                assert "".join(await client.turn()) == "bye"
            bodies = [unmarked(record.body[client.key]) for record in provider.requests]
            assert extends(bodies[-1], bodies[-2])
            assert [record.body["tools"] for record in provider.requests] == [provider.requests[0].body["tools"]] * 5
            assert [record.refused for record in provider.requests if record.refused] == []

    run(go())


def test_thinking_in_every_turn_stays_valid_through_recalls_beside_calls_and_behind_them(tmp_path: Path) -> None:
    script = [
        [{"thinking": "first make"}, CALL],
        [CAPTURE, {"thinking": "what was it"}, PEEK],
        [CAPTURE, {"thinking": "and that"}, {"text": "hm"}, PEEK, CALL],
        [{"thinking": "aha"}, CALL],
        [{"thinking": "so"}, {"text": "done"}],
        [{"text": "bye"}],
    ]

    async def go(*, stream: bool) -> None:
        folder = tmp_path / str(stream)
        folder.mkdir()
        async with stage(Messages, script, folder, stream=stream) as here:
            assert await here.client.turn() == ["Bash"]
            assert await here.client.turn() == ["hm", "Bash"]
            assert await here.client.turn() == ["Bash"]
            assert await here.client.turn() == ["done"]
            assert await said_more(here) == "bye"
            sent = here.sent()
            assert all(extends(later, earlier) for earlier, later in itertools.pairwise(sent))

    run(go(stream=True))
    run(go(stream=False))


@each
def test_a_recall_of_what_never_was_says_so_and_the_model_goes_on(kind: Kind, tmp_path: Path) -> None:
    wrong = [{"tool": "peek", "args": {"id": name}} for name in ("pg-00000000-00000000", "notes.md")]
    script = [[CALL], [*wrong, {"tool": "peek", "args": {}}], [{"text": "well"}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=True) as here:
            await here.client.turn()
            assert "".join(await here.client.turn()) == "well"
            news = json.dumps(here.sent()[-1])
            assert "Object pg-00000000-00000000 not found" in news
            assert "is no id of what was taken out of your context" in news
            assert "Missing required parameter: id" in news
            assert 'pagein_recalls_total{answer="error",tool="peek"} 3.0' in here.gateway.metrics.text().decode()

    run(go())


def test_what_was_recalled_is_warm_on_the_branch_that_recalled_it_and_on_no_other(tmp_path: Path) -> None:
    async def go() -> str:
        async with stage(Messages, ROUNDS, tmp_path, stream=True) as here:
            await here.client.turn()
            before = list(here.client.items)
            await here.client.turn()
            await said_more(here)
            other = {"role": "user", "content": [*before[-1]["content"], {"type": "text", "text": "never mind it"}]}
            here.client.items = [*before[:-1], other]
            await here.client.turn()
            assert here.gateway._relay is not None
            await here.gateway._relay.wait_for_reports()
            return here.gateway.board.sessions()[0]["name"]

    with wiring.open(tmp_path / "s.pagein") as engine:
        session = engine.session(run(go()))
        journal = session.journal
        sent = [one.id for one in journal.newest(len(journal)) if isinstance(one.body, RequestSent)]
        warm = [bool(journal.state_at(one).warm.objects) for one in sent]
    assert warm == [False, False, True, False]


@each
def test_a_session_keeps_the_tools_that_it_began_with(kind: Kind, tmp_path: Path) -> None:
    async def tools(folder: Path, began: object, later: object) -> list[int]:
        counts = []
        async with SimulatedProvider([[CALL], [{"text": "well"}]]) as provider, aiohttp.ClientSession() as http:
            client = kind("", http, stream=False)
            for recall in (began, later):
                async with gateway_on(provider, folder, recall=bool(recall)) as gateway:
                    client.url = gateway.url
                    await client.turn()
                    counts.append(len(provider.requests[-1].body["tools"]))
        return counts

    for name in ("with", "without", "no more"):
        (tmp_path / name).mkdir()
    assert run(tools(tmp_path / "with", began=True, later=True)) == [3, 3]
    assert run(tools(tmp_path / "without", began=False, later=True)) == [1, 1]
    assert run(tools(tmp_path / "no more", began=True, later=False)) == [3, 1]


@each
def test_a_client_that_hangs_up_during_a_recall_ends_the_call_upstream(kind: Kind, tmp_path: Path) -> None:
    script = [[CALL], [CAPTURE, {"text": "look"}, PEEK], [{"wait": 20}, {"text": "late"}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=True) as here:
            await here.client.turn()
            asking = asyncio.ensure_future(here.raw())
            await until(lambda: len(here.provider.requests) == 3)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await until(lambda: not here.gateway.under_way)
            assert 'pagein_breaks_total{side="client"} 1.0' in here.gateway.metrics.text().decode()

    run(go())

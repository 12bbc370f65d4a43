"""What a client saw of an answer is remembered without a further request, streamed or whole, with recalls, and cut short."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.recalling_clients import gateway_on
from tests.gateway.stream.test_recalls import CALL, CAPTURE, PEEK, Client
from tests.gateway.upstreams import run, stage, streams

from pagein import wiring
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.memory.indexer import Indexer
from pagein.simulator import SimulatedProvider
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools.session_commands import chat

ASKED = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 99,
    "stream": True,
    "messages": [{"role": "user", "content": "go"}],
}


def steps(path: Path) -> list[dict[str, Any]]:
    """The steps of the newest chat in a store, thinking aside."""
    store = SqliteStore(path)
    try:
        Indexer(store).save_open_chats(9e9)
        _, turns = chat(store)
        return [part for turn in turns for part in turn["steps"] if part["kind"] != "thinking"]
    finally:
        store.close()


def event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def test_an_answer_that_breaks_off_is_kept_and_labelled(tmp_path: Path) -> None:
    usage = {"input_tokens": 9, "output_tokens": 1}
    parts = [
        event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": usage}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "half an ans"}),
    ]

    async def go() -> None:
        curator = EngineCurator(wiring.open(tmp_path / "s.db", workspace=tmp_path))
        async with stage(streams(parts, end=False), tmp_path, curator=curator) as on:
            with pytest.raises(aiohttp.ClientPayloadError):
                await on.post("/v1/messages", json.dumps(ASKED).encode(), x_api_key="k")
            assert [one["failure"] for one in await on.calls()] == [""]

    run(go())
    assert [(part["text"], part.get("cut_short")) for part in steps(tmp_path / "s.db")] == [("half an ans", True)]


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_behind_recalls_is_remembered_as_its_client_saw_it(stream: bool, tmp_path: Path) -> None:  # noqa: FBT001 - drawn
    script = [[CALL], [CAPTURE, {"text": "I look."}, PEEK], [{"text": "It is built."}]]

    async def go() -> None:
        async with (
            SimulatedProvider(script) as provider,
            gateway_on(provider, tmp_path) as gateway,
            aiohttp.ClientSession() as http,
        ):
            client = Client(gateway.url, http, stream, [{"role": "user", "content": "build it"}])
            await client.turn()
            await client.turn()
            await gateway.settle()

    run(go())
    told = [part.get("text") or part["tool"] for part in steps(tmp_path / "s.pagein")]
    assert told[0] == "Bash"
    assert told[1:] == ["I look.", "It is built."]

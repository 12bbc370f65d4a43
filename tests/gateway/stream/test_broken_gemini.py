"""An answer of Gemini that breaks off: clients take a broken connection for final, and repeat after an error."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.recalling_clients import gateway_on
from tests.gateway.stream.test_recalls import CAPTURE, OUTPUT, PEEK

from pagein.providers.wire.gemini_generate_content.turns import FILLER
from pagein.simulator import SimulatedProvider

PATH = "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
CALL = {"functionCall": {"id": "c1", "name": "Bash", "args": {"command": "make"}}, "thoughtSignature": FILLER}
RESULT = {"functionResponse": {"id": "c1", "name": "Bash", "response": {"output": OUTPUT}}}
BODY: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "build it"}]},
        {"role": "model", "parts": [CALL]},
        {"role": "user", "parts": [RESULT]},
    ],
    "tools": [{"functionDeclarations": [{"name": "Bash", "parameters": {"type": "object"}}]}],
}


RECALL = [CAPTURE, {"thinking": "hm"}, PEEK]
BROKEN = [{"break": 4}, {"delay": 0.02}, {"text": "well " * 40}]


@pytest.mark.parametrize("turns", [[BROKEN], [RECALL, BROKEN]], ids=["at once", "after a recall"])
def test_a_client_that_is_offered_recall_gets_an_error_before_the_break(turns: list[object], tmp_path: Path) -> None:
    async def go() -> tuple[bytes, bool, str]:
        async with (
            SimulatedProvider([[{"text": "of the past"}], *turns]) as provider,
            gateway_on(provider, tmp_path) as gateway,
            aiohttp.ClientSession() as http,
        ):
            came, broke = b"", False
            async with http.post(gateway.url + PATH, json=BODY, headers={"x-goog-api-key": "k"}) as answer:
                try:
                    while part := await answer.content.readany():
                        came += part
                except aiohttp.ClientPayloadError:
                    broke = True
            assert len(provider.requests) == len(turns)
            assert "peek" in json.dumps(provider.requests[0].body["tools"])
            return came, broke, gateway.metrics.text().decode()

    came, broke, metrics = asyncio.run(go())
    *before, last = [
        json.loads(frame.removeprefix(b"data: ")) for frame in came.replace(b"\r", b"").split(b"\n\n") if frame
    ]
    assert "well" in str(before)
    assert (last["error"]["code"], last["error"]["status"]) == (503, "UNAVAILABLE")
    assert broke
    assert 'pagein_breaks_total{side="upstream"} 1.0' in metrics

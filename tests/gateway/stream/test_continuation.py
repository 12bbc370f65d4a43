"""A request that continues after the model's answer to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.recalling_clients import KINDS, Kind, stage
from tests.gateway.stream.test_recalls import CALL, CAPTURE, PEEK
from tests.gateway.upstreams import run

from pagein.gateway import answer_stream
from pagein.gateway.stream.continuation import continue_request

MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
SAID = b'{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"peek","input":{}}]}'
RESULT = b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}'


def request(system: int, messages: int) -> dict[str, Any]:
    """A request with so many marks in front of its messages and in them."""
    text = {"type": "text", "text": "hi"}
    blocks = [{**text, **MARK}] * messages + [text] * (not messages)
    return {"system": [{**text, **MARK}] * system, "messages": [{"role": "user", "content": blocks}]}


def marks(system: int, messages: int) -> tuple[list[bool], bool]:
    """Which blocks of the client's message are marked afterwards, and whether ours is, as the client's last was."""
    body = json.dumps(request(system, messages)).encode()
    made = json.loads(continue_request(body, "anthropic", (SAID, RESULT)))
    first, said, last = made["messages"]
    assert said == json.loads(SAID)
    ours = last["content"][0].get("cache_control")
    assert ours in (None, MARK["cache_control"])
    return ["cache_control" in one for one in first["content"]], ours is not None


def test_the_end_is_marked_as_the_clients_last_message_was() -> None:
    assert marks(2, 1) == ([True], True)


def test_where_four_marks_stand_the_clients_last_gives_way() -> None:
    assert marks(2, 2) == ([True, False], True)


def test_a_client_that_marks_no_message_is_not_given_a_mark() -> None:
    assert marks(2, 0) == ([False], False)


def test_a_request_that_is_one_bare_string_is_gone_on_with_as_a_message() -> None:
    made = json.loads(continue_request(b'{"input":"hi"}', "openai_responses", (b'{"type":"function_call"}',)))
    assert made["input"] == [{"role": "user", "content": "hi"}, {"type": "function_call"}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_hears_of_us_while_it_waits(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_stream, "_QUIET", 0.05)
    script = [[CALL], [CAPTURE, {"text": "look"}, PEEK], [{"wait": 0.5}, {"text": "well"}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=True) as here:
            await here.client.turn()
            _, text = await here.raw()
            waiting = text.partition("look")[2].partition("well")[0]
            assert waiting.count('"ping"') + waiting.count(": pagein is recalling") >= 3

    run(go())

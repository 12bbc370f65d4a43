"""Turns that the client did not see, in requests that come behind them."""

import json
from typing import Any

from pagein import wiring
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.providers.wire import check_body

BASH = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {}}}}
ASKED = {"role": "user", "content": "hi"}
THEIRS = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
OURS = {"type": "tool_use", "id": "toolu_2", "name": "peek", "input": {"id": "pg-01234567-89abcdef"}}
ANSWER = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "what was there"}


def body(*messages: dict[str, Any]) -> bytes:
    whole = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": [BASH], "messages": [ASKED, *messages]}
    return json.dumps(whole).encode()


def test_a_call_of_ours_goes_out_with_its_result_or_not_at_all() -> None:
    said, actual = ({"role": "assistant", "content": calls} for calls in ([THEIRS], [THEIRS, OURS]))
    exchange = RecallExchange(
        (json.dumps(said).encode(),), (json.dumps(actual).encode(),), (json.dumps(ANSWER).encode(),)
    )
    with wiring.open(":memory:") as engine:
        first = engine.prepare(body(), "anthropic", at=0.0, hint="one")
        assert engine.splice_answer(first, exchange) is None
        alone = body(said)
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]}
        assert engine.prepare(alone, "anthropic", at=1.0, hint="one").body == alone
        behind = engine.prepare(body(said, result), "anthropic", at=2.0, hint="one").request
    assert [one["content"] for one in behind["messages"][1:]] == [[THEIRS, OURS], [ANSWER, *result["content"]]]
    assert check_body(behind, "anthropic") == []

"""Turns that the client did not see, in requests that come behind them."""

import json
from pathlib import Path
from typing import Any

import pagein
from pagein import wiring
from pagein.engine.engine import Engine, Settings
from pagein.engine.send.recall_exchanges import LEFT, RecallExchange
from pagein.providers.wire import check_body
from pagein.testing.eager_residency import eager

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


BIG = "".join(f"line {number} of an output\n" for number in range(200))
SAID = {"role": "assistant", "content": "It is the port."}
PEEKED = {"type": "tool_use", "id": "toolu_9", "name": "peek", "input": {"id": "pg-01234567-89abcdef"}}


def test_recalled_texts_leave_with_a_later_epoch_and_stay_away(tmp_path: Path) -> None:
    """A text recalled alone, and one recalled beside a call of the client's, leave once an epoch rewrites them anyway."""
    talk: list[dict[str, Any]] = []

    def work(engine: Engine, *, exchange: RecallExchange | None = None, peeks: bool = False) -> list[dict[str, Any]]:
        """Send the conversation with a further call of the client's, and record how it was answered."""
        prepared = engine.prepare(body(*talk), "anthropic", at=None, hint="one")
        assert prepared.failure is None
        assert check_body(prepared.request, "anthropic") == []
        call = {**THEIRS, "id": f"toolu_a{len(talk)}"}
        said = SAID if exchange else {"role": "assistant", "content": [call]}
        if peeks:
            actual = {"role": "assistant", "content": [call, OURS]}
            exchange = RecallExchange(_raws(said), _raws(actual), _raws({**ANSWER, "content": BIG}))
        if exchange is not None:
            assert engine.splice_answer(prepared, exchange) is None
        behind = "go on" if said is SAID else [{"type": "tool_result", "tool_use_id": call["id"], "content": BIG}]
        talk.extend((said, {"role": "user", "content": behind}))
        return list(prepared.request["messages"])

    asked = {"role": "assistant", "content": [PEEKED]}
    found = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": BIG}]}
    settings = Settings(residency=eager(keep_calls=5, min_tokens=50))
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=settings) as engine:
        work(engine)
        work(engine, exchange=RecallExchange(_raws(SAID), _raws(asked, found, SAID)))
        work(engine, peeks=True)
        sent = [work(engine) for _ in range(8)]
    shown = [(_text(one, "toolu_9"), _text(one, "toolu_2")) for one in sent]
    assert shown[0] == (BIG, BIG), "young"
    assert shown[-1] == (LEFT, LEFT)
    assert shown == sorted(shown, key=lambda one: one == (LEFT, LEFT)), "what left stays away"
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=settings) as later:
        again = work(later)
    assert (_text(again, "toolu_9"), _text(again, "toolu_2")) == (LEFT, LEFT)


def _raws(*messages: dict[str, Any]) -> tuple[bytes, ...]:
    return tuple(json.dumps(one).encode() for one in messages)


def _text(messages: list[dict[str, Any]], call: str) -> str:
    """The result of a call in a request."""
    blocks = [one for message in messages if isinstance(message["content"], list) for one in message["content"]]
    (found,) = (one["content"] for one in blocks if one.get("tool_use_id") == call)
    return str(found)

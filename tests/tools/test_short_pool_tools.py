"""The tools for pools beside a client's own: what they answer, and what the next request shows."""

import json
from typing import Any

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.policy.pools.pool_values import PoolRules
from pagein.tools.brief import OFFERS as RECALL
from pagein.tools.short_pool_tools import OFFERS, answer_pool_call

BASH = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
Wire = dict[str, Any]


def opened(*clients: str) -> Engine:
    settings = Settings(layout="pooled", pooled_clients=clients, pools=PoolRules(1, 1, 20))
    return pagein.open(":memory:", settings=settings)


def conversation(turns: int) -> list[Wire]:
    items: list[Wire] = [{"role": "user", "content": "build it"}]
    for place in range(turns):
        call = {"type": "tool_use", "id": f"t{place}", "name": "Bash", "input": {"command": f"make {place}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{place}", "content": f"output {place} " * 200}
        items += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return items


def prepare(engine: Engine, items: list[Wire], at: float, tool: Wire = BASH) -> PreparedRequest:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": [tool], "messages": items}
    made = engine.prepare(json.dumps(body).encode(), "anthropic", at=at, hint="one", offers=(*RECALL, *OFFERS))
    assert made.failure is None
    return made


def ask(engine: Engine, prepared: PreparedRequest, name: str, **arguments: object) -> str:
    return engine.behind(prepared, lambda session: answer_pool_call(session, name, arguments)).text


def test_what_has_left_is_in_the_answer_and_not_in_the_window_again() -> None:
    with opened() as engine:
        items = conversation(3)
        for turns in range(4):
            prepare(engine, conversation(turns), 10.0 * turns)
        prepared = prepare(
            engine, [*items, {"role": "assistant", "content": "so"}, {"role": "user", "content": "go on"}], 9000
        )
        assert b"output 0" not in prepared.body, "the cache had expired, so what was not active left"
        answer = ask(engine, prepared, "activate", id="t0")
        assert answer == f"Activated t0\nACTIVE_CONTENT id=t0\n{'output 0 ' * 200}"
        call = {"type": "tool_use", "id": "own", "name": "activate", "input": {"id": "t0"}}
        between = [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "own", "content": answer}]},
        ]
        said = {"role": "assistant", "content": [{"type": "text", "text": "I see"}]}
        exchange = RecallExchange((raw(said),), tuple(map(raw, (*between, said))))
        assert engine.splice_answer(prepared, exchange) is None
        longer = [*items, {"role": "assistant", "content": "so"}, {"role": "user", "content": "go on"}, said]
        again = prepare(engine, [*longer, {"role": "user", "content": "well?"}], 9010)
        assert again.body.count(b"ACTIVE_CONTENT id=t0\\n") == 1
        assert "stands above" in ask(engine, again, "activate", id="t0")


def test_what_the_window_still_shows_is_not_repeated() -> None:
    with opened() as engine:
        prepare(engine, conversation(0), 0)
        prepared = prepare(engine, conversation(3), 10)
        assert ask(engine, prepared, "pin", id="t2").startswith("Pinned t2. Its content stands above")
        assert ask(engine, prepared, "deactivate", id="t2") == "Deactivated t2"
        assert ask(engine, prepared, "activate", id="/etc/passwd") == "Object not found: /etc/passwd"


def test_a_client_with_tools_of_the_same_names_stays_inline_and_the_journal_says_why() -> None:
    with opened() as engine:
        prepared = prepare(engine, conversation(2), 0, {**BASH, "name": "pin"})
        assert b"toolcall_ref" not in prepared.body
        told = [str(entry.body) for entry in engine.session("one").journal]
        assert any("InlineNote" in one or "names of those for pools" in one for one in told)


def test_only_the_named_clients_are_pooled() -> None:
    with opened("codex") as engine:
        assert b"toolcall_ref" not in prepare(engine, conversation(2), 0).body


def raw(value: Wire) -> bytes:
    return json.dumps(value).encode()

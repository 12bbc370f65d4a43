"""At which prices requests are decided."""

import json
from pathlib import Path

import pytest
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.cache.cache_inputs import economics_for
from pagein.engine.intake.message_chain import transcript
from pagein.policy.economics.rewrite_cost import Economics
from pagein.providers.wire.request_body import open_body

OCTOBER, NOVEMBER = 1_790_900_000.0, 1_794_000_000.0


def asked(model: str, ttl: str | None = None, *, at: float | None = NOVEMBER) -> Economics | None:
    fields = json.loads(clients.body(Conversation("please"), "anthropic"))
    if ttl:
        fields["messages"][0]["content"][0]["cache_control"]["ttl"] = ttl
    envelope = open_body(json.dumps(fields).encode(), "anthropic")
    return economics_for(model, envelope.fields, transcript(envelope.items, "anthropic"), at)


def test_a_models_own_prices_of_the_day_hold() -> None:
    before, now = asked("claude-sonnet-5-5", at=OCTOBER), asked("claude-sonnet-5-5")
    assert before is not None
    assert now is not None
    assert (before.read, now.read) == (0.1, 0.05)


@pytest.mark.parametrize(("ttl", "write", "lifetime"), [(None, 1.25, 300), ("5m", 1.25, 300), ("1h", 2.0, 3600)])
def test_the_lifetime_is_the_one_that_the_clients_last_mark_asks_for(
    ttl: str | None, write: float, lifetime: float
) -> None:
    found = asked("claude-sonnet-4-5", ttl)
    assert found is not None
    assert (found.write, found.lifetime) == (write, lifetime)


def test_a_model_that_nobody_knows_has_no_prices_of_its_own() -> None:
    assert asked("a-model-of-tomorrow") is None
    assert asked("") is None


def test_a_pause_is_free_only_where_it_outlasts_the_clients_marks(tmp_path: Path) -> None:
    """Ten minutes: past the short lifetime, within the long one."""
    opened_epochs: dict[str, list[bool]] = {}
    for ttl in ("5m", "1h"):
        with pagein.open(tmp_path / f"{ttl}.db", workspace=tmp_path) as engine:
            talk = Conversation("please do it")
            for _ in range(8):
                talk = talk.then(Turn("on it", ("word " * 400,)))
                body = clients.body(talk, "anthropic", Manner())
                mark = b'"cache_control": {"type": "ephemeral", "ttl": "%s"}' % ttl.encode()
                body = body.replace(b'"cache_control":{"type":"ephemeral"}', mark)
                prepared = engine.prepare(body, "anthropic", at=600.0 * len(talk.turns), hint="one")
                opened_epochs.setdefault(ttl, []).append(prepared.opened is not None)
    assert any(opened_epochs["5m"])
    assert sum(opened_epochs["1h"]) < sum(opened_epochs["5m"])

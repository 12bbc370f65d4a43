"""The lifetimes that a session may choose because its store has saved: the choice is journaled (law 6), and waits for trust in the provider."""

import json
from pathlib import Path

import pytest
from tests.engine.window.test_shown_once import Talk

import pagein
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.call import RequestFacts
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.messages import Usage

NOON = 1_790_000_000.0
HOUR = {"type": "ephemeral", "ttl": "1h"}
MODEL = "claude-sonnet-4-5"


def _send(engine: Engine, talk: Talk, at: float, *, documented: bool = True) -> PreparedRequest:
    body = json.loads(talk.body())
    body["system"][0]["cache_control"] = body["messages"][-1]["content"][-1]["cache_control"] = HOUR
    facts = RequestFacts(documented=documented)
    prepared = engine.prepare(json.dumps(body).encode(), "anthropic", at=at, hint="one", lasting=0.0, facts=facts)
    assert prepared.failure is None
    return prepared


def _asks_for_hours(prepared: PreparedRequest) -> bool:
    """Whether a breakpoint behind the prompt prefix, which keeps its hour, asks for one."""
    return '"1h"' in json.dumps(json.loads(prepared.body)["messages"])


def test_a_retry_in_a_process_with_another_reserve_sends_the_bytes_that_were_chosen(tmp_path: Path) -> None:
    store, talk = tmp_path / "store.db", Talk()
    with pagein.open(store, workspace=tmp_path) as engine:
        engine.evidence.add_savings(600_000.0, NOON)
        first = _send(engine, talk, NOON)
        assert not _asks_for_hours(first), "the reserve lets the first request begin with five minutes"
        engine.evidence.add_savings(-600_000.0, NOON)
    with pagein.open(store, workspace=tmp_path) as later:
        assert _asks_for_hours(later.prepare(_other(talk), "anthropic", at=NOON + 5, hint="two", lasting=0.0))
        again = _send(later, talk, NOON + 9)
        assert again.body == first.body
        assert again.placed == "retried"


def _other(talk: Talk) -> bytes:
    body = json.loads(talk.body())
    body["system"][0]["cache_control"] = body["messages"][-1]["content"][-1]["cache_control"] = HOUR
    return json.dumps(body).encode()


def test_a_fork_in_a_process_with_another_reserve_continues_from_the_same_state(tmp_path: Path) -> None:
    store, talk = tmp_path / "store.db", Talk()
    with pagein.open(store, workspace=tmp_path) as engine:
        engine.evidence.add_savings(600_000.0, NOON)
        first = _send(engine, talk, NOON)
        engine.observe(first, Usage(fresh=0, read=0, written=8000, output=40))
        talk.runs("one way")
        ours = _send(engine, talk, NOON + 20)
        engine.observe(ours, Usage(fresh=0, read=8000, written=500, output=40))
        engine.evidence.add_savings(-700_000.0, NOON)
    fork = Talk().runs("another way")
    with pagein.open(store, workspace=tmp_path) as later:
        theirs = _send(later, fork, NOON + 40)
        assert ours.terms is not None
        assert theirs.terms is not None
        assert theirs.terms.before == ours.terms.before, "what the cache holds behind the shared request"
        assert theirs.terms.reserve <= 0 < ours.terms.reserve
        assert _send(later, talk, NOON + 50).body == ours.body


@pytest.mark.parametrize("trusted", [False, True])
def test_at_an_address_that_is_not_the_vendors_own_nothing_is_exposed_before_a_verdict(
    tmp_path: Path, *, trusted: bool
) -> None:
    talk = Talk()
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        engine.evidence.add_savings(600_000.0, NOON)
        if trusted:
            engine.evidence.add(CacheVerdictNote(MODEL, "hour", held=True, at=NOON))
        for number in range(4):
            prepared = _send(engine, talk, NOON + 70 * number, documented=False)
            hours = prepared.body.count(b'"1h"')
            if not trusted:
                assert hours == 2, "the client's own breakpoints"
                assert prepared.terms is not None
                assert prepared.terms.exposable == 0
            elif number == 0:
                assert hours == 1, "that of the prompt prefix"
            engine.observe(
                prepared,
                Usage(fresh=0, read=8000 * (number > 0), written=8000 if not number else 500, written_1h=0, output=40),
            )
            talk.runs("a part is built")

"""Retries have the same bytes, and failed requests do not count as sent."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine import wire_clients as clients
from tests.engine.test_requests import _locked
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.errors import HostError
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.entries import NoteEntry, RequestSent
from pagein.model.journal_notes import OtherNote, PinNote, UsageNote
from pagein.model.messages import Usage
from pagein.policy.eviction.residency import PRICED
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60))
LONG = {"type": "ephemeral", "ttl": "1h"}
PRICED_ALONE = Settings(PRICED)
BIG = "word " * 1500


def opened(folder: Path, settings: Settings = EAGER) -> Engine:
    """An engine that knows the provider to keep what was written for an hour."""
    engine = pagein.open(folder / "store.db", workspace=folder, settings=settings)
    engine.evidence.add(CacheVerdictNote("claude-sonnet-4-5", "hour", held=True, at=0.0))
    return engine


def worked(turns: int, result: str = BIG) -> Conversation:
    talk = Conversation("please do it")
    for _ in range(turns):
        talk = talk.then(Turn("on it", (result,)))
    return talk


def asked(turns: int, result: str = BIG) -> bytes:
    body: dict[str, Any] = json.loads(clients.body(worked(turns, result), "anthropic", Manner(marks=1)))
    body["messages"][-1]["content"][-1]["cache_control"] = LONG
    return json.dumps(body).encode()


def ask(engine: Engine, turns: int, at: float, lasting: float, result: str = BIG) -> PreparedRequest:
    prepared = engine.prepare(asked(turns, result), "anthropic", at=at, hint="one", lasting=lasting)
    assert prepared.failure is None
    return prepared


def test_on_the_way_back_to_a_model_it_is_known_that_its_cache_is_another_one(tmp_path: Path) -> None:
    """Also in another process: what was exposed is written off, and no pause is cold before the lifetime that the host asks for has ended."""
    with opened(tmp_path, PRICED_ALONE) as engine:
        for turns in range(4):
            prepared = ask(engine, turns, 30.0 * turns, 1e6, "done")
            engine.observe(prepared, Usage(read=40_000 + 20 * turns, written=20))
        assert prepared.terms is not None
        assert prepared.terms.shortens
        model = json.loads(asked(0))["model"].encode()
        for turns, at in ((4, 200.0), (5, 900.0)):
            body = asked(turns, "done")
            body = body.replace(model, b"claude-sonnet-4-6") if turns == 4 else body
            prepared = engine.prepare(body, "anthropic", at=at, hint="one", lasting=1e6)
            engine.observe(prepared, Usage(read=10_000, written=31_000))
            assert prepared.terms is not None
            assert not prepared.terms.shortens
            assert prepared.terms.before.lease.elsewhere >= 90.0 + 3600.0
            assert prepared.terms.before.lease.held == 0
    with opened(tmp_path, PRICED_ALONE) as engine:
        terms = ask(engine, 6, 930.0, 1e6, "done").terms
        assert terms is not None
        assert terms.before.lease.elsewhere == 200.0 + 3600.0


def test_a_retry_asks_for_the_lifetime_that_the_first_try_asked_for(tmp_path: Path) -> None:
    """Behind a pause, in another process, with keep-alive switched off or on: whatever would be chosen by then."""
    with opened(tmp_path, PRICED_ALONE) as engine:
        bodies = []
        for turns in range(6):
            prepared = ask(engine, turns, 30.0 * turns, 1e6, "done")  # little is at risk with each
            engine.observe(prepared, Usage(read=40_000 + 20 * turns, written=20))
            bodies.append(prepared.body)
        assert any(b'"1h"' not in one for one in bodies)
        again = [
            ask(engine, turns, 9000.0 + turns, lasting, "done").body for turns in range(6) for lasting in (1e6, 0.0)
        ]
    assert again == [one for one in bodies for _ in range(2)]
    with opened(tmp_path, PRICED_ALONE) as other:
        assert [ask(other, turns, 99000.0, 0.0, "done").body for turns in range(6)] == bodies
    with opened(tmp_path) as plain:
        first = plain.prepare(asked(2), "anthropic", at=0.0, hint="two")
        retried = plain.prepare(asked(2), "anthropic", at=1.0, hint="two", lasting=1e6)
    assert (retried.placed, retried.body) == ("retried", first.body)


def test_what_fails_behind_the_decision_is_not_believed_to_have_been_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as engine:
        for turns in range(3):
            ask(engine, turns, 10.0 * turns, 0.0)
        before = len(engine.session("one").journal)
        rendered = engine.session("one").traffic._stages.renderer
        with monkeypatch.context() as broken:
            broken.setattr(rendered, "render", lambda *_: 1 / 0)
            failed = engine.prepare(asked(3), "anthropic", at=30.0, hint="one")
        assert "ZeroDivisionError" in (failed.failure or "")
        assert failed.entry is None
        assert len(engine.session("one").journal) == before
        again = ask(engine, 3, 40.0, 0.0)
        assert (again.placed, again.body) == ("retried", failed.body)  # what went out instead was journaled since
        assert len(engine.session("one").journal) > before


def test_what_others_noted_of_their_requests_is_not_said_again_behind_ones_own(tmp_path: Path) -> None:
    """A process that could not keep what happened takes over what was read and wished for, and nothing of others' requests."""
    with opened(tmp_path) as one, opened(tmp_path) as other:
        ask(one, 1, 0.0, 0.0)
        session = one.session("one")
        with _locked(tmp_path / "store.db", one):
            session.note(OtherNote("app.note", "{}"))
            with pytest.raises(Exception, match="locked"):
                session.keep()
        theirs = ask(other, 2, 10.0, 0.0)
        other.observe(theirs, Usage(fresh=123))
        other.session("one").hand.say("no tabs")
        session.catch_up()
        branch = session.journal.branch(session.leaf)
        kinds = [type(entry.body.note) for entry in branch if isinstance(entry.body, NoteEntry)]
        assert UsageNote not in kinds
        assert kinds.count(PinNote) == 1
        assert sum(isinstance(entry.body, RequestSent) for entry in session.journal.branch(session.leaf)) == 1


def test_a_request_that_stands_in_no_session_makes_none(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        nowhere = PreparedRequest(b"{}", "anthropic")
        assert engine.note_keepalive(nowhere, Usage(fresh=1), 0.0) is None
        assert engine.splice_answer(nowhere, RecallExchange((), ())) == "the request stands in no session"
        with pytest.raises(HostError, match="stands in no session"):
            engine.behind(nowhere, lambda session: session.name)
        assert "" not in engine._sessions


def test_the_engines_own_setting_has_the_witness_asked(tmp_path: Path) -> None:
    """Whoever makes what the engine has of the world."""
    with pagein.open(tmp_path / "s.db", workspace=tmp_path, settings=Settings(witness=True)) as engine:
        outside = engine._outside
        assert outside is not None
        assert outside.witness_source is not None
    with pagein.open(tmp_path / "s.db", workspace=tmp_path) as engine:
        outside = engine._outside
        assert outside is not None
        assert outside.witness_source is None

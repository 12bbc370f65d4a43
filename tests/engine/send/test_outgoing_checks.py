"""Whatever differs from the client's own request is held to the rules before it leaves, in its final bytes."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine import wire_clients as clients
from tests.engine.wire_clients import Conversation, Manner, Turn

import pagein
from pagein.engine.cache import branch_leases, cache_breakpoints
from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send import call, outgoing_body, splice
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.entries import RequestSent
from pagein.model.journal_notes import BreakpointChoice
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.providers.wire.breakpoint_edits import Changes
from pagein.providers.wire.request_body import WireRequest
from pagein.providers.wire.spliced_breakpoints import with_marks as marked_as
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=300, keep_calls=1, min_tokens=60))
QUIET = Settings(eager(batch_tokens=10**9))
BIG = "word " * 300
PEEK = ToolOffer("peek", "Bring back what was paged out.")
TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {}}}}
LONG = {"type": "ephemeral", "ttl": "1h"}
SHORT = {"type": "ephemeral", "ttl": "5m"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened(tmp_path, EAGER) as made:
        yield made


@pytest.fixture(params=["small", "large"])
def padded(request: pytest.FixtureRequest) -> Conversation:
    """A conversation whose requests are checked as a whole, and one of which only the news is."""
    return Conversation("please do it" if request.param == "small" else "please do it " * 8000)


def opened(folder: Path, settings: Settings) -> Engine:
    """An engine that knows the provider to keep what was written for an hour."""
    engine = pagein.open(folder / "store.db", workspace=folder, settings=settings)
    engine.evidence.add(CacheVerdictNote("claude-sonnet-4-5", "hour", held=True, at=0.0))
    return engine


def worked(turns: int, talk: Conversation) -> Conversation:
    for _ in range(turns):
        talk = talk.then(Turn("on it", (BIG,)))
    return talk


def sent(engine: Engine) -> int:
    """How many requests the journal says were sent."""
    return sum(isinstance(one.body, RequestSent) for one in engine.session("one").journal)


def ask(engine: Engine, talk: Conversation, at: float, **fields: object) -> PreparedRequest:
    body = {**json.loads(clients.body(talk, "anthropic", Manner(marks=1))), **fields}
    offers = (PEEK,) if "tools" in fields else None
    return engine.prepare(json.dumps(body).encode(), "anthropic", at=at, hint="one", offers=offers)


def held(engine: Engine, prepared: PreparedRequest, before: int) -> None:
    """The request was found out, nothing of it is believed to have been sent, and what went out instead is valid."""
    assert "would be refused" in (prepared.failure or "")
    assert check_body(prepared.request, "anthropic") == []
    assert sent(engine) == before


def test_inserted_texts_are_checked(padded: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, QUIET) as engine:
        ask(engine, worked(1, padded), 0.0)
        engine.session("one").hand.say("no tabs")
        before = sent(engine)
        monkeypatch.setattr(splice, "with_notes", lambda *_: b'{"role":"user","content":[{"type":"text","text":""}]}')
        held(engine, ask(engine, worked(2, padded), 1.0), before)


def test_tools_of_ours_are_checked_and_the_clients_own_goes_out_without_them(
    padded: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deferred(fields: dict[str, bytes], _: Api, offers: Sequence[ToolOffer]) -> dict[str, bytes]:
        return {**fields, "tools": b'[{"name":"peek","input_schema":{},"defer_loading":true}]'} if offers else fields

    monkeypatch.setattr(call, "with_tools", deferred)
    with opened(tmp_path, QUIET) as engine:
        # so long that recall tools come with the first request
        prepared = ask(engine, padded, 0.0, tools=[{**TOOL, "description": "run it " * 1_000}])
        held(engine, prepared, 0)
        assert prepared.body == prepared.original
        assert prepared.offered == ()


def test_turns_that_the_client_did_not_see_are_checked(padded: Conversation, tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "p1", "name": "peek", "input": {}}
    said = {"role": "assistant", "content": [{"type": "text", "text": "so"}]}
    actual = [{"role": "assistant", "content": [use]}, said]  # the answer to our call was lost
    with opened(tmp_path, QUIET) as engine:
        body = json.loads(clients.body(padded, "anthropic", Manner(marks=0)))
        first = engine.prepare(json.dumps(body).encode(), "anthropic", at=0.0, hint="one")
        raw = [json.dumps(one).encode() for one in (said, *actual)]
        assert engine.splice_answer(first, RecallExchange((raw[0],), tuple(raw[1:]))) is None
        body["messages"] += [said, {"role": "user", "content": "go on"}]
        held(engine, engine.prepare(json.dumps(body).encode(), "anthropic", at=1.0, hint="one"), 1)


def test_rewritten_lifetimes_are_checked(padded: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(chosen: BreakpointChoice, request: WireRequest) -> tuple[WireRequest, BreakpointChoice]:
        mark = b'"cache_control":{"type":"ephemeral","ttl":"%s"},'
        first, *others = request.items
        made = (first.replace(b'"type"', mark % b"5m" + b'"type"', 1), *others)
        return replace(request, items=made, changed=True, marked=None), chosen

    monkeypatch.setattr(
        branch_leases, "_in_hand", lambda *_: 1e9
    )  # lifetimes are rewritten with something in hand alone
    with opened(tmp_path, QUIET) as engine:
        talk = worked(2, padded)
        body = json.loads(clients.body(talk, "anthropic", Manner(marks=1)))
        body["messages"][-1]["content"][-1]["cache_control"] = LONG
        raw = json.dumps(body).encode()
        assert engine.prepare(raw, "anthropic", at=0.0, hint="two", lasting=1e6).failure is None
        monkeypatch.setattr(outgoing_body, "apply_breakpoints", wrong)
        held(engine, engine.prepare(raw, "anthropic", at=0.0, hint="one", lasting=1e6), 0)


def mixed(talk: Conversation) -> bytes:
    """A request that is marked for an hour in the middle, and for five minutes at its end."""
    body = json.loads(clients.body(talk, "anthropic", Manner(marks=1)))
    if len(body["messages"]) > 4:
        body["messages"][-3]["content"][-1]["cache_control"] = LONG
    return json.dumps(body).encode()


def test_a_mark_of_ours_stands_in_front_of_no_longer_one(padded: Conversation, engine: Engine) -> None:
    marked = []
    for count in range(8):
        prepared = engine.prepare(mixed(worked(count, padded)), "anthropic", at=10.0 * count, hint="one")
        assert prepared.failure is None
        assert check_body(prepared.request, "anthropic") == []
        marked.append(prepared.body.count(b'"cache_control"'))
    assert max(marked) == 4


def test_a_mark_that_would_be_refused_takes_its_decision_back(
    padded: Conversation, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:

    def wrong(request: WireRequest, changes: Changes) -> WireRequest:
        return marked_as(request, replace(changes, marks=dict.fromkeys(changes.marks, SHORT)))

    monkeypatch.setattr(cache_breakpoints, "with_marks", wrong)
    failures = []
    for count in range(8):
        body = json.loads(clients.body(worked(count, padded), "anthropic", Manner(marks=1)))
        body["messages"][-1]["content"][-1]["cache_control"] = LONG
        prepared = engine.prepare(json.dumps(body).encode(), "anthropic", at=10.0 * count, hint="one")
        assert check_body(prepared.request, "anthropic") == []
        assert prepared.opened is None
        failures.append(prepared.failure or "")
    assert any("would be refused by M15" in one for one in failures)

"""A request whose decision comes too late goes out as its conversation was sent last, and the journal says so."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.call_counts import counted
from tests.engine.send.test_retries import EAGER, asked
from tests.engine.test_requests import _locked

import pagein
from pagein import wiring
from pagein.engine.engine import Engine
from pagein.engine.intake.message_chain import transcript
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.call import PendingCall
from pagein.engine.send.rendered_bytes import Bytes
from pagein.engine.send.request_call import DecisionClaim, GivenUp, LastSent, UndecidedRequests
from pagein.model.entries import EpochEntry, NoteEntry, PreviewEntry, RequestSent
from pagein.model.journal_notes import PassthroughNote
from pagein.model.messages import Usage
from pagein.providers.wire.request_body import open_body as envelope_of
from pagein.tools.brief import offers


def opened(folder: Path) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=EAGER, patience=0.2)


USED = Usage(fresh=10, written=4000)


def messages(body: bytes) -> list[dict[str, Any]]:
    """The messages of a request, cache marks aside."""
    found: list[dict[str, Any]] = json.loads(body)["messages"]
    for one in found:
        for block in one["content"] if isinstance(one["content"], list) else []:
            block.pop("cache_control", None)
    return found


def ask(engine: Engine, turns: int) -> PreparedRequest:
    prepared = engine.prepare(asked(turns), "anthropic", at=10.0 * turns, hint="one")
    assert prepared.failure is None
    engine.observe(prepared, USED)
    return prepared


def forward(engine: Engine, turns: int, claim: DecisionClaim | None = None) -> PreparedRequest:
    return engine.forward(asked(turns), "anthropic", at=10.0 * turns, hint="one", claim=claim)


@contextmanager
def overstaying(
    engine: Engine, turns: int, claim: DecisionClaim, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[object]]:
    """A decision that is made, and not kept yet; at the end it goes on. What it ended with."""
    made, leave, ended = threading.Event(), threading.Event(), list[object]()
    outgoing = engine.session("one").traffic._stages.renderer
    check = outgoing.check

    def checking(call: PendingCall, made_of: Bytes, *, decided: bool) -> None:
        check(call, made_of, decided=decided)
        made.set()
        leave.wait(60)

    def decide() -> None:
        try:
            ended.append(engine.prepare(asked(turns), "anthropic", at=10.0 * turns, hint="one", claim=claim))
        except GivenUp as over:
            ended.append(over)

    with monkeypatch.context() as patched:
        patched.setattr(outgoing, "check", checking)
        thread = threading.Thread(target=decide)
        thread.start()
        assert made.wait(60)
        try:
            yield ended
        finally:
            leave.set()
            thread.join(60)


def test_a_late_decision_is_not_kept_and_what_went_out_instead_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = DecisionClaim()
    with opened(tmp_path) as engine:
        before = [ask(engine, turns) for turns in range(4)][-1]
        with overstaying(engine, 4, claim, monkeypatch) as ended:
            assert claim.give_up()
            sent = forward(engine, 4, claim)
        assert isinstance(ended[0], GivenUp)
        last, now, said = messages(before.body), messages(sent.body), messages(asked(4))
        assert now[: len(last)] == last != said[: len(last)]
        assert now[len(last) :] == said[len(last) :]
        behind = engine.session("one").journal
        leaf = engine.session("one").leaf
        news = behind.branch(leaf)[-4:]
        assert [type(one.body) for one in news if isinstance(one.body, EpochEntry | PreviewEntry)] == []
        assert ask(engine, 4).body == sent.body
    with opened(tmp_path) as other:  # also where the process died behind the late decision
        again = other.prepare(asked(4), "anthropic", at=99.0, hint="one")
        assert (again.placed, again.body) == ("retried", sent.body)
        on = other.prepare(asked(5), "anthropic", at=100.0, hint="one")
        assert on.placed == "continued"
        if on.opened is None:
            assert messages(on.body)[: len(now)] == now


def test_what_shares_only_its_beginning_goes_out_as_it_came_and_is_told_so(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for turns in range(6):
            before = ask(engine, turns)
        assert before.replaced
        other = re.sub(rb'("id": "|"tool_use_id": ")', rb"\1another-", asked(5))
        sent = engine.forward(other, "anthropic", at=99.0, hint="one")
        assert messages(sent.body) == messages(other)
        assert sent.replaced == 0


def test_a_decision_that_is_being_kept_cannot_be_given_up(tmp_path: Path) -> None:
    claim = DecisionClaim()
    with opened(tmp_path) as engine:
        ask(engine, 1)
        kept = engine.prepare(asked(2), "anthropic", at=20.0, hint="one", claim=claim)
        assert kept.entry is not None
        assert not claim.give_up()
        assert not claim.is_given_up


def test_a_decision_that_was_given_up_before_it_began_is_none(tmp_path: Path) -> None:
    claim = DecisionClaim()
    with opened(tmp_path) as engine:
        ask(engine, 1)
        claim.give_up()
        sent = forward(engine, 2, claim)
        with pytest.raises(GivenUp):
            engine.prepare(asked(2), "anthropic", at=20.0, hint="one", claim=claim)
        assert ask(engine, 2).body == sent.body


def test_where_the_process_dies_before_it_was_journaled_nothing_says_that_anything_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = DecisionClaim()
    with opened(tmp_path) as engine:
        before = [ask(engine, turns) for turns in range(4)][-1]
        traffic = engine.session("one").traffic  # asked for now, because the decision under way holds the store
        with overstaying(engine, 4, claim, monkeypatch):
            claim.give_up()
            forward(engine, 4, claim)
            monkeypatch.setattr(traffic, "_settle_debts", lambda: None)  # as if it had died here
        with opened(tmp_path) as other:
            journal = other.session("one").journal
            sent = [one for one in journal if isinstance(one.body, RequestSent)]
            assert sent[-1].id == before.entry
            assert other.prepare(asked(4), "anthropic", at=99.0, hint="one").placed == "continued"


def test_several_requests_go_out_one_after_the_other_while_nothing_can_be_decided(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        last = messages([ask(engine, turns) for turns in range(4)][-1].body)
        with _locked(tmp_path / "store.db", engine):
            for turns in (4, 5, 6):
                sent = forward(engine, turns)
                now = messages(sent.body)
                assert now[: len(last)] == last
                last = now
        assert engine.settle()
        assert ask(engine, 6).body == sent.body
        assert [ask(engine, turns).placed for turns in (4, 5)] == ["retried", "retried"]


def test_of_what_went_out_as_its_client_sent_it_the_journal_says_so(tmp_path: Path) -> None:
    """After a restart what was sent last is not at hand."""
    with opened(tmp_path) as engine:
        for turns in range(4):
            ask(engine, turns)
    with opened(tmp_path) as other:
        assert forward(other, 4).body == asked(4)
        assert other.settle()
        session = other.session("one")
        notes = [one.body.note for one in session.journal.branch(session.leaf) if isinstance(one.body, NoteEntry)]
        assert notes[-1] == PassthroughNote()


def test_the_first_request_of_a_conversation_is_not_taken_for_one_without_us(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        assert forward(engine, 0).body == asked(0)
        assert engine.settle()
        assert len(engine.session("one").journal) == 0
        assert ask(engine, 1).placed == "new"


def test_what_an_answer_told_while_the_store_was_locked_is_journaled_later(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        prepared = engine.prepare(asked(1), "anthropic", at=1.0, hint="one")
        with _locked(tmp_path / "store.db", engine):
            assert "locked" in (engine.observe(prepared, USED).failure or "")
            assert not engine.settle()
        assert not engine.session("one").is_kept  # so it is not let go of
        assert engine.settle()
        assert engine.session("one").is_kept
    with opened(tmp_path) as other:
        state = other.session("one").journal.state_at(other.session("one").leaf)
        assert state.floor is not None


def test_what_an_answer_told_is_journaled_when_the_engine_is_closed(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        prepared = engine.prepare(asked(1), "anthropic", at=1.0, hint="one")
        with _locked(tmp_path / "store.db", engine):
            engine.observe(prepared, USED)
    with opened(tmp_path) as other:
        state = other.session("one").journal.state_at(other.session("one").leaf)
        assert state.floor is not None


def test_an_answer_to_what_went_out_without_a_decision_is_taken_in(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        before = [ask(engine, turns) for turns in range(4)][-1]
        sent = forward(engine, 4)
        assert engine.observe(sent, Usage(fresh=1, read=4321)).usage == Usage(fresh=1, read=4321)
        assert engine.settle()
        session = engine.session("one")
        assert before.entry is not None
        assert any("4321" in one.body.data for one in session.journal if isinstance(one.body, NoteEntry))


def test_memory_of_what_was_sent_is_bounded() -> None:
    forwarding = UndecidedRequests(most=10_000)
    for number in range(50):
        body = json.dumps({"messages": [{"role": "user", "content": f"{number} " + "x" * 900}]}).encode()
        script = transcript(envelope_of(body, "anthropic").items, "anthropic")
        forwarding.note_sent(f"s{number}", LastSent(script, {}, len(body)))
        forwarding.note_sent("busy", LastSent(script, {}, len(body)))
        assert forwarding.size <= 10_000 + len(body)
    assert sum(len(one) for one in forwarding._kept.values()) <= 11
    for name in list(forwarding._kept):
        forwarding.forget(name)
    assert forwarding.size == 0


def test_to_forward_no_message_is_named_anew_that_was_sent_before(tmp_path: Path) -> None:
    def calls(turns: int) -> int:
        with pagein.open(tmp_path / f"{turns}.db", workspace=tmp_path) as engine:
            for count in (turns, turns + 1):
                engine.prepare(asked(count), "anthropic", at=10.0 * count, hint="one")
            _, found = counted(lambda: forward(engine, turns + 2))
        return found["chain_name"] + found["decode_entry"]

    assert calls(40) <= calls(10) + 2


def thought(turns: int) -> dict[str, Any]:
    """A request of a client whose model binds each thinking to the prompt that it answered, named by its number of turns."""
    spoken: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "please do it"}]}]
    for turn in range(turns):
        thinking = {"type": "thinking", "thinking": "hm", "signature": f"{turn}"}
        said: dict[str, Any] = {"type": "text", "text": "done"}
        told: dict[str, Any] = {"type": "text", "text": "go on"}
        if turn % 2 == 0:
            said = {"type": "tool_use", "id": f"call_{turn}", "name": "Bash", "input": {"command": f"make {turn}"}}
            text = f"part {turn} is built. " * 300
            told = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": text}
        spoken.append({"role": "assistant", "content": [thinking, said]})
        spoken.append({"role": "user", "content": [told]})
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 1000,
        # so large, and surely cached, that recall tools are offered from the first request on
        "system": [{"type": "text", "text": "be good. " * 20_000, "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Bash", "description": "d", "input_schema": {"type": "object"}}],
        "messages": spoken,
    }


def without_thinking(body: bytes) -> list[list[dict[str, Any]]]:
    return [[block for block in one["content"] if block["type"] != "thinking"] for one in messages(body)]


def test_thinking_from_a_window_of_a_removed_life_is_never_sent_in_the_next_life(tmp_path: Path) -> None:
    """Two gateways hold a session that a third process removes: what the second one sends of its old window answers no other window."""
    sent: dict[int, list[list[dict[str, Any]]]] = {}

    def ask_of(engine: Engine, turns: int) -> PreparedRequest:
        body = json.dumps(thought(turns)).encode()
        prepared = engine.prepare(body, "anthropic", at=10.0 * turns, hint="one", offers=offers(everything=False))
        engine.observe(prepared, USED)
        engine.settle()
        sent[turns] = without_thinking(prepared.body)
        bound = [
            int(block["signature"])
            for one in messages(prepared.body)
            for block in one["content"]
            if block["type"] == "thinking"
        ]
        for turn in bound:
            assert sent[turn] == sent[turns][: len(sent[turn])], f"thinking {turn} is bound to another prompt"
        return prepared

    with opened(tmp_path) as one, opened(tmp_path) as two:
        for turns in range(5):
            ask_of(one, turns)
        assert b"pg-" in ask_of(two, 5).body
        with closing(wiring.open_for_upkeep(tmp_path / "store.db", workspace=tmp_path)) as store:
            store.drop_sessions(["one"])
        assert ask_of(one, 6).failure is not None
        assert ask_of(one, 7).failure is None
        assert ask_of(two, 8).failure is not None
        for turns in (9, 10, 11):
            assert ask_of(one, turns).failure is None
            assert ask_of(two, turns).failure is None

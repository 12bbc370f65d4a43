"""Reads that an edit will hardly quote: the same are judged so after a restart, in a fork, and without a snapshot."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log import snapshots
from pagein.model.messages import Usage
from pagein.policy.eviction.quote_odds import QuoteOdds
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRules, judged_reads

CALLS = 24
DOCUMENTS = QuoteOdds(-5_000, (("document", -2_000), ("since edit", -50), ("size", 5)), (0, 4, 40))
"""Documents are hardly quoted, source code is."""


def judging(odds: QuoteOdds | None) -> Residency:
    """Prices at which nothing pays, so that what may leave stands in the window still."""
    rows = (*USUAL.without_layer("odds").rows, *judged_reads(odds))
    return replace(PRICED, rules=ResidencyRules(rows), economics=None, batch_tokens=10**9)


def opened(folder: Path, odds: QuoteOdds | None = DOCUMENTS) -> Engine:
    return pagein.open(folder / "store.db", workspace=folder, settings=Settings(judging(odds)))


def body(calls: int) -> bytes:
    """A request behind so many reads, every third of a document, with an edit of the first file in between."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "make it work"}]
    for at in range(calls):
        path = f"/w/docs/page_{at}.md" if at % 3 == 0 else f"/w/part_{at}.py"
        name, given = ("Read", {"file_path": path}) if at != 7 else ("Edit", {"file_path": "/w/part_1.py"})
        text = "done" if name == "Edit" else "".join(f"{line:6}\tline {at} {line}\n" for line in range(1, 120))
        call = {"type": "tool_use", "id": f"c{at}", "name": name, "input": given}
        said.append({"role": "assistant", "content": [{"type": "text", "text": f"now {at}"}, call]})
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{at}", "content": text}]})
    tools = [
        {"name": name, "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}}}
        for name in ("Read", "Edit")
    ]
    return json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools, "messages": said}).encode()


def ask(engine: Engine, calls: int, session: str = "one") -> dict[str, str]:
    """The reads that may leave by the odds behind this call, each with the reasons."""
    prepared = engine.prepare(body(calls), "anthropic", at=10.0 * calls, hint=session)
    assert (prepared.failure, prepared.opened) == (None, None)
    assert engine.observe(prepared, Usage(fresh=10, written=900 * calls)).failure is None
    return judged(engine, session)


def judged(engine: Engine, session: str = "one") -> dict[str, str]:
    at = engine.session(session)
    return {one.call_id: one.why for one in at.journal.state_at(at.leaf).standing.old() if one.why}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 6)


def test_a_restart_at_any_call_judges_as_one_process_does(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with opened(tmp_path / "a") as engine:
        expected = [ask(engine, calls) for calls in range(1, CALLS)]
    found, restored = [], 0
    for calls in range(1, CALLS):
        with opened(tmp_path / "b") as engine:
            found.append(ask(engine, calls))
            restored += engine.session("one").journal.restored is not None
    assert found == expected
    assert restored  # from snapshots, and before the first from the journal
    assert set(expected[-1]) >= {"c0", "c3", "c6"}
    assert all("a document or a configuration" in why for why in expected[-1].values())


def test_a_fork_judges_as_its_session_does(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for calls in range(1, 14):
            ask(engine, calls)
        before = judged(engine)
        engine.session("one").fork("two")
        assert judged(engine, "two") == before != {}
        assert ask(engine, 14, "two") == ask(engine, 14)
    with opened(tmp_path) as engine:
        assert judged(engine, "two") == judged(engine) != {}


def test_a_client_that_goes_back_is_judged_where_it_stands(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        told = {calls: ask(engine, calls) for calls in range(1, CALLS)}
        assert ask(engine, 9) == told[9] != told[CALLS - 1]


def test_without_the_file_of_the_odds_the_rows_by_hand_decide_alone(tmp_path: Path) -> None:
    with opened(tmp_path, None) as engine:
        for calls in range(1, CALLS):
            assert ask(engine, calls) == {}
        session = engine.session("one")
        old = {one.call_id for one in session.journal.state_at(session.leaf).standing.old()}
    assert old <= {"c1", "c7"}  # the edited file, and the answer to the edit

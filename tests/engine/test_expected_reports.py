"""A request that brings an answer back waits for the report of that answer, which tells the size of the prompt."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pagein import wiring
from pagein.engine import expected_reports
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.call import RequestFacts
from pagein.model.entries import NoteEntry, RequestSent
from pagein.model.journal_notes import UsageNote
from pagein.model.messages import Usage

ASKED: list[dict[str, Any]] = [{"role": "user", "content": "one"}]
ANSWERED = [*ASKED, {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]
REPORTED = RequestFacts(reported=True)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with wiring.open(tmp_path / "s.pagein") as one:
        yield one


def prepare(engine: Engine, messages: list[dict[str, Any]], facts: RequestFacts = REPORTED) -> PreparedRequest:
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
    return engine.prepare(body, "anthropic", at=1_000.0, hint="one", facts=facts)


def usages_before(engine: Engine, sent: PreparedRequest) -> list[int]:
    """Prompts of the usages that the branch of a request has before it."""
    journal = engine.session("one").journal
    assert sent.entry is not None
    branch = [entry.body for entry in journal.branch(sent.entry)]
    assert isinstance(branch[-1], RequestSent)
    return [
        body.note.usage.prompt for body in branch if isinstance(body, NoteEntry) and isinstance(body.note, UsageNote)
    ]


def test_the_usage_of_a_request_stands_on_the_branch_of_a_client_that_is_faster_than_its_report(engine: Engine) -> None:
    first = prepare(engine, ASKED)
    reporting = threading.Timer(0.2, engine.observe, (first, Usage(77)))
    reporting.start()
    second = prepare(engine, ANSWERED)
    reporting.join()
    assert usages_before(engine, second) == [77]


def test_a_report_that_never_comes_is_waited_for_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_reports, "_PATIENCE", 0.3)
    prepare(engine, ASKED)
    began = time.monotonic()
    prepare(engine, ANSWERED)
    assert time.monotonic() - began >= 0.3
    prepare(engine, ANSWERED, RequestFacts())
    began = time.monotonic()
    prepare(engine, ANSWERED, RequestFacts())
    assert time.monotonic() - began < 0.3


def test_a_request_waits_no_longer_than_its_caller_has_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_reports, "_PATIENCE", 60.0)
    prepare(engine, ASKED)
    began = time.monotonic()
    prepare(engine, ANSWERED, RequestFacts(reported=True, patience=0.05))
    assert time.monotonic() - began < 30


def test_waits_in_vain_become_shorter_until_a_report_comes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream may end each answer long after its last event: the client has it before."""
    monkeypatch.setattr(expected_reports, "_PATIENCE", 2.0)
    messages, took = list(ASKED), []
    for number in range(4):
        began = time.monotonic()
        prepare(engine, messages)
        took.append(time.monotonic() - began)
        messages += [{"role": "assistant", "content": f"{number}"}, {"role": "user", "content": f"and {number}"}]
    assert took[1] >= 2.0
    assert took[3] < 1.5


def test_after_many_waits_in_vain_a_report_that_is_under_way_is_waited_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait that shrank to nothing would lose the usage of each later answer."""
    monkeypatch.setattr(expected_reports, "_PATIENCE", 32.0)
    monkeypatch.setattr(expected_reports, "_LESS", 1e-9)
    messages, asked = list(ASKED), prepare(engine, ASKED)
    for number in range(3):
        messages += [{"role": "assistant", "content": f"{number}"}, {"role": "user", "content": f"and {number}"}]
        asked = prepare(engine, messages, RequestFacts(reported=True, patience=0.01))
    late = threading.Timer(0.2, engine.observe, (asked, Usage(7, 0, 0, 0, 1)))
    late.start()
    last = prepare(engine, [*messages, {"role": "assistant", "content": "3"}, {"role": "user", "content": "and 3"}])
    late.join()
    assert usages_before(engine, last) == [7]


def test_few_requests_wait_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds a thread, which requests of other sessions need."""
    monkeypatch.setattr(expected_reports, "_PATIENCE", 5.0)
    bodies = [
        json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": one}).encode()
        for one in (ASKED, ANSWERED)
    ]

    def send(name: str, body: bytes) -> float:
        began = time.monotonic()
        engine.prepare(body, "anthropic", at=1_000.0, hint=name, facts=REPORTED)
        return time.monotonic() - began

    names = [f"session {number}" for number in range(6)]
    for name in names:
        send(name, bodies[0])
    with ThreadPoolExecutor(len(names)) as threads:
        took = list(threads.map(send, names, [bodies[1]] * len(names)))
    assert sum(one >= 5.0 for one in took) == 2


@pytest.mark.parametrize("facts", [REPORTED, RequestFacts()])
def test_nothing_else_is_waited_for(engine: Engine, facts: RequestFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a request without the answer, nor one of another conversation, nor a caller that promises no report."""
    monkeypatch.setattr(expected_reports, "_PATIENCE", 60.0)
    first = prepare(engine, ASKED, facts)
    if facts.reported:
        prepare(engine, ASKED, facts)  # a retry
        prepare(engine, [*ASKED, {"role": "user", "content": "and"}], facts)
        prepare(engine, [{"role": "user", "content": "other"}, *ANSWERED[1:]], facts)
    else:
        prepare(engine, ANSWERED, facts)
    assert first.entry is not None


def test_requests_whose_clients_hung_up_are_forgotten(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_reports, "_MOST", 2)
    monkeypatch.setattr(expected_reports, "_PATIENCE", 60.0)
    for number in range(4):
        prepare(engine, [{"role": "user", "content": f"try {number}"}])
    prepare(engine, [{"role": "user", "content": "try 0"}, *ANSWERED[1:]])

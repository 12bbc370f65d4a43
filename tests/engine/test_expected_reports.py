"""A request that brings an answer back waits for the report of that answer, which tells the size of the prompt."""

import json
import threading
import time
from collections.abc import Iterator
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

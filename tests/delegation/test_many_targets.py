"""Many targets and large ones: every result is accounted for, in time, and sums over parts are exact."""

import json
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Self

import pytest
from aiohttp import ClientResponse, ClientSession
from tests.delegation.asked_sessions import Asked, run

from pagein.delegation.delegation import Delegation
from pagein.delegation.model_calls import Retries
from pagein.engine.recall.child_results import ChildResultDraft, ChildResults, StoredAnswer, TargetText
from pagein.gateway.stream.upstream_models import UpstreamModels
from pagein.policy.delegation.limits import DelegationLimits
from pagein.policy.delegation.reports import Question
from pagein.ports import ChildModel, ChildRequest
from pagein.simulator import ProviderCall, SimulatedProvider
from pagein.testing.scripted_children import Step, reply, shown_to
from pagein.tools.child_tools import ChildToolset

Asks = Callable[..., Asked]
TARGETS, AT_ONCE = 200, 16
BUSY, RESET = range(10), range(10, 14)  # 5 % and 2 % of the targets
HAIKU = "claude-haiku-4-5"


def number_in(text: str) -> int:
    found = re.search(r"record (\d+)", text)
    assert found is not None
    return int(found[1])


def seconds_of(number: int) -> float:
    """How long a child takes: most are quick, one in ten is slow."""
    drawn = random.Random(number).random()  # noqa: S311 -- no secret
    return 0.6 if drawn < 0.1 else 0.1 + drawn / 10


def answers(asked: ProviderCall) -> list[dict[str, Any]]:
    number = number_in(json.dumps(asked.body["messages"]))
    turn: list[dict[str, Any]] = [{"wait": seconds_of(number)}, {"text": reply(str(number), f"record {number}")}]
    if number in BUSY:
        turn.append({"error": 429, "retry_after": 0})
    if number in RESET:
        turn.append({"break": None})
    return turn


class Upstream(UpstreamModels):
    """Children at the simulated provider, over a thin client whose own time hardly counts."""

    def __init__(self, provider: SimulatedProvider) -> None:
        self.http = ClientSession()

        def send(body: bytes, _: str) -> AbstractAsyncContextManager[ClientResponse]:
            headers = {"content-type": "application/json", "x-api-key": "key"}
            return self.http.post(provider.url + "/v1/messages", data=body, headers=headers)

        super().__init__(send, "anthropic", HAIKU)

    async def close(self) -> None:
        await self.http.close()


def delegation(room: Asked, open_model: Callable[[], ChildModel], limits: DelegationLimits) -> Delegation:
    session = room.session()
    return Delegation(
        session.recalls.children,
        open_model,
        ChildToolset(session),
        replace(room.settings, limits=limits),
        tree=room.tree,
        retries=Retries(4, 0.05, 0.2),
    )


@pytest.mark.slow
def test_two_hundred_targets_with_failures_and_slow_children_end_in_time_and_whole(asks: Asks) -> None:
    room = asks(lambda _: "not used")
    ids = room.ingested(room.session(), **{f"r{n}": f"record {n}\n" for n in range(TARGETS)})
    limits = DelegationLimits(calls=TARGETS, concurrency=AT_ONCE, usd=50, confirm_above=TARGETS)
    with SimulatedProvider(answers) as provider:
        asked = delegation(room, lambda: Upstream(provider), limits)
        before = threading.active_count()
        began = time.perf_counter()
        report = run(lambda: asked.ask(Question("batch", "Which number?", tuple(ids))))
        took = time.perf_counter() - began
        outcomes = [one.outcome for one in provider.requests]
        billed = provider.bill().usd
    assert [one.status for one in report.results] == ["success"] * TARGETS
    assert [one.answer for one in report.results] == [str(number) for number in range(TARGETS)]
    assert all(one.evidence[0].object_id == name for one, name in zip(report.results, ids, strict=True))
    assert len(outcomes) == TARGETS + len(BUSY) + len(RESET)
    assert report.calls == TARGETS
    assert report.actual.usd is not None
    assert billed is not None
    unsure = (report.actual.usd - billed) / len(
        RESET
    )  # a call that broke off may be billed, so it counts at its highest
    assert 0.02 < unsure < 0.03
    assert threading.active_count() <= before + 8  # the loop's own threads for looks into the store end with it
    ideal = sum(map(seconds_of, range(TARGETS))) / AT_ONCE
    assert took < 1.3 * ideal + 2, f"{took:.1f} s, ideal {ideal:.1f} s"  # 2 s for a busy machine


class _CountedText(str):  # noqa: SLOT000 -- the counts are the class's
    """A text that counts how many of its kind are held."""

    held = most = 0

    def __new__(cls, text: str) -> Self:
        cls.held += 1
        cls.most = max(cls.most, cls.held)
        return super().__new__(cls, text)

    def __del__(self) -> None:
        _CountedText.held -= 1


class _ManyTexts(ChildResults):
    """Targets that are made when they are asked for: a store would take longer than what is tested."""

    def __init__(self) -> None:
        """Need no session."""

    def target(self, name: str) -> TargetText:
        return TargetText(name, None, _CountedText(f"line of {name}\n" * 500))

    def tokens(self, text: str) -> int:
        return len(text) // 4

    def keep(self, draft: ChildResultDraft) -> StoredAnswer:
        return StoredAnswer(f"pg-{draft.call}")

    def mark_warm(self, *_: object) -> None:
        return None

    def log(self, _: object) -> None:
        return


def test_of_hundreds_of_targets_only_the_texts_at_work_are_held(asks: Asks) -> None:
    room = asks(lambda _: reply("ok", "line of"))
    limits = DelegationLimits(calls=300, concurrency=AT_ONCE, usd=1000, confirm_above=300)
    settings = replace(room.settings, limits=limits)
    asked = Delegation(_ManyTexts(), lambda: room.child, ChildToolset(room.session()), settings, tree=room.tree)
    room.child.requests = deque(maxlen=1)  # type: ignore[assignment]
    report = run(lambda: asked.ask(Question("batch", "What?", tuple(f"t{number}" for number in range(300)))))
    assert [one.status for one in report.results] == ["success"] * 300
    assert _CountedText.most <= 2 * AT_ONCE
    assert _CountedText.held <= 1


def _counts(request: ChildRequest) -> Step:
    """A child that counts the errors of its own part, and adds up what others counted."""
    text = shown_to(request)
    if "JSON" in request.system and '"parts"' in text:
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return reply(str(sum(int(one["answer"]) for one in lines)))
    return reply(str(len(re.findall(r"^2026\S* \S* ERROR", _own(text), re.MULTILINE))))


def _own(shown: str) -> str:
    label = re.search(r"^\[([0-9a-f]+) part \d+ of \d+ .*\]$", shown, re.MULTILINE)
    if label is None:
        return shown
    return re.split(rf"^\[{label[1]} ", shown[label.end() :], maxsplit=1, flags=re.MULTILINE)[0]


def test_a_count_over_megabytes_is_exact_through_parts_and_joining(asks: Asks) -> None:
    """Traces belong to the record above; the lines of a part's context look like its own."""
    drawn = random.Random(16)  # noqa: S311 -- no secret
    lines, errors = [], 0
    for number in range(45_000):
        is_error = drawn.random() < 0.02
        errors += is_error
        lines.append(f"2026-11-23 10:00:00 {'ERROR' if is_error else 'INFO'} request {number} took {number % 97} ms\n")
        lines += [f"\tat frame {depth}\n" for depth in range(drawn.randrange(4))] if is_error else []
    room = asks(_counts, calls=100, usd=1000, concurrency=8, confirm_above=1000)
    session = room.session()
    (name,) = room.ingested(session, **{"app.log": "".join(lines)})
    report = room.ask(session, "query", [name], instructions="How many errors?", model=f"anthropic/{HAIKU}")
    (result,) = report.results
    assert result.answer == str(errors)
    parts = re.search(r"split into (\d+) parts by records", " ".join(result.notes))
    assert parts is not None
    assert int(parts[1]) >= 5
    assert report.calls > int(parts[1])  # with those that joined


def test_code_is_split_between_its_definitions(asks: Asks) -> None:
    pytest.importorskip("tree_sitter_python")
    source = "".join(f"@mark\ndef f{number}():\n" + "    x = 1\n\n" * 3_200 for number in range(24))
    shown: list[str] = []

    def note(request: ChildRequest) -> Step:
        shown.append(shown_to(request))
        return reply("1")

    room = asks(note, calls=100, usd=1000, confirm_above=1000)
    session = room.session()
    (name,) = room.ingested(session, **{"code.py": source})
    report = room.ask(session, "query", [name], model=f"anthropic/{HAIKU}")
    assert "parts by definitions" in " ".join(report.results[0].notes)
    parts = [one for one in shown if " part " in one]
    assert len(parts) > 2
    assert all(_own(one).lstrip("\n").startswith("@mark") for one in parts)

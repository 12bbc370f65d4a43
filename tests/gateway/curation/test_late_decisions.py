"""A late decision costs no request its rendering, and no fact of an answer is lost."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.curation.test_guarded_curator import BODY, Scripted, shortened
from tests.gateway.upstreams import Stage, run, says, stage, until

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.errors import StoreError
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, Guard, PassThrough, UsageAccount
from pagein.gateway.settings import GatewaySettings
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.testing.eager_residency import eager

SESSIONS, TURNS = 24, 9
EAGER = Settings(eager(batch_tokens=2_000, keep_calls=2, min_tokens=60))
LINE = "one line of what a command printed, and it prints many of them\n"
ANSWER = b'{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}'
LAST = b'{"model":"m","messages":[{"role":"user","content":"as it was sent last"}]}'


def conversation(name: str, turns: int, lines: int) -> bytes:
    said: list[dict[str, Any]] = [{"role": "user", "content": f"do {name}"}]
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "Bash", "input": {"command": f"make {turn}"}}
        text = f"{name} {turn}\n" + LINE * lines
        said.append({"role": "assistant", "content": [call]})
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{turn}", "content": text}]})
    tools = [{"name": "Bash", "description": "", "input_schema": {"type": "object"}}]
    return json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools, "messages": said}).encode()


def messages(body: bytes) -> list[object]:
    found: list[object] = json.loads(body)["messages"]
    return found


def shown_lines(said: list[object]) -> int:
    """How many lines of the results are shown."""
    return json.dumps(said).count(json.dumps(LINE)[1:-1])


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but work."""
    working = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in working:
            one.kill()
            one.wait()


async def last_of_all(on: Stage, turns: int, lines: int) -> dict[str, bytes]:
    """Have all sessions say so much at once; what went out for each."""
    before = len(on.upstream.got)
    await asyncio.gather(
        *(
            on.post("/v1/messages", conversation(f"s{number}", turns, lines), X_Pagein_Session=f"s{number}")
            for number in range(SESSIONS)
        )
    )
    return {json.loads(one.body)["messages"][0]["content"]: one.body for one in on.upstream.got[before:]}


@pytest.mark.parametrize(
    ("budget", "workers"), [(0.001, 0), (2.0, 2)], ids=["every decision comes too late", "two busy cores"]
)
def test_no_request_of_many_at_once_loses_its_rendering(budget: float, workers: int, tmp_path: Path) -> None:
    curator = EngineCurator(wiring.open(tmp_path / "s.pagein", settings=EAGER))
    lines = 500_000 // (TURNS * len(LINE))

    async def go() -> None:
        patient = GatewaySettings(grace=2, budget=600)
        async with stage(says(ANSWER), tmp_path, curator=curator, settings=patient) as on:
            for turns in (TURNS - 3, TURNS - 2, TURNS - 1):
                before = await last_of_all(on, turns, lines)
            await on.calls()
            on.gateway._guard._budget = budget
            after = await last_of_all(on, TURNS, lines)
            assert after.keys() == before.keys()
            assert len(after) == SESSIONS
            for name, body in after.items():
                raw = conversation(name.removeprefix("do "), TURNS, lines)
                assert len(raw) > 450_000
                assert len(body) < len(raw) / 2, "it went out as its client sent it"
                known = messages(before[name])
                again = messages(body)[: len(known)]
                # a decision that was kept just before it was given up may have opened an epoch, of which no call tells
                opened = shown_lines(again) < shown_lines(known)
                if not opened and not any(call["epoch"] for call in (await on.calls())[-SESSIONS:]):
                    assert again == known
            if workers == 0:
                assert {call["failure"] for call in (await on.calls())[-SESSIONS:]} != {""}

    with busy(workers):
        run(go())


class Forwarding(Scripted):
    """Decides as a test says, and has what was sent last."""

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        return CuratedRequest(LAST, "s")


@pytest.mark.parametrize("problem", [RuntimeError("a bug"), None], ids=["it fails", "it says nothing"])
def test_where_a_decision_fails_what_was_sent_last_goes_out(problem: Exception | None, tmp_path: Path) -> None:
    def prepare(_: CurationRequest) -> CuratedRequest:
        if problem is not None:
            raise problem
        return CuratedRequest(b"")

    async def go() -> None:
        async with stage(says(ANSWER), tmp_path, curator=Forwarding(prepare)) as on:
            await on.post("/v1/messages", BODY)
            assert on.upstream.got[0].body == LAST

    run(go())


def test_where_decisions_hang_what_was_sent_last_goes_out_and_nobody_waits_for_them(tmp_path: Path) -> None:
    leave = threading.Event()

    def hanging(asked: CurationRequest) -> CuratedRequest:
        leave.wait(60)
        return CuratedRequest(asked.body)

    async def go() -> None:
        settings = GatewaySettings(budget=0.2, grace=2)
        async with stage(says(ANSWER), tmp_path, curator=Forwarding(hanging), settings=settings) as on:
            try:
                await asyncio.gather(*(on.post("/v1/messages", BODY) for _ in range(30)))
                figures = on.gateway.metrics.text().decode()
                assert 'kind="busy"' in figures
                assert 'kind="budget"' in figures
                assert {got.body for got in on.upstream.got} == {LAST}
            finally:
                leave.set()

    run(go())


def test_the_time_until_a_thread_is_free_is_not_the_decisions() -> None:
    """Four rounds of decisions, each of which takes more than half of what one may take."""

    def slow(asked: CurationRequest) -> CuratedRequest:
        threading.Event().wait(0.6)
        return shortened(asked)

    async def go() -> None:
        guard = Guard(Scripted(slow), budget=1.0, threads=2)
        decided = await asyncio.gather(*(guard.decide(CurationRequest(BODY, "anthropic", None, 0.0)) for _ in range(8)))
        assert [one.kind for one in decided] == [None] * 8
        await guard.close(5)

    run(go())


def test_a_decision_that_is_being_kept_when_its_time_is_over_is_waited_for() -> None:
    def slow(asked: CurationRequest) -> CuratedRequest:
        asked.claim.take()
        threading.Event().wait(1.0)
        return shortened(asked)

    async def go() -> None:
        guard = Guard(Forwarding(slow), budget=0.2)
        decision = await guard.decide(CurationRequest(BODY, "anthropic", None, 0.0))
        assert decision.kind is None
        assert decision.curated.replaced == 1
        await guard.close(5)

    run(go())


class Forgetful(PassThrough):
    """Cannot keep what it is told until a while later."""

    def __init__(self) -> None:
        self.owed: list[ModelReply] = []
        self.taken: list[ModelReply] = []
        self.works = False
        self.asked = 0

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        self.owed.append(reply)
        return UsageAccount(failure="StoreError: locked")

    def settle(self) -> bool:
        self.asked += 1
        if not self.works:
            return False
        self.taken, self.owed = [*self.taken, *self.owed], []
        return True


def test_what_could_not_be_kept_of_an_answer_is_tried_again_until_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pagein.gateway.curation.guarded_curator._FIRST_PAUSE", 0.01)
    curator = Forgetful()

    async def go() -> None:
        async with stage(says(ANSWER), tmp_path, curator=curator) as on:
            await on.post("/v1/messages", BODY)
            await until(lambda: curator.asked > 2)
            assert len(curator.owed) == 1
            curator.works = True
            await until(lambda: curator.taken)
            asked = curator.asked
            await asyncio.sleep(0.1)
            assert curator.asked == asked  # nothing is owed, and nobody asks

    run(go())


def test_answers_that_wait_to_be_taken_in_when_the_gateway_ends_are_taken_in(tmp_path: Path) -> None:
    """More than there are threads, each of which takes a while."""
    taken: list[ModelReply] = []

    class Slow(PassThrough):
        def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
            threading.Event().wait(0.05)
            taken.append(reply)
            return UsageAccount()

    async def go() -> None:
        async with stage(says(ANSWER), tmp_path, curator=Slow()) as on:
            await asyncio.gather(*(on.post("/v1/messages", BODY) for _ in range(40)))
            await on.gateway.stop(5, settle=5)

    run(go())
    assert len(taken) == 40


def test_an_answer_is_taken_in_although_all_threads_overstayed(tmp_path: Path) -> None:
    taken, leave = list[ModelReply](), threading.Event()

    class Stuck(PassThrough):
        def splice_answer(self, *_: object) -> str:
            leave.wait(60)
            raise StoreError("locked")

        def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
            taken.append(reply)
            return UsageAccount()

    async def go() -> None:
        async with stage(says(ANSWER), tmp_path, curator=Stuck()) as on:
            crew = on.gateway._guard._following
            for _ in range(crew._count):
                crew.threads.submit(leave.wait, 60)
            crew._overstayed = crew._count
            await on.post("/v1/messages", BODY)
            leave.set()
            await until(lambda: taken)
            crew._overstayed = 0

    run(go())

"""A session that is driven through the gateway over HTTP costs what a replay of the same requests says."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pagein import wiring
from pagein.engine.engine import Engine, Settings
from pagein.engine.session import Session
from pagein.model.messages import HostEvent, Message, Other, Recorded, Text, ToolCall, ToolResult
from pagein.ports import TokenCounter
from pagein.replay.policies.ablation import QUIET
from pagein.replay.readers import Source, find, read_source
from pagein.replay.run import ReplayRequest, replay
from pagein.testing.recorded_drive import Bills, Drive, drive_and_bill, write_log
from pagein.testing.recorded_time import SetClock

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo-session.jsonl.gz"
MINI = ROOT.parent / "shared" / "corpus" / "mini"
# each block is rounded up for itself
SAME = 0.001
# The gateway offers tools of its own in every request; a replay does not.
ALIKE = 0.01
NOON = 1_790_000_000.0


def entries_of(path: Path) -> Sequence[Recorded]:
    source = next(iter(find([path])))
    assert isinstance(source, Source)
    return list(next(iter(read_source(source))).entries)


def check(found: Bills) -> None:
    append, _ = found.replayed
    http, replayed = found.ratios
    assert (found.refused, found.failed) == (0, 0)
    assert append == pytest.approx(found.direct, rel=SAME)
    assert http == pytest.approx(replayed, abs=ALIKE)


def worked(model: str) -> Iterator[Message]:
    """A session of fifty calls with a pause of an hour in its middle, and replies that formats do not hold as they were recorded."""
    at = NOON
    yield Message("system", (Text("You work on a repository. " * 1200),), at)
    yield Message("user", (Text("look at everything"),), at)
    for number in range(50):
        at += 3600.0 if number == 25 else 20.0
        call = ToolCall(f"call_{number}", "bash", json.dumps({"command": f"make part-{number}"}))
        said = (Text("\n\n"),) if number % 3 == 0 else (Text(f"Part {number}."),)
        searched = (Other("web_search", json.dumps({"query": f"part {number}"})),) if number % 10 == 4 else ()
        yield Message("assistant", (*said, *searched, call), at, model)
        lines = "\n".join(f"{line} part {number} built in {line * number} ms" for line in range(170))
        yield Message("tool", (ToolResult(call.id, lines, "bash"),), at + 5.0)
        if number % 12 == 11:
            yield Message("assistant", (Text(f"All up to {number} is built."),), at + 9.0, model)
            yield Message("user", (Text("go on"),), at + 15.0)
    yield Message("assistant", (Text("Done."),), at + 30.0, model)


def interrupted(model: str) -> Iterator[Recorded]:
    """The same with a summary in its middle, and with calls that were interrupted before the model said anything."""
    for number, entry in enumerate(worked(model)):
        if number == 60:
            yield HostEvent("compaction", entry.at)
            yield Message("user", (Text("Half of the parts are built. " * 40),), entry.at)
        yield entry
        if entry.role == "tool" and number % 16 == 3:
            yield Message("assistant", (), entry.at, model, stop="aborted")
            yield Message("user", (Text("first tell me why"),), entry.at)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5.1"])
def test_a_session_that_was_interrupted_and_compacted_costs_over_http_what_its_replay_says(
    model: str, tmp_path: Path
) -> None:
    entries = list(interrupted(model))
    assert sum(isinstance(one, Message) and one.stop == "aborted" for one in entries) >= 3
    found = drive_and_bill(entries, tmp_path)
    check(found)
    assert found.through < 0.95 * found.direct


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5.1"])
def test_a_session_with_a_pause_costs_over_http_what_its_replay_says(model: str, tmp_path: Path) -> None:
    found = drive_and_bill(list(worked(model)), tmp_path)
    check(found)
    assert found.through < 0.9 * found.direct


@pytest.mark.parametrize(("api", "model"), [("anthropic", "claude-sonnet-4-5"), ("openai_chat", "gpt-5.1")])
def test_each_request_is_answered_as_it_was_recorded(api: str, model: str) -> None:
    entries = list(worked(model))
    clock = SetClock()
    drive = Drive(entries, api, model)
    with drive.provider(clock) as provider:
        told = [json.dumps(one.response) for one in drive.through(provider.url, clock)]
    assert len(told) == sum(one.role == "assistant" for one in entries)
    assert not [one for one in told if "not recorded" in one]
    assert [
        number
        for number in range(50)
        if not any(f"make part-{number}\\" in one or f'make part-{number}"' in one for one in told)
    ] == []


def test_a_clock_that_is_set_never_runs_backwards() -> None:
    clock = SetClock()
    clock.set(NOON)
    clock.set(NOON - 1.0)
    assert clock.now() == NOON


@pytest.mark.slow
def test_the_demo_costs_over_http_what_its_replay_says(tmp_path: Path) -> None:
    found = drive_and_bill(entries_of(DEMO), tmp_path)
    check(found)
    assert found.through < found.direct


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    [
        "agentv__019ed9f4-6510-7fc0-8643-6d434f193bd0",
        "nimbus__ses_31d09e82bffeXxzegJPtjeAK7u",
        "entireio-cli__1a289c77-a9da-491d-954a-2df7f0dd6a17-sub-a3d8042",
        "entireio-cli__df93cd9c-8436-49e5-af80-61126ae55a83",
        "context-evaluator__598cc9c4-cc88-410f-a833-53348451208e",
        "tau-airline__airline-gpt4o-t09-r2",
    ],
)
def test_a_recorded_session_costs_over_http_what_its_replay_says(name: str, tmp_path: Path) -> None:
    path = MINI / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip("the recorded sessions are not here")
    check(drive_and_bill(entries_of(path), tmp_path))


def test_a_replay_reports_the_usage_of_its_own_requests_to_the_engine(
    tmp_path: Path,
) -> None:
    clock, sessions = SetClock(), list[Session]()
    drive = Drive(list(worked("claude-sonnet-4-5")), "anthropic", "claude-sonnet-4-5")
    with drive.provider(clock) as provider:
        write_log(drive.through(provider.url, clock), tmp_path / "log.jsonl")

    def open_engine(store: Path, *, counter: TokenCounter, settings: Settings) -> Engine:
        engine = wiring.open_for_replay(store, counter=counter, settings=settings)
        sessions.append(engine.session("driven"))
        return engine

    terms = ReplayRequest((tmp_path / "log.jsonl",), prices=drive.model, policies=(QUIET,), jobs=1)
    replay(terms, open_engine)
    (session,) = sessions
    state = session.journal.state_at(session.leaf)
    assert state.epoch > 0
    assert state.scale == pytest.approx(1.0, abs=0.1)

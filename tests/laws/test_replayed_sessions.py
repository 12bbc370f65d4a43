"""Every request of replayed sessions held to the laws: the demo, the fixtures, random sessions, and recorded ones."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.watched_engine import Laws, WatchedEngine

from pagein.engine.engine import Settings
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.policy.clients.profile import accesses
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.policy.eviction.residency import Residency
from pagein.policy.stubs.previews import Previews
from pagein.ports import TokenCounter
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.policies.tally import Tally
from pagein.replay.prompt.billable_session import BillableSession, record
from pagein.replay.prompt.context_limit import window_of
from pagein.replay.prompt.model_calls import gather
from pagein.replay.prompt.prompt_sizes import SourceFacts
from pagein.replay.readers import Source, find, read_source
from pagein.testing.eager_residency import eager
from pagein.testing.story import Story

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "sessions"
CORPUS = ROOT.parent / "shared" / "corpus"
CHARGED = prices("generic:r=.1,w=1.25,min=1")
EAGER = eager(batch_tokens=2000, keep_calls=2, keep_reads=3, min_tokens=60, previews=Previews(1500, 600))
_RATIO = 3.3


class Watch:
    """Opens watched engines, and remembers the last one's laws."""

    laws: Laws

    def __init__(self, residency: Residency | None = None) -> None:
        self._residency = residency

    def __call__(self, store: Path, *, counter: TokenCounter, settings: Settings) -> WatchedEngine:
        chosen = settings if self._residency is None else replace(settings, residency=self._residency)
        engine = WatchedEngine(store, counter=counter, settings=chosen)
        self.laws = engine.laws
        return engine


def _recordings(path: Path) -> list[BillableSession]:
    found = []
    for source in find([path]):
        if isinstance(source, Source):
            for session in read_source(source):
                calls = gather(session.entries)
                if calls.calls:
                    facts = SourceFacts({}, None, 0.0)
                    found.append(record(session.head, calls, facts, _RATIO, CHARGED))
    return found


def _replayed(recording: BillableSession, watch: Watch, charged: Prices = CHARGED, *, stress: bool = True) -> Tally:
    with PageinPolicy(recording, watch, charged) as paging:
        ledger = Ledger(recording, paging, charged, stress=stress, trace=False)
        ledger.run()
        paging.prove(ledger.tally)
    assert ledger.tally.refused == 0
    assert ledger.tally.unrecoverable_bytes == 0
    assert watch.laws.requests == len(recording.sized)
    return ledger.tally


def _worth_it(recording: BillableSession, tally: Tally, charged: Prices = CHARGED) -> None:
    append = Ledger(recording, APPEND, charged, stress=False, trace=False)
    append.run()
    # at its limit the safety valve opens whatever that costs
    is_full = max(one.prompt for one in recording.sized) > 0.95 * window_of(recording, charged)
    assert tally.cost - tally.recall_cost <= (1.07 if is_full else 1.02) * append.tally.cost
    if (
        not tally.stubs
    ):  # a mark more may find what would have been looked for too far back; else it is the baseline to the token
        assert tally.cost <= append.tally.cost


def _held(path: Path, *, acts: bool) -> None:
    recordings = _recordings(path)
    assert recordings
    paged = 0
    for recording in recordings:
        _worth_it(recording, _replayed(recording, Watch()))
        eager = Watch(EAGER)
        _replayed(recording, eager)
        paged += eager.laws.paged
        assert eager.laws.bytes_compared >= min(3, 3 * (len(recording.sized) - 1 - eager.laws.rewritten))
    if acts:
        assert paged > 0


def test_the_demo_session_is_held_to_every_law() -> None:
    _held(ROOT / "examples" / "demo-session.jsonl.gz", acts=True)


@pytest.mark.parametrize(
    "name",
    [
        "anthropic-requests.jsonl",
        "claude-code.jsonl",
        "codex.jsonl",
        "normalised.jsonl",
        "openai-chat.jsonl",
        "openai-responses.jsonl",
        "opencode-export.json",
        "pi-v3.jsonl",
        "two-sessions.jsonl",
    ],
)
def test_every_fixture_is_held_to_every_law(name: str) -> None:
    _held(FIXTURES / name, acts=False)


STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 6000), min_size=1, max_size=3),
        st.sampled_from([5.0, 60.0, 300.0, 301.0, 4000.0]),
        st.sampled_from(["", "", "", "and then?", "cat .env", "again"]),
    ),
    min_size=1,
    max_size=40,
)


def _told(steps: list[tuple[list[int], float, str]]) -> Story:
    story = Story().asks()
    for sizes, wait, word in steps:
        secret = '{"command":"cat .env"}' if word == "cat .env" else "{}"
        story.works(*(["x y z\n" * 700] * len(sizes) if word == "again" else sizes), wait=wait, args=secret)
        if word == "and then?":
            story.asks(word)
    return story.says()


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_random_sessions_are_held_to_every_law(steps: list[tuple[list[int], float, str]]) -> None:
    recording = _told(steps).recording(CHARGED)
    _worth_it(recording, _replayed(recording, Watch()))
    _replayed(recording, Watch(EAGER))


@settings(max_examples=15, deadline=None)
@given(STEPS, st.sampled_from(["claude-opus-4-6", "gpt-6.1-sol", "gpt-4o", "deepseek-v4-pro", "generic:cache=none"]))
def test_under_no_prices_a_session_costs_over_two_percent_more(
    steps: list[tuple[list[int], float, str]], spec: str
) -> None:
    charged = prices(spec)
    recording = _told(steps).recording(charged)
    _worth_it(recording, _replayed(recording, Watch(), charged), charged)


MASKING = eager(
    batch_tokens=2000,
    keep_calls=3,
    keep_reads=3,
    min_tokens=60,
    previews=Previews(1500, 600),
    arguments=ArgumentRules(gain=20),
    replaced=1,
    alone=2,
)
FILE = "".join(f"line {n} of a file, with words\n" for n in range(60))
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["Write", "Edit", "Read", "Bash"]),
        st.sampled_from(["/w/a.py", "/w/b.py", "/w/.env"]),
        st.booleans(),
        st.sampled_from([5.0, 400.0]),
    ),
    min_size=4,
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(CALLS)
def test_sessions_whose_arguments_are_masked_are_held_to_every_law(
    calls: list[tuple[str, str, bool, float]],
) -> None:
    _replayed(_written(calls).recording(CHARGED), Watch(MASKING))


def test_replayed_sessions_have_masked_arguments() -> None:
    watch = Watch(MASKING)
    calls = [("Write", "/w/b.py", False, 5.0), *[("Write", "/w/a.py", False, 5.0)] * 8]
    _replayed(_written(calls).recording(CHARGED), watch)
    assert watch.laws.masked > 0


def _written(calls: list[tuple[str, str, bool, float]]) -> Story:
    story = Story().asks()
    for number, (tool, path, failed, wait) in enumerate(calls):
        given = {"file_path": path}
        if tool == "Write":
            given["content"] = f"{number}\n{FILE}"
        elif tool == "Edit":
            given |= {"old_string": f"{number - 1}\n{FILE}", "new_string": f"{number}\n{FILE}"}
        arguments = json.dumps({"command": "ls"} if tool == "Bash" else given)
        call = ToolCall(f"call-{number}", tool, arguments, accesses(tool, arguments))
        story.entries.append(Message("assistant", (call,), at=story.now, model="claude-opus-4-6"))
        text = FILE if tool in ("Read", "Bash") else "ok"
        story.entries.append(Message("tool", (ToolResult(call.id, text, tool, is_error=failed),), at=story.now))
        story.waits(wait)
    return story.says()


def test_a_broken_law_is_reported_by_the_watched_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the test: an engine whose store forgets is found out."""
    recording = _told([([5000], 5.0, "")] * 3).recording(CHARGED)
    watch = Watch(eager(keep_calls=1, keep_reads=3, min_tokens=60, previews=Previews(1500, 600)))
    monkeypatch.setattr(WatchedEngine, "recall", lambda _engine, _object_id: "something else")
    with pytest.raises(AssertionError, match="law 1"):
        _replayed(recording, watch)


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no recorded sessions beside the checkout")
@pytest.mark.parametrize("path", sorted((CORPUS / "mini").glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_recorded_sessions_are_held_to_every_law(path: Path) -> None:
    _held(path, acts=False)


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="no recorded sessions beside the checkout")
@pytest.mark.parametrize(
    "path", [one for one in sorted((CORPUS / "dev").glob("*.tar.xz")) if "snap" not in one.name], ids=lambda p: p.name
)
def test_a_sample_of_every_source_is_held_to_every_law(path: Path) -> None:
    sources = [one for one in find([path]) if isinstance(one, Source)]
    held = 0
    for source in sources[:: max(1, len(sources) // 6)]:
        for session in read_source(source):
            calls = gather(session.entries)
            if calls.calls:
                recording = record(session.head, calls, SourceFacts({}, None, 0.0), _RATIO, CHARGED)
                _worth_it(recording, _replayed(recording, Watch()))
                _replayed(recording, Watch(EAGER))
                held += 1
    assert held

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers.arms import Arm, Peer
from benchmarks.peers.driving import Answer, Worker
from benchmarks.peers.installing import Installed
from benchmarks.peers.pricing import Bill, price
from benchmarks.peers.rendering import Asking, Rendered, render_all
from benchmarks.peers.script import Script, write_script
from benchmarks.peers.seeing import Look, look_at
from benchmarks.peers.shapes import Shapes

from pagein.providers.prices.price_lookup import Prices, prices
from pagein.providers.validity import Api
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger, Recall
from pagein.replay.policies.tally import Tally
from pagein.replay.prompt.billable_session import BillableSession
from pagein.testing.story import Story

Edit = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class Bench:
    """Puts a recording to a peer that is a function."""

    def __init__(self) -> None:
        self.charged = prices("generic:r=.1,w=1.25,min=1")

    def script(self, recording: BillableSession, api: Api = "anthropic") -> Script:
        return write_script(recording, Shapes(api))

    def rendered(self, script: Script, ask: Asking) -> list[Rendered]:
        return render_all(script, ask)

    def looks(self, script: Script, rendered: list[Rendered], recall: Recall = "full") -> list[Look]:
        return look_at(script, rendered, recall)

    def bill(self, recording: BillableSession, edit: Edit, api: Api = "anthropic", recall: Recall = "full") -> Bill:
        script = self.script(recording, api)
        rendered = self.rendered(script, asking(edit))
        return price(script, rendered, self.looks(script, rendered, recall), self.charged, recording)

    def append(self, recording: BillableSession) -> Tally:
        ledger = Ledger(recording, APPEND, self.charged, stress=False, trace=False)
        ledger.run()
        return ledger.tally


def asking(edit: Edit) -> Asking:
    """A peer's answers, by a function over the decoded messages."""

    def ask(window: int, tokens: float, limit: int, messages: Sequence[bytes]) -> Answer:
        del window, tokens, limit
        return Answer(tuple(json.dumps(one).encode() for one in edit([json.loads(one) for one in messages])))

    return ask


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def charged(bench: Bench) -> Prices:
    return bench.charged


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], Worker]:
    """Starts a worker of the fake peer."""

    def begin(variant: str) -> Worker:
        home = tmp_path / "fake" / "home"
        home.mkdir(parents=True, exist_ok=True)
        arm = Arm(Peer("fake", "tests.benchmarks.peers.fake_worker", ""), variant, "anthropic", "full", "")
        return Worker(arm, Installed(Path(sys.executable), home))

    return begin

"""The rows that `pagein replay` also has, computed by the replay: nothing, a rolling mask, the vendor's clearing, pagein."""

import subprocess
import time
from dataclasses import replace

from benchmarks.peers.arms import ROOT
from benchmarks.peers.pricing import Bill, beginning

from pagein import __version__, wiring
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.ablation import QUIET
from pagein.replay.policies.baselines import APPEND, Clear, RollingStubs
from pagein.replay.policies.ledger import Ledger, Policy, Recall
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.prompt_changes import Hide, Removable
from pagein.replay.prompt.prompt_sizes import SizedCall

OURS = ("append", "rolling", "clear", QUIET)
_FLOOR = (1, 2)


class Watched:
    """A policy, with its decisions timed, its requests compared with the ones before, and the messages alone priced.

    moves: a mark goes where a request was changed.
    """

    def __init__(self, policy: Policy, prices: Prices, *, moves: bool = False) -> None:
        self._policy, self._prices, self._moves = policy, prices, moves
        self._before: list[int] = []
        self._apart: set[int] = (
            set()
        )  # positions of what is no message of the session: floor, hidden growth, recalled texts
        self._is_new = False
        self.busts = 0
        self.alone = 0.0
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    @property
    def name(self) -> str:
        """As the policy's."""
        return self._policy.name

    @property
    def recall(self) -> Recall:
        """As the policy's."""
        return self._policy.recall

    @property
    def ttl(self) -> int | None:
        """As the policy's."""
        return self._policy.ttl

    @property
    def caches(self) -> bool:
        """As the policy's."""
        return self._policy.caches

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        """As the policy does, timed."""
        if sized.opens_segment:
            self._before, self._apart = [], set(_FLOOR)
        if sized.hidden:
            self._apart.add(len(ledger.window))
        self._is_new = True
        start, worked = time.perf_counter(), time.process_time()
        hide = self._policy.decide(sized, ledger)
        self.seconds.append(time.perf_counter() - start)
        self.cpu.append(time.process_time() - worked)
        return hide

    def frontier(self, ledger: Ledger) -> int:
        """As the policy does. Asked right before each request goes out, so the request is looked at here."""
        chain = list(ledger.window.chain)
        common = beginning(self._before, chain)
        is_bust = common != len(self._before)
        self.busts += is_bust
        if self._is_new:  # a call with a recall makes two requests; the messages are those of the first
            for position in set(range(1, len(chain) + 1)) - self._apart:
                price = self._prices.read if position <= common else self._prices.write_5m
                self.alone += price * ledger.window.tokens_at(position)
        self._before, self._is_new = chain, False
        return common + 1 if self._moves and is_bust else self._policy.frontier(ledger)

    def note_recall(self, copy: Removable, ledger: Ledger) -> None:
        """As the policy does."""
        self._apart.add(copy.position)
        self._policy.note_recall(copy, ledger)


def version() -> str:
    """What is measured: the version, and where git knows it the commit, `dirty` if it was changed since."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"pagein {__version__}"
    return f"pagein {__version__} at {done.stdout.strip()}"


def replayed(name: str, recording: BillableSession, prices: Prices) -> Bill:
    """One of OURS on one recording. No stress recalls: texts alone say what was needed, for the peers as for us."""
    if name != QUIET:
        plain: dict[str, Policy] = {"append": APPEND, "rolling": RollingStubs(), "clear": Clear()}
        bill, moved = (_billed(Watched(plain[name], prices, moves=moves), recording, prices) for moves in (False, True))
        return replace(bill, moved=moved.tally.cost)
    with PageinPolicy(recording, wiring.open_for_replay, prices, QUIET) as paging:
        watched = Watched(paging, prices)
        bill = _billed(watched, recording, prices)
        paging.prove(bill.tally)
    return replace(bill, seconds=watched.seconds, cpu=watched.cpu)


def _billed(watched: Watched, recording: BillableSession, prices: Prices) -> Bill:
    ledger = Ledger(recording, watched, prices, stress=False, trace=False)
    ledger.run()
    return Bill(ledger.tally, watched.busts, alone=watched.alone)

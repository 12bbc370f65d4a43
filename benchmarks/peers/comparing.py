"""Compare every program and every row of pagein on every session, under every price table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.arms import Arm, Peer
from benchmarks.peers.driving import Worker
from benchmarks.peers.installing import Installed, NotInstalled, install
from benchmarks.peers.ours import OURS, replayed, version
from benchmarks.peers.pricing import Bill, price
from benchmarks.peers.rendering import Asking, Rendered, render_all
from benchmarks.peers.script import Script, write_script
from benchmarks.peers.seeing import Look, look_at
from benchmarks.peers.sessions import Session
from benchmarks.peers.shapes import Shapes

from pagein.errors import HostError
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.prompt.billable_session import BillableSession


@dataclass(slots=True)
class Compared:
    """What was measured. ours: the version of pagein. bills: by price table, row and session.

    versions, absent: by peer: what was installed, or why it was not. stopped: by row: why it did not finish.
    """

    sessions: list[Session]
    prices: list[Prices]
    rows: list[str]
    ours: str
    bills: dict[tuple[str, str, str], Bill] = field(default_factory=dict)
    recordings: dict[tuple[str, str], BillableSession] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)

    def recording(self, session: Session, prices: Prices) -> BillableSession:
        """A session as it is under a price table, worked out once."""
        key = prices.name, session.head.id
        if key not in self.recordings:
            self.recordings[key] = session.under(prices)
        return self.recordings[key]

    def of(self, prices: Prices, row: str) -> list[Bill] | None:
        """A row's bills over all sessions, None where it has not finished them."""
        bills = [self.bills.get((prices.name, row, one.head.id)) for one in self.sessions]
        return [bill for bill in bills if bill is not None] if all(bill is not None for bill in bills) else None


def compare(
    sessions: list[Session],
    prices: list[Prices],
    arms: Sequence[Arm],
    folder: Path,
    tell: Callable[[str], None] = lambda _: None,
) -> Compared:
    """Install the peers, put them and pagein through the sessions."""
    compared = Compared(sessions, prices, [*OURS, *(arm.name for arm in arms)], version())
    for name in OURS:
        tell(name)
        for table in prices:
            for session in sessions:
                compared.bills[table.name, name, session.head.id] = replayed(
                    name, compared.recording(session, table), table
                )
    installed: dict[Peer, Installed | NotInstalled] = {}
    for arm in arms:
        if arm.peer not in installed:
            tell(f"installing {arm.peer.name}")
            installed[arm.peer] = install(arm.peer, folder)
        here = installed[arm.peer]
        if isinstance(here, NotInstalled):
            compared.absent[arm.peer.name] = here.why
            continue
        try:
            _run(arm, here, compared, tell)
        except HostError as problem:
            compared.stopped[arm.name] = str(problem)
    return compared


def _run(arm: Arm, installed: Installed, compared: Compared, tell: Callable[[str], None]) -> None:
    """One arm through all sessions, in one process. Each session has windows of its own, so none knows of another."""
    with Worker(arm, installed) as worker:
        compared.versions[arm.peer.name] = worker.version
        for number, session in enumerate(compared.sessions):
            tell(f"{arm.name}: {session.name}")
            played = play(compared.recording(session, compared.prices[0]), arm, _numbered(worker.ask, number))
            for table in compared.prices:
                bill = played.billed(compared.recording(session, table), table)
                compared.bills[table.name, arm.name, session.head.id] = bill


def _numbered(ask: Asking, session: int) -> Asking:
    """Windows of different sessions have different numbers."""
    return lambda window, tokens, limit, messages: ask(session * 1000 + window, tokens, limit, messages)


@dataclass(frozen=True, slots=True)
class Played:
    """A session as one arm would have sent it. Prices come after: no peer is told of them."""

    script: Script
    rendered: list[Rendered]
    looks: list[Look]

    def billed(self, recording: BillableSession, prices: Prices) -> Bill:
        """The bill under a price table, of the recording as it is under that."""
        return price(self.script, self.rendered, self.looks, prices, recording)


def play(recording: BillableSession, arm: Arm, ask: Asking) -> Played:
    """Put one session to an arm. Raises HostError where its process does not answer."""
    script = write_script(recording, Shapes(arm.api))
    rendered = render_all(script, ask)
    return Played(script, rendered, look_at(script, rendered, arm.recall))

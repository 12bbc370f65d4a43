"""The bill of a peer's requests: the whole bill as `replay.policies.ledger` bills `append`, and the messages alone.

The whole bill has floor, hidden growth, recorded misses, lifetimes, marks (system, previous end, end) and output, all as for
`append`; recalls are charged as there: one more request before the real one, and the recalled text at the end from then on.
With these marks a request that was changed far from its end is read up to the system prompt only, since a provider looks back
a few blocks from each mark. So the bill is also made for a host that knows where its peer changed the request and moves the
mark of the previous end there: what could be had with the same texts.
The messages alone are what other comparisons price: reads and writes by the longest common prefix of whole blocks with the
request before, no floor, no pauses, no output, no recalls.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.peers.rendering import Rendered
from benchmarks.peers.script import Script, Turn
from benchmarks.peers.seeing import Look
from benchmarks.peers.shapes import Shown

from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, Chains, bill
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.ledger import RECALL_OUTPUT
from pagein.replay.policies.tally import Tally
from pagein.replay.prompt.billable_session import BillableSession


@dataclass(slots=True)
class Bill:
    """What an arm's requests cost. tally: as the replay's. busts: requests that did not begin with the one before, whole.

    moved: cost of the whole bill where the host moves its mark to the first change; None where that was not asked.
    alone: the messages alone, in BIT. seconds, cpu: of each call, by the clock and of processors. failed: calls the peer gave no answer to. altered: blocks it wrote, by kind.
    """

    tally: Tally = field(default_factory=Tally)
    busts: int = 0
    moved: float | None = None
    alone: float = 0.0
    failed: int = 0
    altered: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Rider:
    """Something that stands behind a call's own messages and that no peer sees: hidden growth, a recalled text."""

    key: tuple[object, ...]
    tokens: float
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    tokens: float
    chars: int


class _Sizes:
    """Tokens of a window's blocks, as recorded; of what a peer wrote, by characters at the same density."""

    def __init__(self, chars_per_token: float) -> None:
        self._ratio = chars_per_token
        self._same: dict[Shown, list[float]] = defaultdict(list)
        self._by_call: dict[tuple[str, str], _Known] = {}

    def enter(self, turn: Turn) -> None:
        for weighed in turn.weighed:
            self._same[weighed.shown].append(weighed.tokens)
            if weighed.shown.call:
                self._by_call[weighed.shown.kind, weighed.shown.call] = _Known(weighed.tokens, weighed.chars)

    def of(self, blocks: Sequence[Shown]) -> list[float]:
        """Tokens of the blocks of one request. The same text said twice was recorded twice, each time with its size."""
        met: dict[Shown, int] = defaultdict(int)
        return [self._one(shown, met) for shown in blocks]

    def _one(self, shown: Shown, met: dict[Shown, int]) -> float:
        same = self._same.get(shown)
        if same is not None:
            met[shown] += 1
            return same[min(met[shown], len(same)) - 1]
        known = self._by_call.get((shown.kind, shown.call))
        if known is not None and known.chars:
            return len(shown.text) * known.tokens / known.chars
        return len(shown.text) / self._ratio


class _Account:
    """One arm on one recording under one price table."""

    def __init__(self, recording: BillableSession, prices: Prices, *, moves: bool = False) -> None:
        self.recording, self.prices, self.moves = recording, prices, moves
        self.bill = Bill()
        self._simulator, self._chains = CacheSimulator(prices.cache), Chains()
        self._chain: list[int] = []  # of the request before, in this window
        self._sizes = _Sizes(recording.chars_per_token)
        self._riders: list[list[_Rider]] = []  # by call of the window
        self._alone: list[Shown] = []
        self._served_before = False

    def call(self, turn: Turn, rendered: Rendered, look: Look) -> None:
        if turn.opens:
            self._sizes = _Sizes(self.recording.chars_per_token)
            self._riders, self._chain, self._alone = [], [], []
        self._sizes.enter(turn)
        self._enter_unseen(turn)
        blocks = [shown for message in rendered.messages for shown in message]
        sizes = self._sizes.of(blocks)
        self._bill_alone(blocks, sizes)
        if look.copies:
            before = self.bill.tally.cost
            self._serve(turn, rendered, sizes, RECALL_OUTPUT * len(look.copies), counted=False)
            self.bill.tally.recall_cost += self.bill.tally.cost - before
            for copy in look.copies:
                self.bill.tally.faults += 1
                self._riders[-1].append(_Rider(("r", self.bill.tally.faults), copy.tokens))
        self._serve(turn, rendered, sizes, turn.sized.output, counted=True)
        self._count(rendered, look)

    def _enter_unseen(self, turn: Turn) -> None:
        index = turn.sized.call.index
        riders = [_Rider(("u", index), turn.unseen_tokens)] if turn.unseen else []
        if turn.sized.hidden:
            riders.append(_Rider(("h", index), turn.sized.hidden, hidden=True))
        self._riders.append(riders)
        left = turn.sized.shrunk
        for rider in (one for some in reversed(self._riders) for one in reversed(some) if one.hidden):
            taken = min(rider.tokens, left)
            rider.tokens -= taken
            left -= taken

    def _keys(self, rendered: Rendered, sizes: Sequence[float]) -> list[tuple[object, float]]:
        """Floor, then blocks, each call's riders behind its messages."""
        whole, kept = self.recording.floor
        keys: list[tuple[object, float]] = [(("floor", "kept"), kept), (("floor", "own"), whole - kept)]
        ends: dict[int, list[_Rider]] = defaultdict(list)
        for place, riders in zip(rendered.places, self._riders, strict=True):
            ends[place].extend(riders)
        tokens = iter(sizes)
        for place, message in enumerate(rendered.messages):
            keys.extend((rider.key, rider.tokens) for rider in ends.get(place, ()))
            keys.extend((shown, next(tokens)) for shown in message)
        keys.extend((rider.key, rider.tokens) for rider in ends.get(len(rendered.messages), ()))
        return keys

    def _serve(self, turn: Turn, rendered: Rendered, sizes: Sequence[float], output: float, *, counted: bool) -> None:
        chain: list[int] = []
        cumulative: list[float] = []
        parent, total = Chains.ROOT, 0.0
        for key, tokens in self._keys(rendered, sizes):
            parent, total = self._chains.extend(parent, key), total + tokens
            chain.append(parent)
            cumulative.append(total)
        common = beginning(self._chain, chain)
        begins = common == len(self._chain)
        self.bill.busts += not begins
        marks = {1, len(chain), common if begins or self.moves else 1} - {0}
        call = turn.sized.call
        warm = self.recording.cold_read if self._served_before else self.recording.first_read
        request = CacheRequest(
            at=call.at,
            chain=chain,
            cumulative=cumulative,
            marks=tuple(Breakpoint(position, self.recording.ttl) for position in sorted(marks)),
            output=output,
            answered_at=call.answered_at if counted else call.at,
            read_cap=turn.sized.cap,
            warm=min(warm, total),
        )
        served = self._simulator.serve(request)
        self._served_before, self._chain = True, chain
        tally = self.bill.tally
        tally.cost += bill(served, self.prices, call.at)
        tally.read += served.read
        tally.written += served.written
        tally.fresh += served.fresh
        tally.output += served.output
        tally.floor += self.recording.floor[0]
        tally.calls += counted

    def _bill_alone(self, blocks: list[Shown], sizes: Sequence[float]) -> None:
        common = beginning(self._alone, blocks)
        read = sum(sizes[:common])
        written = sum(sizes[common:])
        self.bill.alone += self.prices.read * read + self.prices.write_5m * written
        self._alone = blocks

    def _count(self, rendered: Rendered, look: Look) -> None:
        tally = self.bill.tally
        tally.quotes_total += look.quotes
        tally.quotes_visible += look.visible
        tally.quotes_lost += look.lost
        tally.rereads += look.rereads
        tally.refused += rendered.fell == "refused"
        self.bill.failed += rendered.fell == "failed"
        for kind in look.altered:
            self.bill.altered[kind] = self.bill.altered.get(kind, 0) + 1
        if rendered.took is not None:
            seconds, cpu = rendered.took
            self.bill.seconds.append(seconds)
            self.bill.cpu.append(cpu)


def beginning(one: Sequence[object], other: Sequence[object]) -> int:
    """How many elements two lists begin with alike."""
    for place, (old, new) in enumerate(zip(one, other, strict=False)):
        if old != new:
            return place
    return min(len(one), len(other))


def price(
    script: Script, rendered: Sequence[Rendered], looks: Sequence[Look], prices: Prices, of: BillableSession
) -> Bill:
    """Bill an arm's requests. of: the recording as it is under these prices."""
    account, moving = _Account(of, prices), _Account(of, prices, moves=True)
    for turn, one, look in zip(script.turns, rendered, looks, strict=True):
        account.call(turn, one, look)
        moving.call(turn, one, look)
    account.bill.moved = moving.bill.tally.cost
    return account.bill

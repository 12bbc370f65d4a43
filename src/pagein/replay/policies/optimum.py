"""Limits of any policy that knows the whole session: the offline optimum, and the position-free lower bound.

Both are computed from the recording alone and recall nothing. Removable: tool results of 100 tokens and more (a
40-token stub remains), and tool-call arguments from 1,200 characters, all but 200 characters (15 tokens remain). A
block is *dead* after the last call that needs it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from pagein.providers.prices.price_lookup import Prices
from pagein.providers.prices.token_prices import charge
from pagein.replay.policies.tally import Tally
from pagein.replay.prompt.billable_session import BillableSession

_MIN_TOKENS, _RESULT_STUB, _ARGUMENT_STUB = 100.0, 40.0, 15.0
_ARGUMENT_FROM, _ARGUMENT_KEPT = 1200, 200
NEVER = 1 << 60

Split: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _PromptPart:
    """A part of the prompt, in the prompt from call `born` to the call before `gone`.

    gain: tokens of the part that may be evicted after call `last`.
    uses: calls that need the part.
    """

    born: int
    tokens: float
    gain: float
    last: int
    uses: tuple[int, ...]
    gone: int = NEVER


@dataclass(frozen=True, slots=True)
class _Segment:
    """The calls between two compactions: times, caps, and parts in order of appearance. warm: tokens readable at the
    first call.
    """

    first: int
    calls: int
    parts: tuple[_PromptPart, ...]
    warm: float


@dataclass(frozen=True, slots=True)
class _CacheOption:
    """A way to have prompts cached: at these prices, with the short or the long TTL."""

    prices: Prices
    long: bool = False

    @property
    def lasts(self) -> float:
        """Seconds until a cache entry has expired."""
        rules = self.prices.cache
        return (rules.long_ttl if self.long else rules.ttl) + rules.grace

    def readable(self, tokens: float) -> float:
        """Return the readable tokens of a previously sent prefix of this size."""
        rules = self.prices.cache
        return tokens * rules.hit_probability if tokens >= rules.min_prefix else 0.0

    def split(self, size: float, held: float) -> Split:
        """Split a prompt of this size into (fresh, read, written short, written long)."""
        rules = self.prices.cache
        if rules.model == "none" or (rules.model == "breakpoints" and size < rules.min_prefix):
            return size, 0.0, 0.0, 0.0
        read = min(held, size)
        if rules.model != "breakpoints":
            return size - read, read, 0.0, 0.0
        return (0.0, read, 0.0, size - read) if self.long else (0.0, read, size - read, 0.0)


def optimum(recording: BillableSession, prices: Prices, *, arguments: bool = True) -> Tally:
    """Return the bill of the cheapest edit times: append-only order, and at an edit every dead block becomes a stub.

    arguments: whether arguments of old calls may leave; if not, only results do.

    Exact over edit times per segment, under the better of the provider's TTLs for the session. Assumes a perfectly
    placed frontier breakpoint and knows every need, so nothing is recalled. Recorded misses are replayed as for every
    policy.
    """
    leases = [_CacheOption(prices)]
    if prices.cache.model == "breakpoints":
        leases.append(_CacheOption(prices, long=True))
    segments = _segments(recording, arguments=arguments)
    return min((_tally_for_option(recording, segments, lease) for lease in leases), key=lambda tally: tally.cost)


def _tally_for_option(recording: BillableSession, segments: Sequence[_Segment], lease: _CacheOption) -> Tally:
    tally = _shared_tally(recording)
    for segment in segments:
        best = _best(recording, segment, lease)
        tally.cost += best.cost
        tally.fresh += best.fresh
        tally.read += best.read
        tally.written += best.written
    return tally


def bound(recording: BillableSession, prices: Prices) -> Tally:
    """Return the lower bound for any layout with every needed block in full: each block is paid only for its uses.

    Position-free: an endless TTL, no minimum, no misses, no stubs, no recalls, no price cliffs, no peak hours.
    """
    carrier = _Carrier(prices)
    for segment in _segments(recording):
        end = segment.first + segment.calls
        ahead = segment.warm
        for part in (_PromptPart(segment.first, recording.floor[0], 0.0, end, ()), *segment.parts):
            # tokens kept warm by other sessions are read and never written; the prompt prefix comes first
            held = min(ahead, part.tokens - part.gain)
            ahead -= held
            requests = min(part.gone, end) - part.born
            carrier.carry(held, requests, paid=True)
            carrier.carry(part.tokens - part.gain - held, requests)
            carrier.carry(part.gain, len(part.uses))
    tally = _shared_tally(recording)
    tally.fresh, tally.read, tally.written = carrier.fresh, carrier.read, carrier.written
    tally.cost = carrier.cost + prices.output * tally.output
    return tally


class _Carrier:
    """Adds up blocks, each carried through a number of requests at the lowest price."""

    def __init__(self, prices: Prices) -> None:
        rules = prices.cache
        self._marked = rules.model == "breakpoints"
        self._write = min(prices.write_5m, prices.write_1h)
        self._price = prices.read
        self._warm = 0.0 if rules.model == "none" else 1.0
        self._hit = self._warm * rules.hit_probability
        self.cost = self.fresh = self.read = self.written = 0.0

    def carry(self, tokens: float, requests: int, *, paid: bool = False) -> None:
        """Add a block carried through `requests` requests: written once and read after, or fresh in each where cheaper.

        paid: another session wrote the block.
        """
        if requests <= 0 or tokens <= 0:
            return
        hits = self._warm * requests if paid else self._hit * (requests - 1)
        written = 1 if self._marked and not paid else 0
        fresh = requests - hits - written
        cached = hits * self._price + written * self._write + fresh
        if cached >= requests:
            hits, written, fresh, cached = 0.0, 0, requests, requests
        self.cost += tokens * cached
        self.read += tokens * hits
        self.written += tokens * written
        self.fresh += tokens * fresh


def _shared_tally(recording: BillableSession) -> Tally:
    """Return the figures common to both limits: output, number of calls, prompt prefix."""
    tally = Tally(output=sum(sized.output for sized in recording.sized), calls=len(recording.sized))
    tally.floor = recording.floor[0] * tally.calls
    return tally


def _segments(recording: BillableSession, *, arguments: bool = True) -> list[_Segment]:
    uses: dict[int, list[int]] = {}
    segments: list[_Segment] = []
    starts = [i for i, sized in enumerate(recording.sized) if sized.opens_segment] or [0]
    for start, end in zip(starts, [*starts[1:], len(recording.sized)], strict=True):
        for index in range(start, end):
            _note_uses(recording, index, uses)
        warm = max(recording.cold_read, recording.floor[1]) if segments else recording.first_read
        segments.append(
            _Segment(start, end - start, tuple(_parts(recording, start, end, uses, arguments=arguments)), warm)
        )
    return segments


def _note_uses(recording: BillableSession, index: int, uses: dict[int, list[int]]) -> None:
    blocks = recording.calls.blocks
    for need in recording.needs[index].needs:
        kinds = (blocks[holder.ordinal].kind for holder in need.holders)
        if not any(kind in ("user", "assistant") for kind in kinds):
            # the newest holder has to stay: a recall would return this one
            uses.setdefault(need.holders[-1].ordinal, []).append(index)


def _parts(
    recording: BillableSession, start: int, end: int, uses: dict[int, list[int]], *, arguments: bool
) -> Iterator[_PromptPart]:
    hidden = _hidden_pieces(recording, start, end)
    for index in range(start, end):
        sized = recording.sized[index]
        first, last = sized.call.blocks
        for block, tokens in zip(recording.calls.blocks[first:last], sized.blocks, strict=True):
            gain = 0.0
            if block.kind == "result" and tokens > _MIN_TOKENS:
                gain = tokens - _RESULT_STUB
            elif arguments and block.kind == "arguments" and block.chars >= _ARGUMENT_FROM:
                spared = tokens * (block.chars - _ARGUMENT_KEPT) / block.chars
                gain = spared - _ARGUMENT_STUB if spared > _MIN_TOKENS else 0.0
            used = tuple(sorted({index, *uses.get(block.ordinal, ())}))
            yield _PromptPart(index, tokens, gain, used[-1], used)
        for tokens, gone in hidden[index - start]:
            yield _PromptPart(index, tokens, 0.0, index, (index,), gone)


def _hidden_pieces(recording: BillableSession, start: int, end: int) -> list[list[tuple[float, int]]]:
    """Return, per call, the hidden tokens that entered, in pieces with the call of their removal; the newest are
    removed first.
    """
    pieces: list[list[tuple[float, int]]] = [[] for _ in range(start, end)]
    there: list[tuple[int, float]] = []
    for index in range(start, end):
        sized = recording.sized[index]
        if sized.hidden > 0:
            there.append((index, sized.hidden))
        wanted = sized.shrunk
        while wanted > 0 and there:
            born, tokens = there.pop()
            taken = min(tokens, wanted)
            wanted -= taken
            pieces[born - start].append((taken, index))
            if tokens > taken:
                there.append((born, tokens - taken))
    for born, tokens in there:
        pieces[born - start].append((tokens, NEVER))
    return pieces


def _best(recording: BillableSession, segment: _Segment, lease: _CacheOption) -> "_EditState":
    """Return the cheapest edits of a segment, by a dynamic program over the call of the last edit.

    A state is the call q of the last edit (0: none yet). At each call every state may continue or edit; of all edits
    only the cheapest counts, because they lead to the same prompt. A state with no lower cost than one with a later
    edit is dropped: the later one has a prompt at most as large and, before any newly dead block, the same blocks.
    """
    sizes = _Sizes(recording, segment)
    states: list[_EditState] = [_EditState(0, sizes.tokens_spared_before(0))]
    for t in range(segment.calls):
        sized = recording.sized[segment.first + t]
        paying = _CallPrice(lease, sized.call.at, sized.output, float("inf") if sized.cap is None else sized.cap)
        ambient = recording.cold_read if t else segment.warm
        gap = sized.call.at - recording.sized[segment.first + t - 1].call.at if t else float("inf")
        cold = gap > lease.lasts
        edit: _EditState | None = None
        for state in states:
            sizes.age(state, t)
            if t and sizes.at(t, t) < sizes.at(state.edited, t):
                held = ambient if cold else max(ambient, lease.readable(sizes.prefix_unchanged(state, t)))
                edited = state.with_edit_at(t)
                edited.go_on(sizes.at(t, t), held, paying)
                edit = edited if edit is None or edited.cost < edit.cost else edit
            held = ambient if cold else max(ambient, lease.readable(sizes.prompt_kept(state.edited, t)))
            state.go_on(sizes.at(state.edited, t), held, paying)
        if edit is not None:
            edit.stubbed = sizes.tokens_spared_before(t)
            states.append(edit)
        least = lease.prices.cache.min_prefix
        states = _drop_dominated(states, [sizes.at(state.edited, t) >= least for state in states])
    return min(states, key=lambda state: state.cost)


@dataclass(frozen=True, slots=True)
class _CallPrice:
    """The billing facts of a call, independent of its prompt: time, output tokens, maximum readable tokens."""

    lease: _CacheOption
    at: float
    output: float
    cap: float


@dataclass(slots=True)
class _EditState:
    """The cheapest edits so far, with the last edit at call `edited`. front: index of the first part that died since
    then.
    """

    edited: int
    stubbed: Sequence[float]
    cost: float = 0.0
    fresh: float = 0.0
    read: float = 0.0
    written: float = 0.0
    front: int = NEVER

    def go_on(self, size: float, held: float, paying: _CallPrice) -> None:
        fresh, read, short, long = paying.lease.split(size, min(held, paying.cap))
        self.cost += charge(paying.lease.prices, (fresh, read, short, long, paying.output), paying.at)
        self.fresh += fresh
        self.read += read
        self.written += short + long

    def with_edit_at(self, t: int) -> "_EditState":
        return _EditState(t, (), self.cost, self.fresh, self.read, self.written)


def _drop_dominated(states: list[_EditState], cacheable: list[bool]) -> list[_EditState]:
    """Drop states dominated by a later edit at a lower cost.

    cacheable: whether each prompt is long enough to be cached. A shorter prompt may cost more, so it dominates nothing.
    """
    kept: list[_EditState] = []
    least = float("inf")
    for state, cached in sorted(zip(states, cacheable, strict=True), key=lambda one: -one[0].edited):
        if state.cost < least:
            kept.append(state)
            least = state.cost if cached else least
    return kept


class _Sizes:
    """Prompt sizes n(q, t) and unchanged prefixes c(q, t) of a segment."""

    def __init__(self, recording: BillableSession, segment: _Segment) -> None:
        first = segment.first
        floor = recording.floor[0]
        grown = [0.0] * segment.calls
        freed = [0.0] * (segment.calls + 1)
        self._shrunk = [0.0] * segment.calls
        self._taken_back: list[tuple[int, int, float]] = []
        self._deaths: list[tuple[int, float]] = []
        self._before: list[float] = []
        self._dying: dict[int, int] = {}
        total = floor
        for i, part in enumerate(segment.parts):
            grown[part.born - first] += part.tokens
            if part.gone < first + segment.calls:
                self._shrunk[part.gone - first] += part.tokens
                self._taken_back.append((i, part.gone - first, part.tokens))
            self._before.append(total)
            total += part.tokens
            self._deaths.append((part.last - first, part.gain))
            if part.gain > 0:
                freed[part.last - first + 1] += part.gain
                self._dying.setdefault(part.last - first, i)
        changes = (more - less for more, less in zip(grown, self._shrunk, strict=True))
        self._full = list(accumulate(changes, initial=floor))[1:]
        self._freed = list(accumulate(freed))

    def at(self, q: int, t: int) -> float:
        """Return the size of the prompt at call t with the last edit at call q: parts that died before q are stubs."""
        return self._full[t] - self._freed[q]

    def prompt_kept(self, q: int, t: int) -> float:
        """Return the tokens of the previous call's prompt still shown at call t, with the last edit at call q."""
        return self.at(q, t - 1) - self._shrunk[t] if t else 0.0

    def tokens_spared_before(self, q: int) -> Sequence[float]:
        """Return, per part, the tokens spared by stubs in front of it if every part dead before call q is a stub."""
        return list(accumulate((gain if died < q else 0.0 for died, gain in self._deaths), initial=0.0))

    def age(self, state: _EditState, t: int) -> None:
        """Note the parts that died at the call before t."""
        if t and t - 1 >= state.edited and t - 1 in self._dying:
            state.front = min(state.front, self._dying[t - 1])

    def prefix_unchanged(self, state: _EditState, t: int) -> float:
        """Return the tokens in front of the first part newly replaced by a stub at an edit at call t."""
        if state.front == NEVER:
            return 0.0
        gone = sum(tokens for i, call, tokens in self._taken_back if call <= t and i < state.front)
        return self._before[state.front] - state.stubbed[state.front] - gone

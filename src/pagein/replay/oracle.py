"""How far one could get: the offline optimum and the position-free lower bound, with the whole session known.

Both are computed on the recording alone and recall nothing. What is removable: tool results of 100 tokens and more
(a 40-token stub remains), and of tool-call arguments from 1,200 characters all but 200 characters (15 tokens remain).
A block is *dead* after the last call that needs it. Notes on cache economics, 3; on real sessions, 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pagein.providers.prices import Prices
from pagein.replay.growth import FIVE_MINUTES
from pagein.replay.ledger import Tally
from pagein.replay.recording import Recording

_MIN_TOKENS, _RESULT_STUB, _ARGUMENT_STUB = 100.0, 40.0, 15.0
_ARGUMENT_FROM, _ARGUMENT_KEPT = 1200, 200
NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class _Part:
    """Something in the prompt: tokens from call `born` on; `gain` of them may leave after call `last`; `uses`: calls that need it."""

    born: int
    tokens: float
    gain: float
    last: int
    uses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Segment:
    """The calls between two compactions: times, caps and parts in order of appearance."""

    first: int
    calls: int
    parts: tuple[_Part, ...]


def optimum(recording: Recording, prices: Prices) -> Tally:
    """Cheapest choice of edit times in the class: append-only order; at an edit every dead block becomes a stub.

    Exact over edit times per segment; assumes a perfectly placed frontier mark, knows every need, so nothing faults.
    Recorded misses are replayed as for every policy.
    """
    tally = Tally()
    warm = recording.first_read
    for segment in _segments(recording):
        _best(recording, segment, prices, warm, tally)
        warm = max(recording.cold_read, recording.floor[1])
    return _closed(recording, prices, tally)


def bound(recording: Recording, prices: Prices) -> Tally:
    """What no layout can undercut that shows every needed block in full: each block paid only where it is used.

    Position-free: an endless lifetime, no misses, no stubs, no recalls.
    """
    tally = Tally()
    write = min(prices.write_5m, prices.write_1h)
    first = True
    for segment in _segments(recording):
        length = segment.calls
        held = recording.first_read if first else max(recording.cold_read, recording.floor[1])
        whole = recording.floor[0]
        held = min(held, whole)
        _carry(tally, held, length, prices, write, paid=True)
        _carry(tally, whole - held, length, prices, write)
        for part in segment.parts:
            _carry(tally, part.tokens - part.gain, segment.first + length - part.born, prices, write)
            if part.gain:
                _carry(tally, part.gain, len(part.uses), prices, write)
        first = False
    return _closed(recording, prices, tally)


def _carry(tally: Tally, tokens: float, requests: int, prices: Prices, write: float, *, paid: bool = False) -> None:
    """A block in `requests` requests: written once and read after, or never cached where that is cheaper."""
    if requests <= 0 or tokens <= 0:
        return
    if paid:
        tally.read += tokens * requests
        tally.cost += tokens * requests * prices.read
    elif write + (requests - 1) * prices.read < requests:
        tally.written += tokens
        tally.read += tokens * (requests - 1)
        tally.cost += tokens * (write + (requests - 1) * prices.read)
    else:
        tally.fresh += tokens * requests
        tally.cost += tokens * requests


def _closed(recording: Recording, prices: Prices, tally: Tally) -> Tally:
    tally.output = sum(sized.output for sized in recording.sized)
    tally.cost += prices.output * tally.output
    tally.calls = len(recording.sized)
    tally.floor = recording.floor[0] * tally.calls
    return tally


def _segments(recording: Recording) -> list[_Segment]:
    uses: dict[int, list[int]] = {}
    segments: list[_Segment] = []
    blocks = recording.calls.blocks
    starts = [i for i, sized in enumerate(recording.sized) if sized.opens_segment] or [0]
    for start, end in zip(starts, [*starts[1:], len(recording.sized)], strict=True):
        for index in range(start, end):
            for need in recording.needs[index].needs:
                kinds = (blocks[holder.ordinal].kind for holder in need.holders)
                if not any(kind in ("user", "assistant") for kind in kinds):
                    # the newest holder has to stay: it is the one a recall would bring back
                    uses.setdefault(need.holders[-1].ordinal, []).append(index)
        segments.append(_Segment(start, end - start, tuple(_parts(recording, start, end, uses))))
    return segments


def _parts(recording: Recording, start: int, end: int, uses: dict[int, list[int]]) -> list[_Part]:
    parts = []
    for index in range(start, end):
        sized = recording.sized[index]
        first, last = sized.call.blocks
        for block, tokens in zip(recording.calls.blocks[first:last], sized.blocks, strict=True):
            gain = 0.0
            if block.kind == "result" and tokens > _MIN_TOKENS:
                gain = tokens - _RESULT_STUB
            elif block.kind == "arguments" and block.chars >= _ARGUMENT_FROM:
                spared = tokens * (block.chars - _ARGUMENT_KEPT) / block.chars
                gain = spared - _ARGUMENT_STUB if spared > _MIN_TOKENS else 0.0
            used = tuple(sorted({index, *uses.get(block.ordinal, ())}))
            parts.append(_Part(index, tokens, gain, used[-1], used))
        parts.append(_Part(index, sized.hidden - sized.shrunk, 0.0, index, (index,)))
    return parts


def _best(recording: Recording, segment: _Segment, prices: Prices, warm: float, tally: Tally) -> None:
    """Dynamic program over the call of the last edit.

    A state is the call q of the last edit (0: none yet). At each call every state may go on or edit; of all edits
    only the cheapest counts, for they lead to the same prompt. A state that costs no less than one with a later edit
    is dropped: the later one has a prompt at most as large and, before anything newly dead, the same blocks.
    """
    sizes = _Sizes(recording, segment)
    states: list[_State] = [_State(0, 0.0, 0.0, 0.0, sizes.stubbed_before(0))]
    for t in range(segment.calls):
        sized = recording.sized[segment.first + t]
        cap = float("inf") if sized.cap is None else sized.cap
        ambient = warm if t == 0 else recording.cold_read
        gap = sized.call.at - recording.sized[segment.first + t - 1].call.at if t else float("inf")
        cold = gap >= FIVE_MINUTES
        edit: _State | None = None
        for state in states:
            sizes.age(state, t)
            if t and sizes.at(t, t) < sizes.at(state.edited, t):
                held = ambient if cold else max(ambient, sizes.unchanged(state))
                edited = state.after(t, sizes.at(t, t), min(held, cap), prices)
                edit = edited if edit is None or edited.cost < edit.cost else edit
            held = ambient if cold else max(ambient, sizes.at(state.edited, t - 1))
            state.go_on(sizes.at(state.edited, t), min(held, cap), prices)
        if edit is not None:
            edit.stubbed = sizes.stubbed_before(t)
            states.append(edit)
        states = _undominated(states)
    best = min(states, key=lambda state: state.cost)
    tally.cost += best.cost
    tally.read += best.read
    tally.written += best.written


@dataclass(slots=True)
class _State:
    """Cheapest way to here with the last edit at call `edited`. front: index of the first part that died since."""

    edited: int
    cost: float
    read: float
    written: float
    stubbed: Sequence[float]
    front: int = NEVER

    def go_on(self, size: float, held: float, prices: Prices) -> None:
        read = min(held, size)
        self.cost += prices.read * read + prices.write_5m * (size - read)
        self.read += read
        self.written += size - read

    def after(self, t: int, size: float, held: float, prices: Prices) -> "_State":
        edited = _State(t, self.cost, self.read, self.written, ())
        edited.go_on(size, held, prices)
        return edited


def _undominated(states: list[_State]) -> list[_State]:
    kept: list[_State] = []
    for state in sorted(states, key=lambda state: -state.edited):
        if not kept or state.cost < kept[-1].cost:
            kept.append(state)
    return kept


class _Sizes:
    """Prompt sizes n(q, t) and unchanged prefixes c(q, t) of one segment (notes on cache economics, 3.3)."""

    def __init__(self, recording: Recording, segment: _Segment) -> None:
        first = segment.first
        floor = recording.floor[0]
        grown = [0.0] * segment.calls
        freed = [0.0] * (segment.calls + 1)
        self._deaths: list[tuple[int, float]] = []
        self._before: list[float] = []
        self._dying: dict[int, int] = {}
        total = floor
        for i, part in enumerate(segment.parts):
            grown[part.born - first] += part.tokens
            self._before.append(total)
            total += part.tokens
            self._deaths.append((part.last - first, part.gain))
            if part.gain > 0:
                freed[part.last - first + 1] += part.gain
                self._dying.setdefault(part.last - first, i)
        self._full = list(accumulate(grown, initial=floor))[1:]
        self._freed = list(accumulate(freed))

    def at(self, q: int, t: int) -> float:
        """Prompt at call t when the last edit was at call q: what died before q is stubs. The floor at t = -1."""
        return self._full[t] - self._freed[q] if t >= 0 else 0.0

    def stubbed_before(self, q: int) -> Sequence[float]:
        """Per part, the tokens that stubs spare in front of it when everything dead before call q is stubbed."""
        return list(accumulate((gain if died < q else 0.0 for died, gain in self._deaths), initial=0.0))

    def age(self, state: _State, t: int) -> None:
        """Note what died at the call before t."""
        if t and t - 1 >= state.edited and t - 1 in self._dying:
            state.front = min(state.front, self._dying[t - 1])

    def unchanged(self, state: _State) -> float:
        """Tokens in front of the first part that an edit now would newly stub."""
        return self._before[state.front] - state.stubbed[state.front] if state.front != NEVER else 0.0

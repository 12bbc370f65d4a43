"""Caches with entries at breakpoints only (Anthropic A1-A12, OpenAI from GPT-5.6 O1-O8).

Rules of this file
------------------
1. An entry is found by the chain id of the block it ends with. So the work per request is the number of breakpoints
   times the look-back, plus the blocks between the end of the read and the last write. Only a cold prompt is walked
   whole.
2. A dead entry never becomes live again; a write at its place makes a new entry. So links between entries may skip dead
   ones.
3. Reading an entry keeps alive the entries that it extends (A6): those linked when it was written, and those at the
   breakpoints of the reading request. An entry written between them later, after a rewind, is not searched for.
4. Reads are limited in one place (`_readable`): by what other requests keep warm, by the recording's limit on what was
   readable, and by the last breakpoint.
"""

from bisect import bisect_right
from dataclasses import dataclass

from pagein.errors import BadInput
from pagein.providers.caches.breakpoint_rules import breakpoint_refusal
from pagein.providers.caches.cache_entries import CacheEntry
from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint, CacheRequest, CacheUsage, Reason


@dataclass(frozen=True, slots=True)
class _ReadEntry:
    """The entry read by a request, with position and tokens; without an entry, the reason."""

    position: int = 0
    tokens: float = 0.0
    entry: CacheEntry | None = None
    reason: Reason = "not_found"


class Breakpoints:
    """The state of a cache with breakpoints. Serve requests in the order of their start."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._entries: dict[int, CacheEntry] = {}
        self._ttl = {SHORT: rules.ttl + rules.grace, LONG: rules.long_ttl + rules.grace}

    def serve(self, request: CacheRequest) -> CacheUsage:
        """Serve one request and store its reads and writes.

        Raises BadInput for breakpoints that the provider would refuse.
        """
        total = request.prompt
        if not (standing := self._all_breakpoints(request)):
            return CacheUsage(0.0, 0.0, 0.0, total, request.output, 0, "no_marks")
        size = request.cumulative
        if not (marks := [m for m in standing if size[m.position - 1] >= self._rules.min_prefix]):
            return CacheUsage(0.0, 0.0, 0.0, total, request.output, 0, "below_minimum")
        found = self._find(request, marks)
        end = size[marks[-1].position - 1]
        read, reason = _readable(request, found, end)
        if read < found.tokens:
            self._lose(request, read)
        self._refresh(request, found, marks)
        hit = found.position if read == found.tokens else bisect_right(size, read)
        # a read beyond our own entry proves the entries of other requests; from here on they are known to live
        storing = [m for m in marks[-self._rules.max_marks :] if m.position > min(hit, found.position)]
        self._write(request, min(hit, found.position), storing)
        split = max(read, max((size[m.position - 1] for m in storing if m.ttl == LONG), default=0.0))
        return CacheUsage(read, end - split, split - read, total - end, request.output, hit, reason)

    def _all_breakpoints(self, request: CacheRequest) -> list[Breakpoint]:
        """The breakpoints of the request, including the provider's own, first to last."""
        marks = request.marks
        rules = self._rules
        last = len(request.chain)
        for mark in marks:
            if not 1 <= mark.position <= last or mark.ttl not in self._ttl:
                raise BadInput(f"{mark} on a prompt of {last} blocks; position 1 to {last}, ttl {SHORT} or {LONG}")
        if rules.strict_marks:
            if (why := breakpoint_refusal(marks, rules.max_marks)) is not None:
                raise BadInput(f"{why.rule}: {why.message}")
        elif implicit := _implicit(request, rules):
            marks = (*marks, Breakpoint(implicit))
        if len(marks) <= 1:
            return list(marks)
        by_position = {mark.position: mark for mark in sorted(marks, key=lambda mark: (mark.position, mark.ttl))}
        return list(by_position.values())

    def _find(self, request: CacheRequest, marks: list[Breakpoint]) -> _ReadEntry:
        """The last live entry within the provider's search (A3, or O5)."""
        at, chain = request.at, request.chain
        reason: Reason = "not_found"
        for position in self._candidates(request, marks):
            entry = self._entries.get(chain[position - 1])
            if entry is None:
                continue
            if not entry.alive(at):
                reason = "expired"
            elif entry.usable_from > at:
                reason = "unanswered"
            else:
                return _ReadEntry(position, request.cumulative[position - 1], entry, "hit")
        return _ReadEntry(reason=reason)

    def _candidates(self, request: CacheRequest, marks: list[Breakpoint]) -> "list[int] | range":
        rules = self._rules
        if rules.lookback is None:
            return self._breakpoints(request, marks)
        if len(marks) == 1:
            last = marks[0].position
            return range(last, max(last - rules.lookback, 0), -1)
        positions: list[int] = []
        lowest = len(request.chain) + 1
        for mark in reversed(marks):
            first = min(mark.position, lowest - 1)
            lowest = min(lowest, max(mark.position - rules.lookback, 0) + 1)
            positions.extend(range(first, lowest - 1, -1))
        return positions

    def _breakpoints(self, request: CacheRequest, marks: list[Breakpoint]) -> list[int]:
        """Positions of the latest breakpoints of the conversation, including entries at the provider's own breakpoints."""
        most = self._rules.read_breakpoints
        if self._rules.implicit_eligible == "none":
            return [mark.position for mark in reversed(marks[-most:])]
        standing = {mark.position for mark in marks}
        found: list[int] = []
        for position in range(len(request.chain), 0, -1):
            if position in standing or request.chain[position - 1] in self._entries:
                found.append(position)
                entry = self._entries.get(request.chain[position - 1])
                if len(found) == most or (entry and entry.alive(request.at) and entry.usable_from <= request.at):
                    break
        return found

    def _refresh(self, request: CacheRequest, found: _ReadEntry, marks: list[Breakpoint]) -> None:
        entry, at = found.entry, request.at
        if entry is None or not self._rules.refresh_on_read:
            return
        if not self._rules.ancestor_refresh:
            entry.use_alone(at)
            return
        entry.use(at)
        for mark in marks:
            if mark.position < found.position:
                marked = self._entries.get(request.chain[mark.position - 1])
                if marked is not None and marked.alive(at) and marked.group is not entry.group:
                    marked.use(at)

    def _lose(self, request: CacheRequest, readable: float) -> None:
        """Forget the entries of this prompt that reach beyond `readable` tokens: the provider no longer had them."""
        for position in range(len(request.chain), 0, -1):
            if request.cumulative[position - 1] <= readable:
                break
            if (entry := self._entries.pop(request.chain[position - 1], None)) is not None:
                entry.lost = True

    def _write(self, request: CacheRequest, hit: int, marks: list[Breakpoint]) -> None:
        """Store an entry at each breakpoint. The breakpoints are beyond block `hit`."""
        above = self._entries.get(request.chain[hit - 1]) if hit else None
        below = hit if above is not None else 0
        for mark in marks:
            if not self._rules.prefix_bound:  # else the blocks behind the hit are new, whatever ended there before
                above = self._nearest(request, mark.position - 1, below) or above
            above = self._store(request, mark, above)
            below = mark.position

    def _nearest(self, request: CacheRequest, last: int, below: int) -> CacheEntry | None:
        """The last entry at a position between `below` (excluded) and `last` (included)."""
        chain, entries = request.chain, self._entries
        for position in range(last, below, -1):
            if (entry := entries.get(chain[position - 1])) is not None:
                return entry
        return None

    def _store(self, request: CacheRequest, mark: Breakpoint, above: CacheEntry | None) -> CacheEntry:
        name, at = request.chain[mark.position - 1], request.at
        ttl, usable_from = self._ttl[mark.ttl], request.usable_from
        if above is not None and self._rules.prefix_bound:
            ttl = min(ttl, above.group.used + above.ttl - at)
        old = self._entries.get(name)
        together = self._rules.ancestor_refresh
        if old is not None and old.alive(at):
            # another request's write of the same prefix is still unanswered
            usable_from = min(usable_from, old.usable_from)
            if old.ttl == ttl:
                old.usable_from = usable_from
                if not self._rules.refresh_on_read:
                    return old
                old.use(at) if together else old.use_alone(at)
                return old
        entry = CacheEntry(at, ttl, usable_from, above, joins=together)
        self._entries[name] = entry
        return entry


def _implicit(request: CacheRequest, rules: CacheRules) -> int:
    """Position of the provider's automatic breakpoint (O4), or 0."""
    if rules.implicit_eligible == "none":
        return 0
    if not (request.newest_user or request.newest_tool):
        return len(request.chain)
    if rules.implicit_eligible == "last_user":
        return request.newest_user
    return max(request.newest_user, request.newest_tool)


def _readable(request: CacheRequest, found: _ReadEntry, end: float) -> tuple[float, Reason]:
    """The number of tokens read, and the reason."""
    read, reason = found.tokens, found.reason
    warm = min(request.warm, end)
    if warm > read:
        read, reason = warm, "warm"
    if request.read_cap is not None and request.read_cap < read:
        read, reason = max(request.read_cap, 0.0), "capped"
    return read, reason

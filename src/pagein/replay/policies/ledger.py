"""A policy at work on a session: the prompt, the blocks hidden by the policy, and the bill of every call.

The loop is the same for all policies; a policy only decides, before each call, which removable blocks to hide
(`replay.policies.baselines`). Order within a call: new blocks, the policy, needs and recalls, the request. Quotes are
checked before the recall.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias

from pagein.model.bill import EpochMark
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, CacheUsage, Chains, bill
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.shown_blocks import ShownBlocks
from pagein.replay.policies.stress_needs import StressNeeds
from pagein.replay.policies.tally import Tally, Trace
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.hidden_tokens import HiddenGrowth
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_changes import (
    Hide,
    MaskedArguments,
    PreviewedBlock,
    ReadAgain,
    Removable,
    RemovedTurns,
)
from pagein.replay.prompt.prompt_sizes import SizedCall
from pagein.replay.prompt.prompt_window import Part, PromptWindow
from pagein.replay.prompt.recorded_needs import Holder, Needs

Recall: TypeAlias = Literal["slice", "full"]
Changes: TypeAlias = dict[int, tuple[tuple[object, ...], Part, float]]

SLICE_TOKENS = 1500.0
RECALL_OUTPUT = 60.0
SUMMARY_TOKENS, SUMMARY_OUTPUT = 2800.0, 2500.0
SYSTEM_POSITION = 1  # of the breakpoint after the prompt prefix


class Policy(Protocol):
    """Decides which blocks leave the prompt. Receives every call in order, and makes a decision before each request.

    name: key of the policy in the bill.
    recall: how much text a recall returns.
    ttl: the cache TTL asked for, seconds; None: as the host asked.
    caches: False bills every prompt token as fresh.
    """

    @property
    def name(self) -> str: ...
    @property
    def recall(self) -> Recall: ...
    @property
    def ttl(self) -> int | None: ...
    @property
    def caches(self) -> bool: ...

    def decide(self, sized: SizedCall, ledger: "Ledger") -> Hide:
        """Return the changes before this call. The ledger is read-only here."""
        ...

    def frontier(self, ledger: "Ledger") -> int:
        """Return the position of the first block that a later decision may change; 0 if no breakpoint is spent on it."""
        ...

    def note_recall(self, copy: Removable, ledger: "Ledger") -> None:
        """Receive the copy of a recalled text, now at the end of the prompt."""
        ...


class Ledger:
    """The state of a policy on a session, call by call."""

    def __init__(
        self, recording: BillableSession, policy: Policy, prices: Prices, *, stress: bool, trace: bool
    ) -> None:
        self.recording = recording
        self.policy = policy
        self.prices = prices
        self.tally = Tally()
        self.trace = Trace() if trace else None
        self.window = PromptWindow(Chains())
        self.resident: deque[Removable] = deque()  # blocks that may be evicted, oldest first
        self.shown = ShownBlocks()
        self._stress = StressNeeds(recording.head.id, drawn=stress)
        self._simulator = CacheSimulator(prices.cache)
        self.arguments: dict[str, Removable] = {}  # by call id
        self._position: dict[int, int] = {}
        self._growth = HiddenGrowth()
        self._previous_end = 0
        self._first_changed = 0  # position of the first block changed since the last request, 0: none
        self._frontier = 0  # position of the frontier breakpoint of the last request, 0: none
        self._tail = 0  # position of the first block after the last breakpoint, 0: the breakpoint is at the end
        self._ends: dict[str | None, int] = {}  # by model: the last breakpoint of its last request, if blocks follow
        self._told = 0  # position of the note about evicted turns, 0: none
        self._rewritten = 0  # end position of the last rewritten request, 0: none
        self._recalls = self._windows = 0
        self.served: CacheUsage | None = None  # usage of the last call

    def run(self) -> None:
        """Bill every call."""
        for sized, needs in zip(self.recording.sized, self.recording.needs, strict=True):
            self._enter(sized)
            hide = self.policy.decide(sized, self)
            for one in hide.previews:
                self._preview(sized, one)
            for reread in hide.rereads:
                self._read_again(reread)
            if hide.notices:
                self.window.append(("n", sized.call.index), "stubs", hide.notices)
            if hide.compact:
                self._compact(sized, hide)
            elif hide.changes_sent:
                self._hide(sized, hide)
            self._tail = hide.tail
            self._look(sized, needs)
            self._serve(sized, sized.output, cap=sized.cap)

    # ── new blocks ─────────────────────────────────────────────────────────

    def _enter(self, sized: SizedCall) -> None:
        if sized.opens_segment:
            self._begin(sized.call.blocks[0])
        first, last = sized.call.blocks
        blocks = self.recording.calls.blocks
        for block, tokens in zip(blocks[first:last], sized.blocks, strict=True):
            self._append(block, tokens)
        self._growth.enter(sized, self.window)

    def _begin(self, ordinal: int) -> None:
        whole, kept = self.recording.floor
        # the rest of the prompt prefix is written anew after a compaction, so no cache of an earlier window holds it
        own = ("floor", "own", self._windows)
        self.window.begin([(("floor", "kept"), "floor", kept), (own, "floor", whole - kept)])
        self._windows += 1
        for state in (self.resident, self._position, self._growth, self._stress, self.arguments, self._ends):
            state.clear()
        self.shown = ShownBlocks(gone_before=ordinal)
        self._previous_end = self._first_changed = self._frontier = self._rewritten = self._told = self._tail = 0

    def _append(self, block: Block, tokens: float) -> None:
        part: Part = "results" if block.kind == "result" else block.kind
        position = self.window.append(("b", block.ordinal), part, tokens)
        self._position[block.ordinal] = position
        one = Removable(("b", block.ordinal), position, tokens, block.born, block.ordinal, block.call_id)
        if block.kind == "arguments":
            self.arguments[block.call_id] = replace(one, is_arguments=True)
        if block.kind == "result":
            self.resident.append(one)

    def user_blocks(self) -> Iterator[tuple[int, int, float]]:
        """Yield the user's unchanged blocks: ordinal, position and tokens of each."""
        blocks = self.recording.calls.blocks
        for ordinal, position in self._position.items():
            if blocks[ordinal].kind == "user" and ordinal not in self.shown.hidden:
                yield ordinal, position, self.window.tokens_at(position)

    # ── evictions ──────────────────────────────────────────────────────────

    def _hide(self, sized: SizedCall, hide: Hide) -> None:
        gone = {removable.key for removable, _ in hide.stubs}
        self.resident = deque(one for one in self.resident if one.key not in gone)
        changes: Changes = {}
        before = self.window.size
        for removable, stub in hide.stubs:
            changes[removable.position] = (("s", *removable.key), "stubs", stub)
            if removable.key[0] == "b":
                self.shown.hidden[removable.holder] = removable
                self._stress.draw(sized.call.index, removable.holder)
            elif removable.key[0] == "p":
                del self.shown.cover[removable.holder]
            elif removable.key[0] == "a":
                self._unanswer(sized.call.index, removable)
            else:
                self.shown.copies[removable.holder].remove(removable)
        for masked in hide.masked:
            changes[masked.block.position] = self._mask(masked, sized.call.index)
        self.tally.stubs += len(changes)
        blocks = [one for one, _ in hide.stubs] + [one.block for one in hide.masked]
        if hide.gone is not None:
            blocks += self._leave(sized.call.index, hide.gone, changes)
        if not blocks:
            return
        born = min(blocks, key=lambda one: one.position).born
        thinking = self._growth.thinking_removed(born, hide.finished, self.window)
        self._first_changed = self.window.replace({**changes, **thinking})
        self.tally.epochs += not hide.is_uncached
        if self.trace is not None:
            saved = round(before - self.window.size)
            self.trace.epochs.append(
                EpochMark(call=sized.call.index, reason=hide.reason, paged=len(changes), tokens=saved)
            )

    def _leave(self, index: int, gone: RemovedTurns, changes: Changes) -> list[Removable]:
        """Evict whole turns: a text replaces the turns evicted so far. Return the evicted blocks."""
        blocks = self.recording.calls.blocks
        left: list[Removable] = []
        for ordinal in gone.ordinals:
            position = self._position.get(ordinal)
            if position is None:
                continue
            block = blocks[ordinal]
            whole = Removable(
                ("b", ordinal), position, self.window.tokens_at(position), block.born, ordinal, block.call_id
            )
            if ordinal not in self.shown.hidden:
                self.shown.hidden[ordinal] = whole
                self._stress.draw(index, ordinal)
            self.shown.cover.pop(ordinal, None)
            self.shown.answers.pop(ordinal, None)
            changes[position] = (("g", ordinal), "stubs", 0.0)
            left.append(whole)
        for copy in gone.copies:
            copies = self.shown.copies.get(copy.holder, [])
            if copy in copies:
                copies.remove(copy)
                changes[copy.position] = (("g", *copy.key), "stubs", 0.0)
                left.append(copy)
        places = {one.position for one in left}
        self.resident = deque(one for one in self.resident if one.position not in places)
        if left:
            self._told = min(self._told or min(places), *places)
            changes[self._told] = (("t", index), "stubs", gone.stands)
        return left

    def _mask(self, masked: MaskedArguments, index: int) -> tuple[tuple[object, ...], Part, float]:
        """Mask texts in arguments; the rest is shown as before."""
        block = masked.block
        ordinal = block.holder
        if ordinal not in self.shown.hidden:
            self._stress.draw(index, ordinal)
        self.shown.hidden[ordinal] = block
        self.shown.cover[ordinal] = masked.shown
        part: Part = "arguments" if block.is_arguments else "user"
        return (("m", ordinal, masked.shown), part, masked.tokens)

    def _preview(self, sized: SizedCall, one: PreviewedBlock) -> None:
        """Replace a block by a preview before its first request: nothing before the tail changes."""
        whole = one.block
        chars = self.recording.calls.blocks[whole.holder].chars
        small = replace(whole, key=("p", whole.holder), tokens=one.tokens)
        self._stand_in(whole, small)
        self.shown.cover[whole.holder] = ((0, one.head), (chars - one.tail, 1 << 62))
        self._stress.draw_preview(sized.call.index, whole.holder)

    def _read_again(self, one: ReadAgain) -> None:
        """Replace a read by its shorter answer before its first request: nothing before the tail changes."""
        whole = one.block
        small = replace(whole, key=("a", whole.holder), tokens=one.tokens)
        self._stand_in(whole, small)
        self.shown.cover[whole.holder] = one.shown
        self.shown.answers[whole.holder] = one.again
        if one.again is not None:
            self.shown.copies.setdefault(one.again, []).append(small)

    def _unanswer(self, index: int, answer: Removable) -> None:
        """Evict an answer together with the text it was given for."""
        del self.shown.cover[answer.holder]
        again = self.shown.answers.pop(answer.holder)
        if again is not None:
            self.shown.copies[again].remove(answer)
        self._stress.draw(index, answer.holder)

    def _stand_in(self, whole: Removable, small: Removable) -> None:
        """Put a smaller block in the place of another."""
        self.resident = deque(small if other.key == whole.key else other for other in self.resident)
        self.window.replace({whole.position: (small.key, "stubs", small.tokens)})
        self.shown.hidden[whole.holder] = whole
        self.tally.stubs += 1

    def _compact(self, sized: SizedCall, hide: Hide) -> None:
        """Write a summary by one more request; the window becomes prompt prefix, summary and new blocks."""
        before = self.window.size
        self._serve(sized, SUMMARY_OUTPUT, counted=False)
        first, last = sized.call.blocks
        blocks = self.recording.calls.blocks
        self._begin(first)
        self.window.append(("summary", sized.call.index), "stubs", SUMMARY_TOKENS)
        for block, tokens in zip(blocks[first:last], sized.blocks, strict=True):
            self._append(block, tokens)
        self.tally.epochs += 1
        if self.trace is not None:
            saved = round(before - self.window.size)
            self.trace.epochs.append(EpochMark(call=sized.call.index, reason=hide.reason, paged=0, tokens=saved))

    # ── needs and recalls ──────────────────────────────────────────────────

    def _look(self, sized: SizedCall, needs: Needs) -> None:
        tally = self.tally
        for quote in needs.quotes:
            tally.quotes_total += 1
            shown = any(map(self._is_shown, quote.holders)) or bool(
                quote.spans and all(map(self._is_shown, quote.spans))
            )
            shown = shown or any(self.shown.is_covered(place, quote.length) for place in quote.places)
            tally.quotes_visible += shown
            tally.quotes_lost += quote.visible_raw and not shown
        tally.rereads += sum(not self.shown.is_whole(one) and one not in self.shown.answers for one in needs.rereads)
        wanted: dict[int, Holder] = {}
        for need in needs.needs:
            if not self.shown.meets(need) and not any(holder.ordinal in wanted for holder in need.holders):
                wanted[need.holders[-1].ordinal] = need.holders[-1]
        tally.faults += len(wanted)
        for ordinal in self._stress.due(sized.call.index):
            if not self.shown.is_whole(ordinal) and ordinal not in wanted and ordinal not in self.shown.copies:
                wanted[ordinal] = Holder(ordinal, 0)
                tally.stress_recalls += 1
        if wanted:
            self._bring_back(sized, wanted.values())

    def _is_shown(self, ordinal: int) -> bool:
        return self.shown.is_shown(ordinal, self.recording.calls.blocks[ordinal].chars)

    def _bring_back(self, sized: SizedCall, wanted: Iterable[Holder]) -> None:
        """Recall texts by an extra request before the real one, which alone pays for a recorded miss."""
        holders = list(wanted)
        before = self.tally.cost
        self._serve(sized, RECALL_OUTPUT * len(holders), counted=False)
        self.tally.recall_cost += self.tally.cost - before
        for holder in holders:
            copy = self._copy(sized.call.index, holder)
            self.shown.copies.setdefault(holder.ordinal, []).append(copy)
            self.resident.append(copy)
            self.policy.note_recall(copy, self)

    def _copy(self, index: int, holder: Holder) -> Removable:
        block = self.recording.calls.blocks[holder.ordinal]
        original = self.shown.hidden.get(holder.ordinal)
        tokens = original.tokens if original is not None else block.chars / self.recording.chars_per_token
        first, last = 0, block.chars
        if self.policy.recall == "slice" and tokens > SLICE_TOKENS:
            span = int(block.chars * SLICE_TOKENS / tokens)
            first = max(0, min(holder.offset - span // 4, block.chars - span))
            last, tokens = first + span, SLICE_TOKENS
        self._recalls += 1
        key = ("r", self._recalls)
        position = self.window.append(key, "recalled", tokens)
        return Removable(key, position, tokens, index, holder.ordinal, f"pagein-recall-{self._recalls}", first, last)

    # ── requests ───────────────────────────────────────────────────────────

    def _serve(self, sized: SizedCall, output: float, *, cap: float | None = None, counted: bool = True) -> CacheUsage:
        call = sized.call
        warm = self.recording.cold_read if self.served is not None else self.recording.first_read
        request = CacheRequest(
            at=call.at,
            chain=self.window.chain,
            cumulative=self.window.cumulative,
            marks=self._breakpoints(call.model),
            output=output,
            answered_at=call.answered_at if counted else call.at,
            read_cap=cap,
            warm=min(warm, self.window.size),
        )
        none = CacheUsage(read=0.0, written_5m=0.0, written_1h=0.0, fresh=self.window.size, output=output, hit=0)
        served = self._simulator.serve(request) if self.policy.caches else none
        self._previous_end, self._first_changed = self.cached_end, 0
        self._ends[call.model] = self.cached_end if self._tail else 0
        cost = bill(served, self.prices, call.at)
        self.tally.add_request(served, cost, self.recording.floor[0])
        if self.trace is not None:
            self.trace.add_request(served, cost, self.tally.calls, self.window.by_part if counted else None)
        self.tally.calls += counted
        self.served = served if counted else self.served
        return served

    @property
    def cached_end(self) -> int:
        """Position of the last breakpoint of this request."""
        return self._tail - 1 if self._tail else len(self.window)

    def _breakpoints(self, model: str | None) -> tuple[Breakpoint, ...]:
        ttl = self.policy.ttl or self.recording.ttl
        end = self.cached_end
        positions = {SYSTEM_POSITION, end}
        frontier = self.policy.frontier(self) - 1
        if not self._first_changed or self._first_changed > self._previous_end:
            positions.add(self._ends.get(model) or self._previous_end)  # a model that is back reads its own entry
        else:
            positions.add(self._readable(frontier))
            self._rewritten = end
        if SYSTEM_POSITION < frontier < end:
            positions.add(frontier)
            self._frontier = frontier
        positions.discard(0)
        return tuple(Breakpoint(position, ttl) for position in sorted(positions))

    def _readable(self, frontier: int) -> int:
        """Return the breakpoint position from which a rewritten request reads the prompt before its first change.

        The engine places its own breakpoints by the same rule (`engine.cache.cache_breakpoints`, rule 4): before the
        change there are ends of earlier requests, but the part written last has no cache entry except at its frontier.
        """
        first = self._first_changed
        if frontier > 0 and first > self._rewritten:
            return first - 1
        return self._frontier if self._frontier < first else 0

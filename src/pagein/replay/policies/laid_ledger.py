"""A session in a layout, billed call by call: the counterpart of `ledger` for layouts that order the prompt by themselves.

Needs, quotes, stress and the order within a call are those of `ledger`.
"""

from collections.abc import Iterable
from typing import Final

from pagein.model.bill import EpochMark
from pagein.model.laid_prompts import LaidBlock, LaidPrompt
from pagein.policy.layouts.conversation_blocks import MOST_MARKS
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, CacheUsage, Chains, bill
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.laid_sessions import LaidSession, WantedText
from pagein.replay.policies.ledger import RECALL_OUTPUT
from pagein.replay.policies.stress_needs import StressNeeds
from pagein.replay.policies.tally import Tally, Trace
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.prompt_sizes import ONE_HOUR, SizedCall
from pagein.replay.prompt.prompt_window import PARTS, Part
from pagein.replay.prompt.recorded_needs import Needs, Quote

_SYSTEM: Final = 1


class LaidLedger:
    """The bill of a session in a layout."""

    def __init__(
        self, recording: BillableSession, session: LaidSession, prices: Prices, *, stress: bool, trace: bool
    ) -> None:
        self.recording, self.session, self.prices = recording, session, prices
        self.tally = Tally()
        self.trace = Trace() if trace else None
        self._stress = StressNeeds(recording.head.id, drawn=stress)
        self._simulator, self._chains = CacheSimulator(prices.cache), Chains()
        self._windows = self._first = self._epochs = 0
        self._last: float | None = None
        rules = prices.cache
        self._lasts = (rules.long_ttl if recording.ttl == ONE_HOUR else rules.ttl) + rules.grace

    def run(self) -> None:
        """Bill every call."""
        session = self.session
        for sized, needs in zip(self.recording.sized, self.recording.needs, strict=True):
            if sized.opens_segment:
                self._windows += 1
                self._first = sized.call.blocks[0]
                self._stress.clear()
                session.begin()
            cold = self._last is not None and sized.call.at - self._last > self._lasts
            session.enter(sized, cold=cold)
            for ordinal in session.left():
                self._stress.draw(sized.call.index, ordinal)
            self._look(sized, needs)
            self._serve(sized, session.prompt(), sized.output)
            self._last = sized.call.at
            self._mark_epoch(sized)
        self.tally.epochs, self.tally.stubs = session.epochs, session.replaced

    def _mark_epoch(self, sized: SizedCall) -> None:
        if self.trace is not None and self.session.epochs > self._epochs:
            self.trace.epochs.append(EpochMark(call=sized.call.index, reason="layout", paged=0, tokens=0))
        self._epochs = self.session.epochs

    # ── needs and recalls ──────────────────────────────────────────────────

    def _look(self, sized: SizedCall, needs: Needs) -> None:
        tally, shows = self.tally, self.session.shows
        for quote in needs.quotes:
            tally.quotes_total += 1
            shown = self._is_quote_shown(quote)
            tally.quotes_visible += shown
            tally.quotes_lost += quote.visible_raw and not shown
        tally.rereads += sum(not self._is_there(one) for one in needs.rereads)
        wanted: dict[int, WantedText] = {}
        for need in needs.needs:
            texts = [WantedText(one.ordinal, one.offset, need.length) for one in need.holders]
            if not any(one.ordinal in wanted or (one.ordinal >= self._first and shows(one)) for one in texts):
                wanted[texts[-1].ordinal] = texts[-1]
        tally.faults += len(wanted)
        for ordinal in self._stress.due(sized.call.index):
            if not self._is_there(ordinal) and ordinal not in wanted:
                wanted[ordinal] = WantedText(ordinal)
                tally.stress_recalls += 1
        if wanted:
            before = tally.cost
            self._serve(sized, self.session.prompt(), RECALL_OUTPUT * len(wanted), counted=False)
            tally.recall_cost += tally.cost - before
            self.session.bring_back(tuple(wanted.values()))

    def _is_there(self, ordinal: int) -> bool:
        return ordinal >= self._first and self.session.shows(WantedText(ordinal))

    def _is_quote_shown(self, quote: Quote) -> bool:
        if any(map(self._is_there, quote.holders)) or bool(quote.spans and all(map(self._is_there, quote.spans))):
            return True
        places = (WantedText(one.ordinal, one.offset, quote.length) for one in quote.places)
        return any(one.ordinal >= self._first and self.session.shows(one) for one in places)

    # ── requests ───────────────────────────────────────────────────────────

    def _serve(self, sized: SizedCall, prompt: LaidPrompt, output: float, *, counted: bool = True) -> CacheUsage:
        call = sized.call
        chain, cumulative = self._chain(prompt.blocks)
        heads = len(chain) - len(prompt.blocks)
        # the recording's own system prompt has the first breakpoint, as in every policy
        marks = (_SYSTEM, *(heads + place + 1 for place in prompt.marks[1 - MOST_MARKS :]))
        warm = self.recording.cold_read if self._last is not None else self.recording.first_read
        served = self._simulator.serve(
            CacheRequest(
                at=call.at,
                chain=chain,
                cumulative=cumulative,
                marks=tuple(Breakpoint(place, self.recording.ttl) for place in marks),
                output=output,
                answered_at=call.answered_at if counted else call.at,
                read_cap=sized.cap if counted else None,  # a recorded miss happens once
                warm=min(warm, cumulative[-1]),
            )
        )
        cost = bill(served, self.prices, call.at)
        self.tally.add_request(served, cost, self.recording.floor[0])
        if self.trace is not None:
            self.trace.add_request(served, cost, self.tally.calls, self._parts(prompt.blocks) if counted else None)
        self.tally.calls += counted
        return served

    def _chain(self, blocks: Iterable[LaidBlock]) -> tuple[list[int], list[float]]:
        """Name each prefix of the prompt. The prompt prefix of the recording comes first."""
        whole, kept = self.recording.floor
        floor = ((("floor", "kept"), kept), (("floor", "own", self._windows), whole - kept + self.session.overhead))
        parent, total = Chains.ROOT, 0.0
        chain, cumulative = [], []
        extend = self._chains.extend
        for key, tokens in floor:
            parent, total = extend(parent, key), total + tokens
            chain.append(parent)
            cumulative.append(total)
        for block in blocks:
            parent, total = extend(parent, (block.role, block.text)), total + block.tokens
            chain.append(parent)
            cumulative.append(total)
        return chain, cumulative

    def _parts(self, blocks: Iterable[LaidBlock]) -> dict[Part, float]:
        parts: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
        parts["floor"] = self.recording.floor[0] + self.session.overhead
        for block in blocks:
            parts[_part(block)] += block.tokens
        return parts


def _part(block: LaidBlock) -> Part:
    if block.section in ("metadata", "news") or (block.section == "history" and block.text.startswith("toolcall_ref ")):
        return "stubs"
    if block.section == "system":
        return "floor"
    if block.role == "tool" or block.section not in ("history", "prompt"):
        return "results"
    if block.role == "assistant":
        return "assistant" if block.content is None else "arguments"
    return "hidden" if block.text.startswith("hidden tokens of call ") else "user"

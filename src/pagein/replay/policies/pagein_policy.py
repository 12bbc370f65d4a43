"""pagein itself as a policy of the replay: the real engine on a real store, byte for byte.

The engine reads the recorded messages and decides; the ledger bills its decisions. Every request passes the checks of
its provider. At the end every evicted text is recalled and compared with the original.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from pagein.engine.engine import Engine, Settings
from pagein.engine.log.pageout import text_name
from pagein.engine.log.request_draft import WindowPiece, pieces_since
from pagein.engine.prepared_request import Gate, WindowRequest
from pagein.errors import CallerError, StoreError
from pagein.model.bill import Why
from pagein.model.entries import InsertEntry, NoteEntry, PagedOut, RequestSent
from pagein.model.journal_notes import BreakpointChoice, ClientNote, ShownOnceNote, UsageNote
from pagein.model.messages import Message, ToolCall, ToolResult, Usage
from pagein.policy.clients.window_files import NO_CHAINS
from pagein.policy.economics.cache_lifetimes import ShortRewrite
from pagein.policy.economics.decision_prices import economics_of, waits_for_marks
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.stubs.previews import Previews, preview
from pagein.policy.stubs.recall_ways import TOOLS
from pagein.ports import TokenCounter
from pagein.providers.prices.price_lookup import Prices
from pagein.providers.tokens.counters import RatioCounter
from pagein.providers.wire.body_check import Checker
from pagein.replay.policies.ablation import FULL, planner_settings
from pagein.replay.policies.answered_rereads import RecordedRereads
from pagein.replay.policies.decision_worth import DecisionWorth, Steps, idle
from pagein.replay.policies.frontier import Frontier
from pagein.replay.policies.keepalive_bill import Course
from pagein.replay.policies.ledger import Ledger, Recall
from pagein.replay.policies.tally import Tally
from pagein.replay.policies.turn_removal import TurnLedger
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.context_limit import window_of
from pagein.replay.prompt.model_calls import Block, strings_in
from pagein.replay.prompt.prompt_changes import NOTHING, Hide, MaskedArguments, PreviewedBlock, ReadAgain, Removable
from pagein.replay.prompt.prompt_sizes import ONE_HOUR, SizedCall

USUAL: Final = Settings()


class OpenEngine(Protocol):
    """Opens an engine on a new store at this path. Worker processes must be able to import the implementation."""

    def __call__(self, store: Path, *, counter: TokenCounter, settings: Settings) -> Engine: ...


def settings_for(prices: Prices, lifetime: int, usual: Settings = USUAL) -> Settings:
    """Return the engine's usual settings with these prices and the cache TTL that the host asks for, short or long."""
    economics = economics_of(prices, long=lifetime == ONE_HOUR)
    return replace(usual, residency=replace(usual.residency, economics=economics))


def _is_shown_thinking(prices: Prices) -> bool:
    """Return whether models at these prices are shown earlier thinking, in blocks that may be omitted."""
    return prices.cache.name.startswith("anthropic") and not prices.strips_thinking


class PageinPolicy:
    """The engine at work on a recording, with a temporary store.

    name: `pagein`, or its name without some layers (`replay.policies.ablation`).
    """

    recall: Recall = "slice"
    ttl: int | None = None  # the host's own breakpoints and TTLs are kept
    caches = True

    def __init__(
        self,
        recording: BillableSession,
        open_engine: OpenEngine,
        prices: Prices,
        name: str = FULL,
        usual: Settings = USUAL,
    ) -> None:
        self.name = name
        self._recording = recording
        self._messages = recording.calls.messages
        self._compactions = [one.messages_before for one in recording.calls.compactions]
        self._originals = {
            (block.call_id, "arguments" if block.kind == "arguments" else "result"): block
            for block in recording.calls.blocks
            if block.kind in ("result", "arguments")
        }
        self._rereads = RecordedRereads(recording)
        self._ratio = recording.chars_per_token
        self._folder = tempfile.TemporaryDirectory(prefix="pagein-replay-")
        planning = planner_settings(name, settings_for(prices, recording.ttl, usual))
        settings = planning.settings
        if settings.valve.window is None:
            settings = replace(settings, valve=replace(settings.valve, window=window_of(recording, prices)))
        self._settings = settings
        self._in_loops = planning.in_loops
        # elsewhere the provider caches the end of each request by itself
        self._shows_once = planning.in_loops and waits_for_marks(prices)
        self.course = Course()
        counter = RatioCounter(self._ratio, self._ratio)
        self._engine = open_engine(Path(self._folder.name) / "store.db", counter=counter, settings=settings)
        self._session = self._engine.session(recording.head.id)
        self._session.note(ClientNote(recording.client.name))
        self._checker = Checker()
        self.steps = Steps(settings.residency)
        first = None if settings.residency.arguments is None else self._first
        self._frontier = Frontier(settings.residency.min_tokens, marked=planning.frontier_mark, first=first)
        self._previews = settings.residency.previews or Previews()
        self._has_frontier = False  # whether the last request had a breakpoint at the frontier
        self._fed = 0
        self._departed = TurnLedger(recording)
        self._paged: dict[tuple[str, str], str] = {}  # object id by call id and part
        self._takes_thinking = settings.residency.thinking == "leaves" and _is_shown_thinking(prices)
        self._turn = 0  # index of the call that began the turn
        self._recalled = 0.0  # tokens recalled since the last request
        self._refused = self._lost = 0
        self._rewrite: ShortRewrite | None = None  # for a subclass that chooses TTLs
        self._is_short = False  # whether the last rewrite has the short TTL

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()
        self._folder.cleanup()

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        """Append the messages since the last call, and let the engine prepare the request."""
        self._report(sized, ledger)
        if sized.opens_segment and not sized.call.opens_segment:
            # The host dropped its window without notice: the call shows only the messages since the last one.
            self._feed(sized.call.messages_before - self._new(sized, ledger))
            self._session.note_compaction()
        self._feed(sized.call.messages_before)
        economics = self._economics(sized.call.at)
        if not self._answers_tools(sized, ledger):
            self._turn = sized.call.index
        opens = self._in_loops or self._turn == sized.call.index
        unseen = sized.hidden if self._shows_once else None
        gate = Gate(opens=lambda _: opens, economics=economics, unseen_tail=unseen, rewrite=self._rewrite)
        prepared = self._session.advance(sized.call.at, gate)
        self._is_short = prepared.is_short
        hide = self._hide(sized, ledger, prepared)
        self.steps.note(sized, hide, prepared, self._session, economics)
        self._session.forget()
        return hide

    def _economics(self, now: float) -> Economics | None:  # noqa: ARG002 subclasses that choose TTLs use the clock
        """Return the prices at this moment."""
        return self._settings.residency.economics

    def _answers_tools(self, sized: SizedCall, ledger: Ledger) -> bool:
        """Return whether tools have answered since the model last spoke.

        If a model's thinking is bound to its prompt, nothing in front of such an answer may change.
        """
        said = self._messages[sized.call.messages_before - self._new(sized, ledger) : sized.call.messages_before]
        return any(isinstance(block, ToolResult) for message in said for block in message.blocks)

    def _hide(self, sized: SizedCall, ledger: Ledger, prepared: WindowRequest) -> Hide:
        self._refused += bool(self._checker.check(prepared.keep, prepared.tail))
        if sized.opens_segment or (prepared.opened is not None and not prepared.opened.is_uncached):
            self._frontier.reset()
        notices = self._notices()
        if notices:
            self.course.notices[sized.call.index] = notices
        if prepared.opened is None and not prepared.previewed and prepared.shown_once is None:
            return Hide(notices=notices) if notices else NOTHING
        residents = {one.call_id: one for one in ledger.resident}
        shown = () if prepared.shown_once is None else prepared.shown_once.calls
        tail = min((residents[call].position for call in shown if call in residents), default=0)
        opened = prepared.opened.paged if prepared.opened is not None else ()
        for paged in (*prepared.previewed, *opened):
            self._paged[paged.call_id, paged.part] = paged.object_id
        previews, rereads = self._enter(prepared, residents)
        stubs = [
            (residents[paged.call_id], len(paged.stub) / self._ratio)
            for paged in opened
            if paged.part == "result" and paged.call_id in residents
        ]
        masked = [
            self._mask(paged, ledger.arguments[paged.call_id])
            for paged in opened
            if paged.part == "arguments" and paged.call_id in ledger.arguments
        ]
        masked += [one for one in (self._shorten(paged, ledger) for paged in opened) if one is not None]
        reason = prepared.opened.reason if prepared.opened is not None else ""
        gone = None if prepared.opened is None else self._departed.removed_with(prepared.opened, self._window())
        return Hide(
            stubs,
            previews,
            rereads,
            masked,
            notices,
            reason=reason or "batch",
            finished=self._turn if self._takes_thinking else 0,
            gone=gone,
            is_uncached=prepared.opened is not None and prepared.opened.is_uncached,
            tail=tail,
        )

    def _window(self) -> list[WindowPiece]:
        """Return the request prepared last."""
        return pieces_since(self._session.journal.state_at(self._session.leaf).sent, 0)

    def _shorten(self, paged: PagedOut, ledger: Ledger) -> MaskedArguments | None:
        """Return the rest of a shortened long user text, or None for another eviction."""
        return self._departed.shorten(paged, ledger.user_blocks()) if paged.part == "text" else None

    def _enter(
        self, prepared: WindowRequest, residents: Mapping[str, Removable]
    ) -> tuple[list[PreviewedBlock], list[ReadAgain]]:
        """Return the results that entered with this call in another form than recorded and were not evicted at once."""
        left = {one.call_id for one in prepared.opened.paged} if prepared.opened is not None else set[str]()
        entered = [one for one in prepared.previewed if one.call_id in residents and one.call_id not in left]
        reads = self._session.window_files.client if entered else NO_CHAINS
        previews, rereads = list[PreviewedBlock](), list[ReadAgain]()
        for paged in entered:
            answer = self._rereads.stand_in_for(paged, residents[paged.call_id], reads)
            if answer is None:
                previews.append(self._preview(paged, residents[paged.call_id]))
            else:
                rereads.append(answer)
        return previews, rereads

    def _notices(self) -> float:
        """Return the tokens of the inserts that entered with the request prepared last."""
        tokens, name, ends = 0.0, self._session.leaf, 0
        while name is not None:
            entry = self._session.journal.entry(name)
            # what the request before left behind: its entry, or the note on what it showed once
            ends += isinstance(entry.body, RequestSent)
            if ends > 1 or (ends and isinstance(entry.body, NoteEntry) and isinstance(entry.body.note, ShownOnceNote)):
                break
            tokens += entry.body.tokens if isinstance(entry.body, InsertEntry) else 0
            name = entry.parent
        return tokens

    def _mask(self, paged: PagedOut, block: Removable) -> MaskedArguments:
        """Return the rest of a call's arguments, by comparing the texts in them."""
        original = self._originals[paged.call_id, "arguments"].text
        runs: list[tuple[int, int]] = []
        at = 0
        for text, stays in zip(strings_in(original), strings_in(paged.stub), strict=False):
            if text == stays:
                runs.append((at, at + len(text)))
            at += len(text) + 1
        return MaskedArguments(block, block.tokens * len(paged.stub) / max(1, len(original)), tuple(runs))

    def _preview(self, paged: PagedOut, resident: Removable) -> PreviewedBlock:
        text = self._originals[paged.call_id, "result"].text
        shown = preview(paged.object_id, "", 0, text, self._previews, TOOLS)
        return PreviewedBlock(resident, resident.tokens * len(paged.stub) / max(1, len(text)), shown.head, shown.tail)

    def frontier(self, ledger: Ledger) -> int:
        """Return the position of the oldest result that the engine may still evict."""
        position = self._frontier.position(ledger)
        self._has_frontier = position > 0
        return position

    def _first(self) -> tuple[str, bool] | None:
        """Return the first call with something to evict, and whether this is its arguments."""
        standing = self._session.journal.state_at(self._session.leaf).standing
        first = next(iter(standing.all()), None)
        return None if first is None else (first.call_id, first.form != "result")

    def note_recall(self, copy: Removable, ledger: Ledger) -> None:
        """Append the model's request for a slice of an evicted text, and the engine's answer from the store."""
        self._recalled += copy.tokens
        original = ledger.recording.calls.blocks[copy.holder]
        part = "arguments" if original.kind == "arguments" else "result"
        object_id = self._paged.get((original.call_id, part))
        if object_id is None:
            object_id = self._departed.objects.get(copy.holder)
        if object_id is None:
            return
        text = self._stored_text(object_id, original)[copy.first : copy.last]
        arguments = msgspec.json.encode({"id": object_id, "offset": copy.first, "length": len(text)}).decode()
        asked = Message("assistant", (ToolCall(copy.call_id, "peek", arguments),))
        answered = Message("tool", (ToolResult(copy.call_id, text, "peek"),))
        for message, what in ((asked, None), (answered, copy)):
            self._session.append(message)
            self._departed.add_message(what)

    def why(self, ledger: Ledger, *, stress: bool = True) -> Why:
        """Explain the decisions of the session, after the ledger has run."""
        residency = self.steps.residency
        state = self._session.journal.state_at(self._session.leaf)
        if residency.economics is not None and state.sent_at is not None:
            residency = replace(residency, economics=self._economics(state.sent_at))
        reckoning = DecisionWorth(
            ledger.recording, ledger.prices, residency.min_tokens, ledger.tally.cost, stress, self.course
        )
        return reckoning.why(self.steps.all, idle(state, residency))

    def prove(self, tally: Tally) -> None:
        """Recall every evicted text, and compare it byte for byte with the recording."""
        for name, object_id in self._paged.items():
            original = self._originals.get(name)
            self._exact(object_id, None if original is None else original.text)
        for ordinal, object_id in self._departed.objects.items():
            self._stored_text(object_id, self._recording.calls.blocks[ordinal])
        tally.refused = self._refused
        tally.unrecoverable_bytes = self._lost

    def _report(self, sized: SizedCall, ledger: Ledger) -> None:
        """Report the provider's usage of the last request, as sent by pagein, not as recorded."""
        recalled, self._recalled = self._recalled, 0.0
        if sized.opens_segment or not sized.call.index:
            return
        prompt = ledger.window.size - sum(sized.blocks) - sized.hidden + sized.shrunk - recalled
        read, written = (0, 0) if ledger.served is None else (round(ledger.served.read), round(ledger.served.written))
        if self._has_frontier:  # a replay has no wire messages, so any address stands for that of the breakpoint
            self._session.note(BreakpointChoice(frontier=(0, 0)))
        self._session.note(UsageNote(Usage(max(0, round(prompt) - read - written), read, written)))

    def _feed(self, until: int) -> None:
        while self._fed < until:
            if self._compactions and self._compactions[0] <= self._fed:
                self._compactions.pop(0)
                self._session.note_compaction()
            self._session.append(replace(self._messages[self._fed], usage=None))
            self._departed.add_message(self._fed)
            self._fed += 1
        while self._compactions and self._compactions[0] <= self._fed:
            self._compactions.pop(0)
            self._session.note_compaction()

    def _new(self, sized: SizedCall, ledger: Ledger) -> int:
        """Return the number of messages between the reply of the call before and this call."""
        before = ledger.recording.calls.calls[sized.call.index - 1].messages_before if sized.call.index else 0
        return sized.call.messages_before - before

    def _stored_text(self, object_id: str, block: Block) -> str:
        """Return the stored text of a block: from the block's own object if evicted before its turn, else from the
        turn's object.
        """
        own = self._paged.get((block.call_id, "arguments" if block.kind == "arguments" else "result"))
        if own is not None and block.call_id:
            return self._exact(own, block.text)
        if object_id not in self._departed.objects.values():
            return self._exact(object_id, block.text)
        text = block.text
        try:
            is_there = text in self._session.recall(object_id)
        except (CallerError, StoreError):
            is_there = False
        if not is_there and text_name(text) not in self._shortened_texts():
            self._lost += len(text.encode("utf-8", "surrogatepass"))
        return text

    def _shortened_texts(self) -> set[str]:
        """Return the names of long user texts evicted by themselves."""
        return {name for name, part in self._paged if part == "text"}

    def _exact(self, object_id: str, original: str | None) -> str:
        try:
            text = self._session.recall(object_id)
        except (CallerError, StoreError):
            text = None
        if original is None:  # a copy recalled before: its own original was compared then
            return text or ""
        if text != original:
            self._lost += len(original.encode("utf-8", "surrogatepass"))
        return original if text is None else text

"""The stages of a model call that concern the window: append messages, enter previews, evict, insert, record the request.

A stage takes the call as far as it is made, journals what it decides, and returns the call with that. A caller of the
library that brings messages runs these stages alone; `call_stages` runs them among those of a provider's request.
"""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Final, TypeVar

from pagein.engine.log.journal import Fold
from pagein.engine.log.request_draft import Cell, WindowPiece, cut, news_of
from pagein.engine.log.session_log import SessionLog
from pagein.engine.log.state import State
from pagein.engine.log.turn_removal import is_spoken
from pagein.engine.prepared_request import CLOSED_GATE, Gate, WindowCall
from pagein.engine.reads import evidence
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.reread_notes import ClientRereads
from pagein.engine.reads.session_reads import SessionReads
from pagein.engine.recall.session_recall import SessionRecall
from pagein.engine.send.call import PendingCall
from pagein.engine.send.sent_changes import binds_thinking, carries_thinking
from pagein.engine.session_parts import SessionParts
from pagein.engine.window import shown_once
from pagein.engine.window.decision_inputs import preview_candidates, toll, warm_calls
from pagein.engine.window.eviction import Scene, evict
from pagein.engine.window.inserts import ManifestSource, insertions
from pagein.engine.window.repeated_texts import repeated_texts
from pagein.errors import StoreError
from pagein.model.entries import EntryId, EpochEntry, PreviewEntry, RequestSent
from pagein.model.journal_notes import CachedPrefixNote, PassthroughNote, ReadNote, ShownOnceNote
from pagein.model.messages import Image, Message, Other, Text, ToolResult
from pagein.model.note_forms import kind_of
from pagein.policy.clients.window_files import NO_CHAINS, WindowFiles
from pagein.policy.economics.rewrite_cost import Account, Economics, Moment, account_with_tools, economics_at_entrance
from pagein.policy.eviction.residency import Residency
from pagein.policy.stubs.manifest import BUDGET
from pagein.policy.stubs.previews import Previews
from pagein.policy.stubs.recall_ways import TOOLS, EnteringTools
from pagein.providers.wire.server_edits import EDITING_FIELDS, may_clear_results

C = TypeVar("C", bound=WindowCall)
_READ: Final = kind_of(ReadNote)
_BEHIND_THE_END: Final = frozenset(map(kind_of, (ShownOnceNote, CachedPrefixNote, PassthroughNote)))
"""Kinds of entries that tell what became of the text behind the last cache breakpoint of a request."""
_MARK: Final = b'"cache_control"'


class WindowStages:
    """The window of a session. One call at a time.

    model: name of the session's model; None if unknown.
    reads: the session's own reads; None for a session without a working folder.
    recalls: the session's recall; None for a session that only evicts.
    sent: the last request; None before the first.
    """

    def __init__(self, log: SessionLog, parts: SessionParts) -> None:
        self.log = log
        self.parts = parts
        self.model: str | None = None
        self.reads: SessionReads | None = None
        self.recalls: SessionRecall | None = None if parts.make_recall is None else parts.make_recall(log)
        self.sent: Cell | None = None
        self._stored = None if parts.outside is None else parts.outside.witness_source
        self.proofs: Fold[Evidence] = Fold(log.journal, evidence.START, evidence.step, "evidence", takes=evidence.TAKES)
        self._shown = Fold(log.journal, shown_once.NOTHING_SHOWN, shown_once.step, "shown once", takes=shown_once.TAKES)
        self.rereads = ClientRereads(
            log.journal, log.rules, parts.pager, lambda text: parts.counter.count(text, "user")
        )

    @property
    def evidence(self) -> Evidence:
        """The read answers that the window proves at the current entry."""
        return evidence.START if self.parts.outside is None else self.proofs[self.log.leaf]

    @property
    def files(self) -> WindowFiles:
        """What the window shows of files, once a request holds the messages up to the current entry."""
        own = self.evidence.files if self._was_read else NO_CHAINS
        return WindowFiles(own, self.rereads.state_at_request(self.log.leaf).files)

    @property
    def _was_read(self) -> bool:
        """True if the journal may hold a read of pagein's own; without one there is no evidence to look for."""
        return _READ in self.log.journal.kinds

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        """Append a message.

        name: the client's own name for it, unique in the session; None to compute a name.

        A read answer that the window would not prove at this place is shown in full (see `SessionReads.upheld`).
        """
        log = self.log
        if self._was_read and self.reads is not None and self.evidence.pending_events() and name not in log.journal:
            message = self.reads.upheld(message)
        seen = self.rereads.states[log.leaf]
        if seen.profile is not None:
            message = seen.profile.annotate(message, seen.reads.calls)
        now = None if self.parts.outside is None else self.parts.outside.now()
        return log.append_message(message, self.parts.counter, name, now=now)

    def enter_previews(self, call: C) -> C:
        """Store large outputs and answers to repeated reads, and put previews, markers or diffs in their place.

        Only outputs that no request has shown. If the store fails, they enter whole.
        """
        parts, log, gate, state = self.parts, self.log, call.gate, self.log.states[self.log.leaf]
        if not gate.previews or state.hand.off:
            return call
        settings = parts.residency.previews if gate.way is not None else None
        profile = self.rereads.states[log.leaf].profile if parts.rereads and gate.rereads else None
        again = self.rereads.stand_ins(log.leaf) if profile is not None and profile.proves else []
        has_large = settings is not None and _longest_result(state) >= settings.chars
        entering = [] if settings is None or not has_large else preview_candidates(state, log.rules, settings)
        # a read through this session stays whole, whatever the tool that made it is called
        read = self.evidence.files.path_of if entering and self._was_read else {}
        twice = (
            repeated_texts(state, parts.counter)
            if parts.floor_paging != "never" and gate.rereads and gate.way and not gate.begins
            else []
        )
        taken = {one.entering.result.call_id for one in again}
        entering = [one for one in entering if one.result.call_id not in read and one.result.call_id not in taken]
        if not entering and not again and not twice:
            return call
        way = gate.way or TOOLS
        try:
            big = parts.pager.preview(log.name, entering, settings or Previews(), way)
            moment = call.moment or moment_of(state, call.at)
            paid = toll(state, moment, at_prices(parts.residency, gate.economics), big, gate.begins) if big else None
            big = big if paid is not None else ()
            previewed = (*big, *parts.pager.stand_in(log.name, again, way), *parts.pager.repeat(log.name, twice, way))
        except StoreError as problem:
            return replace(call, failure=f"big outputs enter whole: {type(problem).__name__}: {problem}")
        if previewed:
            log.add(PreviewEntry(previewed))
        return replace(call, previewed=previewed, paid=paid)

    def evict_results(self, call: C) -> C:
        """Evict what may go and bring back what shall return, where an epoch pays (see `window.eviction`)."""
        parts, log, gate, paid = self.parts, self.log, call.gate, call.paid
        state = log.states[log.leaf]
        begins = gate.begins if paid is None else None
        last = self._shown[log.leaf] if _BEHIND_THE_END & log.journal.kinds else shown_once.NOTHING_SHOWN
        residency = self._residency_of_call(gate, begins, last)
        if residency.arguments is None and parts.residency.arguments is not None:  # not with this call
            state = replace(state, standing=state.standing.without_arguments())
        # the size of the prompt prefix, which would be written again, is known after the first reported usage
        is_shut = gate.way is None or (begins is not None and state.floor is None)
        scene = Scene(
            session=log.name,
            state=state,
            residency=residency,
            valve=parts.valve,
            moment=moment_of(state, call.at) if call.previewed or call.moment is None else call.moment,
            previewed=call.previewed,
            stored=self._stored,
            model=self.model,
            opens=_never if is_shut else gate.opens,
            paid=paid or 0.0,
            files=self.files,
            excluded=parts.excluded,
            way=gate.way or TOOLS,
            servers=gate.servers,
            shown=last.note,
            # recall tools are written with the prompt prefix, which keeps the client's TTL
            rewrite=gate.rewrite if begins is None else None,
        )
        done = evict(scene, parts.pager)
        account = done.account
        if done.opened is not None:
            account = self._add_epoch(done.opened, account, residency.economics)
        is_entrance = paid is not None or (done.opened is not None and bool(done.opened.paged or done.opened.turns))
        if gate.begins is not None and is_entrance:
            log.note(gate.begins.note)
            account = account_with_tools(account, residency.economics, log.states[log.leaf].offered)
        return replace(
            call,
            opened=done.opened,
            account=account,
            crowded=done.crowded,
            is_short=done.is_short,
            failure=done.failure or call.failure,
        )

    def _residency_of_call(self, gate: Gate, begins: EnteringTools | None, last: shown_once.ShownOnce) -> Residency:
        """Return the residency settings at the prices of a call, with the masks that the call allows.

        begins: recall tools that would enter with an eviction. last: what the last request showed once.
        """
        residency = at_prices(gated_residency(self.parts.residency, gate), gate.economics)
        if begins is not None and residency.economics is not None:
            residency = replace(residency, economics=economics_at_entrance(residency.economics, begins.tokens))
        # a cache may hold the model's last answer, or the recall tools would change the whole prompt
        if residency.arguments is not None and (last.is_kept or begins is not None):
            residency = replace(residency, arguments=replace(residency.arguments, on_entry=None))
        return residency

    def _add_epoch(self, opened: EpochEntry, account: Account, prices: Economics | None) -> Account:
        """Journal an epoch, and return the account after the epoch."""
        self.log.add(opened)
        if opened.is_uncached or prices is None or prices.uncached is not None:
            return account
        # the breakpoint of this request stands there, and places behind what left are known only now
        return replace(account, found=self.log.states[self.log.leaf].standing.first_of_all(account.anew))

    def insert_texts(self, call: C) -> C:
        """Insert pinned texts, manifest pages and notices after the newest message."""
        if not call.gate.previews:
            return call
        log, recalls, budget = self.log, self.recalls, self.parts.manifest
        held = recalls.holdings if recalls is not None and budget is not None else None
        hand = log.states[log.leaf].hand
        if held is not None or hand.texts:
            source = ManifestSource(held, self.parts.counter.count, budget or BUDGET, call.gate.way or TOOLS)
            for one in insertions(log.states[log.leaf], source):
                log.add(one)
        if not hand.off and self.rereads.states[log.leaf].profile is not None:
            with contextlib.suppress(StoreError):  # without the store's key no echo can be recognised
                for notice in list(self.rereads.notices(log.leaf, log.privacy.shows)):
                    log.add(notice)
        return call

    def record_request(self, call: C) -> C:
        """Journal that the request is sent, and store the journal."""
        log, account, state = self.log, call.account, self.log.states[self.log.leaf]
        spent = (account.bill, account.saved, account.absent, account.anew, account.found)
        tip = state.draft.ready.tip
        clears = not call.gate.rereads
        entry = log.add(RequestSent(state.epoch, tip.length if tip else 0, call.at, *spent, clears=clears))
        failure = call.failure
        try:
            # A decision must be stored before it is sent, or another process would decide again, differently (law 6).
            # Within a turn this stores nothing: the turn does, and ends before the request is sent.
            log.keep()
        except StoreError as problem:
            failure = f"the journal was not kept: {type(problem).__name__}: {problem}"
        self.sent = log.states[log.leaf].sent
        if self.recalls is not None and (call.opened is not None or call.previewed):
            self.recalls.log_evictions(call.opened, call.previewed)
        saved = account.saved - state.account.saved
        return replace(call, entry=entry, epoch=state.epoch, gained=saved, failure=failure)

    def choose_shown_once(self, call: C) -> C:
        """Choose results to show once, where the last cache breakpoint can stand in front."""
        parts, gate, least = self.parts, call.gate, self.parts.residency.shown_once
        if not parts.marks or gate.unseen_tail is None or gate.way is None or gate.begins is not None or least is None:
            return call
        # an image behind the last breakpoint would be paid twice, at a price that nobody can tell
        if not shown_once.ends_with_output(self.sent, least) or (call.moment is not None and call.moment.uncounted):
            return call
        state = self.log.states[self.log.leaf]
        stays = (
            self.files.calls_needed_with(state.hand.calls_that_stay)
            | warm_calls(state)
            | {*self.evidence.files.path_of}
        )
        residency, moment = at_prices(parts.residency, gate.economics), moment_of(state, call.at)
        found = shown_once.choose_shown_once(state, residency, moment, stays, unseen=gate.unseen_tail)
        return replace(call, shown_once=found)

    def note_shown_once(self, call: WindowCall) -> None:
        """Journal the results that the request shows once."""
        if call.shown_once is not None:
            self.log.note(ShownOnceNote(call.shown_once.calls, call.shown_once.saved))

    def decide(self, call: WindowCall) -> WindowCall:
        """Run the stages of a decision without those of a provider's request.

        With a closed gate nothing is decided, so the request is only journaled, at the session's account so far.
        """
        if call.gate is CLOSED_GATE:
            return self.record_request(replace(call, account=self.log.states[self.log.leaf].account))
        for stage in (
            self.enter_previews,
            self.evict_results,
            self.insert_texts,
            self.record_request,
            self.choose_shown_once,
        ):
            call = stage(call)
        self.note_shown_once(call)
        return call


# --- the coming call ---


def moment_of(state: State, at: float | None) -> Moment:
    """Return the coming call as the policy sees it."""
    tip = state.draft.ready.tip
    shared, fresh = news_of(tip, state.sent)
    held, whole = shared.tokens if shared else 0, tip.tokens if tip else 0
    behind_the_answer = takewhile(lambda piece: piece.message.role != "assistant", reversed(fresh))
    with_text = (one for one in behind_the_answer if any(isinstance(block, Text) for block in one.message.blocks))
    return Moment(
        now=at,
        last=state.sent_at,
        size=whole,
        new=whole - held,
        replied=sum(piece.weight for piece in fresh if piece.message.role == "assistant"),
        user_turn=any(is_spoken(piece.message) for piece in with_text),
        floor=state.floor or 0.0,
        scale=state.scale,
        blocks=sum(len(piece.message.blocks) for piece in fresh),
        uncounted=any(map(_has_uncounted, fresh)),
    )


def _has_uncounted(piece: WindowPiece) -> bool:
    """Return whether a message has a block whose tokens no estimate can tell."""
    is_users = piece.message.role != "assistant"
    return any(
        isinstance(block, Image)
        or (isinstance(block, ToolResult) and bool(block.images))
        or (isinstance(block, Other) and is_users)
        for block in piece.message.blocks
    )


# --- what may be decided ---


def gate_of(call: PendingCall, here: Callable[[], State], *, has_exchanges: bool, repaired: bool) -> Gate:
    """Return the allowed decisions for a request.

    An invalid request allows none. Bound thinking forbids an epoch before it, except after a user message: then the
    thinking may be removed (T8, M10), and with new recall tools all thinking. Bound thinking also forbids masked
    arguments. In a format that signs calls, no epoch begins before the user's next words.

    here: returns the state at the current entry.
    has_exchanges: True if the session has hidden recall exchanges.
    repaired: True if the request had to be repaired.
    """
    script, recall, fields = call.script, call.recall, call.theirs.fields
    rereads = EDITING_FIELDS.isdisjoint(fields) or not may_clear_results(fields)
    if repaired:
        return replace(CLOSED_GATE, rereads=rereads, way=recall.way, begins=recall.begins)
    units = script.units
    answer = next((place for place in range(len(units) - 1, -1, -1) if units[place].message.role == "assistant"), -1)
    in_loop = any(isinstance(block, ToolResult) for unit in units[answer + 1 :] for block in unit.message.blocks)
    ends_marked = script.format.cache.takes_ttls and _MARK in script.raws[-1]
    tail = 0.0 if ends_marked else None
    servers = lambda: _servers_may_leave(call)  # noqa: E731 -- asked only where it matters
    gate = Gate(rereads=rereads, way=recall.way, begins=recall.begins, servers=servers, unseen_tail=tail)
    if script.format.validity.signs_open_turn:
        return replace(gate, arguments=False, opens=_never) if in_loop else replace(gate, arguments=False)
    if not binds_thinking(call.head, script.api):
        return replace(gate, thinking=None) if carries_thinking(call.head, script.api) else gate
    gate = replace(gate, arguments=False, thinking="leaves", unseen_tail=None)
    # hidden exchanges may have thinking anywhere
    last = len(units) - 1 if has_exchanges else units[-1].thought
    if not in_loop or last < 0:
        return gate
    if gate.begins is not None:
        return replace(gate, way=None, begins=None)

    def opens(frontier: int) -> bool:
        draft = here().draft
        first = cut(draft.ready.tip, frontier + 1)
        return first is None or first.piece.said - (draft.said - len(units) + 1) > last

    return replace(gate, opens=opens)


def gated_residency(usual: Residency, gate: Gate) -> Residency:
    """Return the residency settings under a gate: masked arguments and thinking."""
    arguments = usual.arguments if gate.arguments else None
    thinking = gate.thinking or usual.thinking
    same = arguments is usual.arguments and thinking == usual.thinking
    return usual if same else replace(usual, arguments=arguments, thinking=thinking)


def at_prices(usual: Residency, economics: Economics | None) -> Residency:
    """Return the residency settings with the prices of a call; unchanged for decisions by size alone."""
    return usual if None in (economics, usual.economics) else replace(usual, economics=economics)


def _servers_may_leave(call: PendingCall) -> bool:
    """Return whether results of the provider's own tools may leave a request."""
    script, form = call.script, call.script.format.requests.server_results
    spoken = (unit.first for unit in reversed(script.units) if is_spoken(unit.message))
    return form is not None and form.may_leave(call.theirs.fields, script.raws[next(spoken, 0) :])


def _longest_result(state: State) -> int:
    """Return the characters of the longest result that no request has shown; 0 without one."""
    blocks = (block for _, piece in state.draft.news for block in piece.message.blocks)
    return max((len(block.text) for block in blocks if isinstance(block, ToolResult)), default=0)


def _never(_frontier: int) -> bool:
    return False

"""The stages of a model call that concern the window: append messages, enter previews, evict, insert, record the request.

A stage takes the call as far as it is made, journals what it decides, and returns the call with that. A caller of the
library that brings messages runs these stages alone; `call_stages` runs them among those of a provider's request.
"""

import contextlib
from dataclasses import replace
from typing import TypeVar

from pagein.engine.decision_gate import at_prices, gated_residency
from pagein.engine.log.folds import Fold
from pagein.engine.log.message_weight import weigh_message
from pagein.engine.log.rendering import Cell
from pagein.engine.log.session_log import SessionLog
from pagein.engine.prepared_request import WindowCall
from pagein.engine.reads import evidence
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.reread_notes import ClientRereads
from pagein.engine.reads.session_reads import SessionReads
from pagein.engine.recall.session_recall import SessionRecall
from pagein.engine.session_parts import SessionParts
from pagein.engine.window.decision_inputs import preview_candidates, toll
from pagein.engine.window.eviction import Scene, evict, window_of
from pagein.engine.window.inserts import ManifestSource, insertions
from pagein.errors import StoreError
from pagein.model.entries import EntryId, PreviewEntry, RequestSent
from pagein.model.messages import Message
from pagein.policy.clients.window_files import WindowFiles
from pagein.policy.economics.rewrite_cost import economics_at_entrance
from pagein.policy.stubs.manifest import BUDGET
from pagein.policy.stubs.previews import Previews
from pagein.policy.stubs.recall_ways import TOOLS

C = TypeVar("C", bound=WindowCall)


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
        self.recalls: SessionRecall | None = None if parts.recalling is None else parts.recalling(log)
        self.sent: Cell | None = None
        self._stored = None if parts.outside is None else parts.outside.witness_source
        self.proofs: Fold[Evidence] = Fold(log.journal, evidence.START, evidence.step, "evidence", takes=evidence.TAKES)
        self.rereads = ClientRereads(
            log.journal, log.rules, parts.pager, lambda text: parts.counter.count(text, "user")
        )

    @property
    def evidence(self) -> Evidence:
        """The read answers that the window proves at the current entry."""
        return evidence.START if self.parts.outside is None else self.proofs.at(self.log.leaf)

    @property
    def files(self) -> WindowFiles:
        """What the window shows of files, once a request holds the messages up to the current entry."""
        return WindowFiles(self.evidence.files, self.rereads.state_at_request(self.log.leaf).files)

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        """Append a message.

        name: the client's own name for it, unique in the session; None to compute a name.

        A read answer that the window would not prove at this place is shown in full (see `SessionReads.upheld`).
        """
        log = self.log
        if self.reads is not None and self.evidence.pending_events() and name not in log.journal:
            message = self.reads.upheld(message)
        message = self.rereads.annotate(log.leaf, message)
        said = weigh_message(message, self.parts.counter)
        kept = log.privacy.redact_message(log.state(), message)
        return log.add(said if kept is message else replace(said, message=kept), at=message.at, name=name)

    def enter_previews(self, call: C) -> C:
        """Store large outputs and answers to repeated reads, and put previews, markers or diffs in their place.

        Only outputs that no request has shown. If the store fails, they enter whole.
        """
        parts, log, gate, state = self.parts, self.log, call.gate, self.log.state()
        if not gate.previews or state.hand.off:
            return call
        settings = parts.residency.previews if gate.way is not None else None
        again = self.rereads.stand_ins(log.leaf) if parts.rereads else []
        entering = [] if settings is None else preview_candidates(state, log.rules, settings)
        # a read through this session stays whole, whatever the tool that made it is called
        read = self.evidence.files.path_of if entering else {}
        taken = {one.entering.result.call_id for one in again}
        entering = [one for one in entering if one.result.call_id not in read and one.result.call_id not in taken]
        if not entering and not again:
            return call
        way = gate.way or TOOLS
        try:
            big = parts.pager.preview(log.name, entering, settings or Previews(), way)
            paid = toll(state, call.at, at_prices(parts.residency, gate.economics), big, gate.begins) if big else None
            big = big if paid is not None else ()
            previewed = (*big, *parts.pager.stand_in(log.name, again, way))
        except StoreError as problem:
            return replace(call, failure=f"big outputs enter whole: {type(problem).__name__}: {problem}")
        if previewed:
            log.add(PreviewEntry(previewed))
        return replace(call, previewed=previewed, paid=paid)

    def evict_results(self, call: C) -> C:
        """Evict what may go and bring back what shall return, where an epoch pays (see `window.eviction`)."""
        parts, log, gate, paid = self.parts, self.log, call.gate, call.paid
        state = log.state()
        residency = at_prices(gated_residency(parts.residency, gate), gate.economics)
        begins = gate.begins if paid is None else None
        if begins is not None and residency.economics is not None:
            residency = replace(residency, economics=economics_at_entrance(residency.economics, begins.tokens))
        # the size of the prompt prefix, which would be written again, is known after the first reported usage
        is_shut = gate.way is None or (begins is not None and state.floor is None)
        scene = Scene(
            session=log.name,
            state=state,
            residency=residency,
            valve=parts.valve,
            at=call.at,
            moment=None if call.previewed else call.moment,
            previewed=call.previewed,
            stored=self._stored,
            window=window_of(parts.valve, self.model),
            opens=_never if is_shut else gate.opens,
            paid=paid or 0.0,
            files=self.files,
            excluded=parts.excluded,
            way=gate.way or TOOLS,
            servers=gate.servers,
        )
        done = evict(scene, parts.pager)
        if done.opened is not None:
            log.add(done.opened)
        is_entrance = paid is not None or (done.opened is not None and bool(done.opened.paged or done.opened.turns))
        if gate.begins is not None and is_entrance:
            log.note(gate.begins.note)
        return replace(
            call,
            opened=done.opened,
            account=done.account,
            crowded=done.crowded,
            failure=done.failure or call.failure,
        )

    def insert_texts(self, call: C) -> C:
        """Insert pinned texts, manifest pages and notices after the newest message."""
        if not call.gate.previews:
            return call
        log, recalls, budget = self.log, self.recalls, self.parts.manifest
        held = recalls.holdings if recalls is not None and budget is not None else None
        state = log.state()
        for one in insertions(state, ManifestSource(held, self.parts.counter.count, budget or BUDGET)):
            log.add(one)
        with contextlib.suppress(StoreError):  # without the store's key no echo can be recognised
            for notice in () if state.hand.off else list(self.rereads.notices(log.leaf, log.privacy.shows)):
                log.add(notice)
        return call

    def record_request(self, call: C) -> C:
        """Journal that the request is sent, and store the journal."""
        log, account, state = self.log, call.account, self.log.state()
        spent = (account.bill, account.saved, account.absent, account.anew, account.found)
        tip = state.draft.ready().tip
        entry = log.add(RequestSent(state.epoch, tip.length if tip else 0, call.at, *spent))
        failure = call.failure
        try:
            # A decision must be stored before it is sent, or another process would decide again, differently (law 6).
            log.keep()
        except StoreError as problem:
            failure = f"the journal was not kept: {type(problem).__name__}: {problem}"
        self.sent = log.state().sent
        if self.recalls is not None and (call.opened is not None or call.previewed):
            self.recalls.log_evictions(call.opened, call.previewed)
        saved = account.saved - state.account.saved
        return replace(call, entry=entry, epoch=state.epoch, gained=saved, failure=failure)

    def decide(self, call: WindowCall) -> WindowCall:
        """Run the stages of a decision without those of a provider's request."""
        for stage in (self.enter_previews, self.evict_results, self.insert_texts, self.record_request):
            call = stage(call)
        return call


def _never(_: int) -> bool:
    return False

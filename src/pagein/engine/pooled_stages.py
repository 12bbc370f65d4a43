"""The stages of a call whose conversation is shown in the pooled layout, and the choice of that layout.

Rules of this file
------------------
1. A conversation has one layout. Its first request chooses, and the journal of the branch holds the choice.
2. What cannot be pooled safely stays inline, and the journal says why (`InlineNote`).
3. The window is a fold over the branch (`policy.layouts.pooled_branch`). What the branch does not tell, such as prices and
   an expired cache, is journaled in front of the request.
4. Where the provider binds thinking to the prompt before it, or signs its calls, nothing in front of the model's last
   message moves before the user's next words.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pagein.engine.branch_index import BranchIndex
from pagein.engine.cache.cache_breakpoints import AS_THE_CLIENT, choice_that_fits
from pagein.engine.cache.prompt_layout import IN_FRONT
from pagein.engine.intake import recall_tools
from pagein.engine.intake.client_profile import profile_in
from pagein.engine.intake.message_chain import Unit
from pagein.engine.log.journal import Fold
from pagein.engine.prepared_request import CLOSED_GATE
from pagein.engine.send.pooled_changes import render_pooled
from pagein.engine.send.request_call import RequestCall
from pagein.engine.send.sent_changes import RenderedWindow, SentView, SentWindow, binds_thinking
from pagein.engine.window_stages import WindowStages
from pagein.errors import HostError
from pagein.model.entries import EntryId, EpochEntry, RequestSent
from pagein.model.journal_notes import BreakpointChoice
from pagein.model.layout_notes import InlineNote, PooledRequestNote
from pagein.model.messages import ToolResult
from pagein.model.note_forms import kind_of
from pagein.policy.layouts.pooled_branch import TAKES, BranchFold, PooledBranch
from pagein.policy.pools.pool_fold import CONTEXT_TOOLS
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.wire.breakpoint_edits import Address
from pagein.providers.wire.tool_offers import names_of
from pagein.providers.wire.ttl_edits import blocks_in

POOLED: Final = kind_of(PooledRequestNote)
"""Kind of the note that each journal with a pooled conversation has."""
_CHARS: Final = 4
"""Characters of a token, about."""
_TAKEN: Final = "the client has tools of its own with the names of those for pools: {}"
_BOUND: Final = "the model's thinking is bound to the prompt before it, in a turn that goes on"


class PooledStages:
    """The pooled conversations of a session. Not thread-safe."""

    def __init__(self, window: WindowStages, index: BranchIndex) -> None:
        self._window, self._log, self._index = window, window.log, index
        outside = window.parts.outside
        fold = BranchFold(self._log.name) if outside is None else BranchFold(self._log.name, outside.text)
        self._branches: Fold[PooledBranch] = Fold(self._log.journal, fold.start(), fold.step, takes=TAKES)
        self._fold = fold

    def at(self, entry: EntryId | None) -> PooledBranch | None:
        """Return the pooled window at an entry; None for a conversation of another layout."""
        if POOLED not in self._log.journal.kinds:
            return None
        branch = self._branches[entry]
        return branch if branch.is_pooled else None

    def render(
        self, entry: EntryId, sent: SentWindow, units: Sequence[Unit], before: RenderedWindow
    ) -> RenderedWindow | None:
        """Return how a pooled request differs from the client's; None for a request of another layout."""
        branch = self.at(entry)
        return None if branch is None else render_pooled(branch, sent, units, before)

    def choose_layout(self, call: RequestCall) -> RequestCall:
        """Choose the layout of a conversation at its first request, with the tools that belong to it."""
        pending, clients = call.pending, self._window.parts.pooled
        if self.at(call.parent) is not None:
            return replace(call, is_pooled=True)
        if clients is None or not pending.pool_offers or self._index.settled[call.parent] is not None:
            return call
        profile = profile_in(pending.theirs)
        if (clients and (profile is None or profile.name not in clients)) or not recall_tools.is_agents(pending.theirs):
            return call
        taken = sorted(CONTEXT_TOOLS & names_of(pending.theirs.fields, pending.script.api))
        refusal = _BOUND if floor_of(call) else _TAKEN.format(", ".join(taken)) if taken else ""
        if refusal:
            recall = replace(pending.recall, notes=(*pending.recall.notes, InlineNote(refusal)))
            return replace(call, pending=replace(pending, recall=recall))
        recall = recall_tools.enter_at_once(pending.theirs, pending.script, pending.pool_offers)
        return replace(call, pending=pending.with_recall(recall), is_pooled=True)

    def show_window(self, call: RequestCall) -> RequestCall:
        """Journal the facts of the window, and that the request is sent. Raises HostError for an unknown conversation."""
        log, floor, units = self._log, floor_of(call), call.pending.script.units
        is_whole = call.repaired or call.most is CLOSED_GATE or units[-1].message.role not in ("user", "tool")
        terms, bounds = _cache_terms(call), self._window.parts.pools
        log.note(
            PooledRequestNote(
                model=call.pending.head.model,
                read=terms.read,
                write=terms.write,
                anywhere=terms.anywhere,
                calls=bounds.recent_calls,
                turns=bounds.recent_turns,
                by_hand=bounds.by_hand,
                prefix=_prefix_tokens(call),
                floor=floor,
                cold=call.is_unread and not floor,
                whole=is_whole,
            )
        )
        before = self._branches[log.leaf]
        if before.messages != len(units):
            raise HostError(f"the pools know {before.messages} messages of a conversation of {len(units)}")
        account = log.states[log.leaf].account
        window = self._fold.step(before, RequestSent(0, len(units))).window
        account = replace(account, bill=window.bill, saved=account.saved + window.saved - before.window.saved)
        call = self._window.record_request(replace(call, account=account))
        opened = None
        if window.rebuilt is not None and window.rebuilt <= before.window.messages:
            opened = EpochEntry(window.epochs, max(window.rebuilt - 1, 0), (), "contents left the pools")
        terms_of_cache = call.terms and call.terms.settle(rewritten=opened is not None)
        return replace(call, opened=opened, epoch=window.epochs, terms=terms_of_cache)

    def breakpoints(self, call: RequestCall, view: SentView) -> BreakpointChoice:
        """Choose the cache breakpoints of a new request: its end, and the place from which the window may be rebuilt.

        view: the request as it was spliced.
        """
        pending, items, window = call.pending, call.made.items, self._branches[call.entry].window
        units, ends = pending.script.units, view.splicer.ends
        if not pending.script.format.cache.takes_ttls or not items:
            return AS_THE_CLIENT

        def address(number: int, behind: int) -> Address | None:
            """Return the last block of a message, in front of `behind` blocks at its end."""
            if not 0 < number <= len(units):
                return None
            unit = units[number - 1]
            at = ends[unit.first + unit.count - 1] - 1 if ends else unit.first
            place = len(list(blocks_in(items[at]))) - behind - 1
            return (at, place) if place >= 0 else None

        def contents(number: int) -> int:
            return sum(1 for one in window.shown if one.behind == number)

        reads = None if window.rebuilt is None else address(window.rebuilt, 0)
        place = window.frontier or 0
        frontier = None if window.frontier is None else address(place, contents(place))
        wanted = BreakpointChoice(frontier, reads=reads, messages=len(items))
        chosen = choice_that_fits(wanted, call.made.request(pending.envelope))
        last = len(units)
        return replace(chosen, tail=address(last, 0)) if contents(last) or str(last) in window.news else chosen


def floor_of(call: RequestCall) -> int:
    """Return the number of messages at the beginning of a request in which nothing may change."""
    script = call.pending.script
    units = script.units
    answer = next((place for place in range(len(units) - 1, -1, -1) if units[place].message.role == "assistant"), -1)
    in_loop = any(isinstance(block, ToolResult) for unit in units[answer + 1 :] for block in unit.message.blocks)
    is_bound = script.format.validity.signs_open_turn or binds_thinking(call.pending.head, script.api)
    return answer + 1 if in_loop and is_bound else 0


def _cache_terms(call: RequestCall) -> CacheTerms:
    table, cache = newest_prices(call.pending.head.model), call.pending.script.format.cache
    anywhere = not cache.needs_breakpoints or (table is not None and table.cache.model != "breakpoints")
    return CacheTerms(anywhere=anywhere) if table is None else CacheTerms(table.read, table.write_5m, anywhere)


def _prefix_tokens(call: RequestCall) -> float:
    fields = call.pending.envelope.fields
    return float(sum(len(fields[name]) for name in IN_FRONT if name in fields) // _CHARS)

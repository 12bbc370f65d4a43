"""The pooled window of a client's conversation, folded from the branch of its session.

The same branch gives the same window in every process. Requests of other layouts are followed, too, so that the pools
know what the model saw before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from typing import Final

from pagein.model.entries import Body, CompactionEntry, MessageEntry, NoteEntry, RequestSent
from pagein.model.layout_notes import PooledRequestNote
from pagein.model.messages import Message
from pagein.model.pool_notes import PoolNote
from pagein.model.shared_collections import SharedMap
from pagein.policy.layouts.conversation_blocks import Count
from pagein.policy.layouts.pool_lines import LEGEND, content_text
from pagein.policy.layouts.pooled_fold import PooledFold, PooledRequest
from pagein.policy.layouts.pooled_window import PAGEIN, PooledWindow, WindowFacts
from pagein.policy.pools.pool_fold import TAKES as POOL_ENTRIES
from pagein.policy.pools.pool_fold import PoolFold
from pagein.policy.pools.pool_values import PoolRules
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.providers.tokens.counters import counter_for

TAKES: Final = (*POOL_ENTRIES, PooledRequestNote)
"""The entries and notes that may change the window."""
_COUNTED: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class PooledBranch:
    """The pools and the window at an entry of a branch.

    new: messages since the last request.
    facts: of the coming request; None while it is none of the pooled layout.
    is_pooled: whether the last request of the conversation was pooled.
    has_legend: whether the conversation begins with the text that explains the lines of the window.
    told: versions that an answer in the conversation shows whole, by the id of their object.
    """

    state: PooledRequest = field(default_factory=PooledRequest)
    new: tuple[Message, ...] = ()
    facts: PooledRequestNote | None = None
    is_pooled: bool = False
    has_legend: bool = False
    told: SharedMap[str] = field(default_factory=SharedMap)

    @property
    def window(self) -> PooledWindow:
        """The window of the last request."""
        return self.state.window

    @property
    def messages(self) -> int:
        """The messages of the conversation so far."""
        return self.window.messages + len(self.new)

    @property
    def front(self) -> str:
        """The text in front of the user's first words; "" for none."""
        legend = LEGEND if self.has_legend else ""
        return "\n\n".join(one for one in (legend, self.window.metadata) if one)

    def is_shown(self, object_id: str, version: str | None) -> bool:
        """Return whether the conversation shows an object in this version, active or not."""
        shown = (one for one in self.window.shown if one.id == object_id)
        return self.told.get(object_id) == version or any(one.version == version == one.present for one in shown)

    def is_reference(self, call_id: str) -> bool:
        """Return whether a reference stands in place of the result of a call."""
        return bool(self.window.references.get(call_id))

    def shows_result(self, call_id: str) -> bool:
        """Return whether the window has the content to which the reference of a call leads."""
        one = self.state.walk.state.index.get(call_id)
        objects = {call_id} if one is None else {call_id, *(name for name, _ in one.shows)}
        return any(shown.id in objects for shown in self.window.shown)

    def told_behind(self, number: int) -> tuple[str, ...]:
        """Return the texts after a message: news, then contents. number: of the message, from 1."""
        news, texts = self.window.news.get(str(number)), self.state.walk.texts
        contents = (content_text(one.id, texts[one.version]) for one in self.window.shown if one.behind == number)
        return (*(() if news is None else (news,)), *contents)


@dataclass(frozen=True, slots=True)
class BranchFold:
    """The fold of one session. Pure.

    session: its name, by which files are named.
    stored: returns the text of a stored version, as in `PoolFold`.
    """

    session: str = ""
    stored: Callable[[str], str | None] = lambda _: None

    def start(self) -> PooledBranch:
        """Return the state before the first entry."""
        return PooledBranch(PooledRequest(PoolFold(self.session).start()))

    def step(self, branch: PooledBranch, body: Body) -> PooledBranch:
        """Return the state after an entry."""
        if isinstance(body, RequestSent):
            return self._request(branch, body)
        note = body.note if isinstance(body, NoteEntry) else None
        if isinstance(note, PooledRequestNote):
            return replace(branch, facts=note)
        branch = replace(branch, state=self._fold(branch.facts).step(branch.state, body))
        if isinstance(body, MessageEntry):
            return replace(branch, new=(*branch.new, body.message))
        if isinstance(body, CompactionEntry) and not body.lost:
            return _compacted(branch)
        if isinstance(note, PoolNote):
            return replace(branch, told=_told(branch, note))
        return branch

    def _fold(self, facts: PooledRequestNote | None) -> PooledFold:
        facts = facts or PooledRequestNote()
        pools = PoolFold(self.session, rules=PoolRules(facts.calls, facts.turns, facts.by_hand), stored=self.stored)
        return PooledFold(pools, PAGEIN, CacheTerms(facts.read, facts.write, facts.anywhere))

    def _request(self, branch: PooledBranch, sent: RequestSent) -> PooledBranch:
        facts, state = branch.facts, branch.state
        if facts is None:
            walk = self._fold(None).pools.step(state.walk, sent)
            window = replace(state.window, messages=branch.messages)
            return replace(branch, state=replace(state, walk=walk, window=window), new=())
        is_first = not branch.window.messages
        asked = WindowFacts(
            branch.new,
            state.walk.texts,
            count_for(facts.model),
            cold=facts.cold,
            prefix=facts.prefix,
            floor=facts.floor,
            whole=facts.whole,
            told=branch.told,
            marked=facts.marked,
        )
        # the legend changes the first message, so it enters where everything is written anew
        anew = (is_first or facts.cold) and not facts.whole and not facts.floor
        return replace(
            branch,
            state=self._fold(facts).show(state, asked),
            new=(),
            is_pooled=True,
            has_legend=branch.has_legend or anew,
        )


@lru_cache(maxsize=8)
def count_for(model: str) -> Count:
    """Return a function from a text to the model's tokens. The function remembers counted texts."""
    counter = counter_for(model)
    return lru_cache(_COUNTED)(lambda text: float(ceil(counter.count(text))))


def _compacted(branch: PooledBranch) -> PooledBranch:
    """Begin the window anew. Costs and savings so far stay."""
    gone = branch.window
    window = PooledWindow(epochs=gone.epochs + 1, absent=gone.absent, bill=gone.bill, saved=gone.saved)
    state = replace(branch.state, window=window, edited=frozenset())
    return replace(branch, state=state, new=(), has_legend=False, told=SharedMap[str]())


def _told(branch: PooledBranch, note: PoolNote) -> SharedMap[str]:
    told, index = branch.told, branch.state.walk.state.index
    for act in note.acts:
        one = index.get(act.id)
        if act.told and one is not None and one.version is not None:
            told = told.put(act.id, one.version)
    return told

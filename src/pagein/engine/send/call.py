"""A request in progress: the client's version and the version to send."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.intake.message_chain import Transcript
from pagein.engine.intake.recall_tools import NO_WORD, RecallOffer, Settled
from pagein.model.entries import EntryId
from pagein.model.journal_notes import PrefixDigests
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.tool_offers import ToolOffer, names_of, search_tool, with_deferral, with_tools


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The facts of a request beside the body.

    documented: True if the provider documents how long it keeps cache entries, so that this need not be shown first.
    guarded: True if the agent has a hook that stops calls which would write a mask into a file.
    curates: False if the client decides on its window itself: then it is only measured, and its cache breakpoints placed.
    reported: True if the caller reports each answer, also a failed one. Then the next request waits for a report that is under way.
    patience: seconds that it may wait.
    """

    documented: bool = False
    guarded: bool = False
    curates: bool = True
    reported: bool = False
    patience: float = math.inf


NO_FACTS: Final = RequestFacts()


@dataclass(frozen=True, slots=True)
class SentPlace:
    """The place of the last sent request that a call continues.

    entry: its entry. stand: the entry behind it where the conversation goes on.
    count: number of its messages.
    """

    entry: EntryId
    stand: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A request in progress.

    script: its messages.
    theirs, original: the client's envelope and body.
    head: digests of the prompt prefix.
    offers: the available recall tools; None if recall is the caller's own business.
    pool_offers: the tools for a pooled window; empty if the conversation shall not be pooled.
    envelope, body: the client's version plus the recall tools, with deferred tools.
    lasting: the most that a keep-alive request may cost, in BIT; None to leave the cache TTLs to the client.
    facts: what is known of the request beside its body.
    recall: the recall tools and recall way of the request.
    context: as in `Engine.prepare`.
    own_tool_names: names of pagein's tools in the request.
    """

    script: Transcript
    theirs: Envelope
    original: bytes
    head: PrefixDigests
    offers: Sequence[ToolOffer] | None
    envelope: Envelope
    body: bytes
    lasting: float | None = None
    facts: RequestFacts = NO_FACTS
    recall: RecallOffer = NO_WORD
    context: str = ""
    own_tool_names: tuple[str, ...] = ()
    pool_offers: Sequence[ToolOffer] = ()

    @classmethod
    def unchanged(cls, script: Transcript, envelope: Envelope, body: bytes, head: PrefixDigests) -> "PendingCall":
        """Return the call of a request without recall tools, as the client wrote it."""
        return cls(script, envelope, body, head, None, envelope, body)

    def with_recall(self, recall: RecallOffer) -> "PendingCall":
        """Return the call with these recall tools."""
        fields = with_tools(self.theirs.fields, self.script.api, recall.tools)
        if recall.deferred:
            fields = with_deferral(fields, self.script.api, recall.deferred)
        if fields is self.theirs.fields:
            return replace(self, envelope=self.theirs, body=self.original, recall=recall, own_tool_names=())
        sent, taken = replace(self.theirs, fields=fields), names_of(self.theirs.fields, self.script.api)
        search = search_tool(fields, self.script.api) if recall.deferred else ""
        names = (*(one.name for one in recall.tools), *([search] if search else []))
        ours = tuple(name for name in names if name not in taken)
        return replace(self, envelope=sent, body=sent.body(sent.items), recall=recall, own_tool_names=ours)

    def after_decision(self, settled: Settled) -> "PendingCall":
        """Return the call after the decision, with recall tools that begin with an eviction."""
        if self.recall.begins is None or not isinstance(settled, tuple):
            return self
        return self.with_recall(replace(self.recall, tools=settled, begins=None))

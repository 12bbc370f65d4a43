"""A request on its way, as its client sent it and as it goes out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pagein.engine.cache.prompt_prefix import PrefixDigests
from pagein.engine.intake.message_chain import Transcript
from pagein.engine.intake.recall_tools import NO_WORD, RecallOffer, Settled
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.tool_offers import ToolOffer, names_of, with_tools


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A request on its way. theirs, original: the client's. envelope, body: the same with the tools that are offered beside its own.

    offers: the tools that there are; None: the caller sees to recall. recall: how it stands to that. context: as in `Engine.prepare`.
    """

    script: Transcript
    theirs: Envelope
    original: bytes
    head: PrefixDigests
    offers: Sequence[ToolOffer] | None
    envelope: Envelope
    body: bytes
    lasting: float = 0.0
    recall: RecallOffer = NO_WORD
    context: str = ""

    def with_recall(self, recall: RecallOffer) -> "PendingCall":
        """The call with the tools that this says."""
        fields = with_tools(self.theirs.fields, self.script.api, recall.tools)
        if fields is self.theirs.fields:
            return replace(self, envelope=self.theirs, body=self.original, recall=recall)
        sent = replace(self.theirs, fields=fields)
        return replace(self, envelope=sent, body=sent.body(sent.items), recall=recall)

    def after_decision(self, settled: Settled) -> "PendingCall":
        """The call behind what was decided for it: with the tools that are offered because something left."""
        if self.recall.begins is None or not isinstance(settled, tuple):
            return self
        return self.with_recall(replace(self.recall, tools=settled, begins=None))

    @property
    def own_tool_names(self) -> tuple[str, ...]:
        """Names of our tools that it has."""
        if self.envelope is self.theirs:
            return ()
        taken = names_of(self.theirs.fields)
        return tuple(one.name for one in self.recall.tools if one.name not in taken)

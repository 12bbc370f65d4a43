"""A provider's request in the making, as one value that its stages take along, and the request to send from it."""

from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.cache.cache_breakpoints import AS_THE_CLIENT
from pagein.engine.cache.cache_ttl import CacheTerms
from pagein.engine.cache.prompt_layout import IN_FRONT, SentRequest
from pagein.engine.cache.prompt_prefix import Part
from pagein.engine.prepared_request import OPEN_GATE, Gate, Placed, PreparedRequest, WindowCall
from pagein.engine.send.call import PendingCall
from pagein.engine.send.outgoing_body import Bytes
from pagein.engine.send.sent_changes import WindowLayout
from pagein.model.entries import EntryId
from pagein.model.journal_notes import BreakpointChoice

_NO_BYTES: Final = Bytes(b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCall(WindowCall):
    """A provider's request in the making.

    pending: the client's request, and the recall tools that enter it.
    asked_at: time of the request, in seconds since 1970; None if unknown.
    most: the decisions that the caller allows.
    known: number of leading messages that the journal has.
    placed: relation to earlier requests.
    parent: the entry that the request continues.
    changes: parts of the prompt prefix that the client changed.
    repaired: True if the request had to be repaired.
    is_unread: True if the cache holds nothing of the request.
    marks: True if the conversation may be cached: it has cache breakpoints, or needs none.
    is_new_prefix: True if no earlier request of the branch had its prompt prefix.
    terms: its cache terms; None if left to the client.
    split: the block behind which the short TTL begins; None for one TTL.
    layout: the window beside the client's messages.
    made: its bytes.
    chosen: its cache breakpoints.
    is_pooled: True if its window is of the pooled layout.
    """

    pending: PendingCall
    asked_at: float | None = None
    most: Gate = OPEN_GATE
    known: int = 0
    placed: Placed = "passed"
    parent: EntryId | None = None
    changes: tuple[Part, ...] = ()
    repaired: bool = False
    is_unread: bool = False
    marks: bool = True
    is_new_prefix: bool = False
    terms: CacheTerms | None = None
    split: tuple[int, int] | None = None
    layout: WindowLayout | None = None
    made: Bytes = _NO_BYTES
    chosen: BreakpointChoice = AS_THE_CLIENT
    is_pooled: bool = False

    @property
    def decided(self) -> bool:
        """True if a decision changed the request."""
        return self.opened is not None or bool(self.previewed) or self.is_pooled


def prepared_request(asked: PreparedRequest, call: RequestCall) -> PreparedRequest:
    """Return the request to send, as its stages made it."""
    pending, made = call.pending, call.made
    fields = pending.envelope.fields if made.fields is None else made.fields
    front = {name: fields[name] for name in IN_FRONT if name in fields}
    return replace(
        asked,
        body=made.body,
        sent=SentRequest(pending.script.api, front, made.items, pending.script.names, pending.head, asked.at or 0.0),
        terms=call.terms,
        entry=call.entry,
        placed=call.placed,
        shared=call.known,
        epoch=call.epoch,
        opened=call.opened,
        previewed=call.previewed,
        replaced=made.replaced,
        changed_by_client=call.changes,
        crowded=call.crowded,
        repaired=call.repaired,
        failure=call.failure,
        gained=call.gained,
        offered=pending.own_tool_names,
        deferred=pending.recall.deferred,
    )

"""What a finished call leaves: the request to send, and the last rendering of its branch."""

from dataclasses import replace

from pagein.engine.branch_index import BranchIndex
from pagein.engine.cache.prompt_layout import IN_FRONT, SentRequest
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.request_call import RequestCall
from pagein.engine.send.call import PendingCall
from pagein.engine.send.outgoing_body import Bytes
from pagein.engine.send.undecided_requests import LastSent
from pagein.model.journal_notes import BreakpointChoice


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


def last_sent(call: PendingCall, made: Bytes, index: BranchIndex, chosen: BreakpointChoice) -> LastSent:
    """Return the request as the last of its branch, for requests that are sent without a decision."""
    tools = call.recall.tools if call.own_tool_names else ()
    deferred = call.recall.deferred
    return LastSent(call.script, made.changes, len(call.original), index.places.exchanges, tools, chosen, deferred)

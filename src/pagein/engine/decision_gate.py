"""Choose the decisions that a request allows (epoch, previews, masks), by repairs and bound thinking."""

from collections.abc import Callable
from dataclasses import replace

from pagein.engine.log.rendering import cut
from pagein.engine.log.state import State
from pagein.engine.log.turn_removal import is_spoken
from pagein.engine.prepared_request import CLOSED_GATE, Gate
from pagein.engine.send.call import PendingCall
from pagein.engine.send.sent_changes import binds_thinking, carries_thinking
from pagein.model.messages import ToolResult
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.residency import Residency


def gate_of(call: PendingCall, here: Callable[[], State], *, has_exchanges: bool, repaired: bool) -> Gate:
    """Return the allowed decisions for a request.

    An invalid request allows none. Bound thinking forbids an epoch before it, except after a user message: then the
    thinking may be removed (T8, M10), and with new recall tools all thinking. Bound thinking also forbids masked
    arguments. In a format that signs calls, no epoch begins before the user's next words.

    here: returns the state at the current entry.
    has_exchanges: True if the session has hidden recall exchanges.
    repaired: True if the request had to be repaired.
    """
    script, recall = call.script, call.recall
    if repaired:
        return replace(CLOSED_GATE, way=recall.way, begins=recall.begins)
    units = script.units
    answer = next((place for place in range(len(units) - 1, -1, -1) if units[place].message.role == "assistant"), -1)
    in_loop = any(isinstance(block, ToolResult) for unit in units[answer + 1 :] for block in unit.message.blocks)
    gate = Gate(way=recall.way, begins=recall.begins, servers=lambda: _servers_may_leave(call))
    if script.format.validity.signs_open_turn:
        return replace(gate, arguments=False, opens=_never) if in_loop else replace(gate, arguments=False)
    if not binds_thinking(call.head, script.api):
        return replace(gate, thinking=None) if carries_thinking(call.head, script.api) else gate
    gate = replace(gate, arguments=False, thinking="leaves")
    # hidden exchanges may have thinking anywhere
    last = len(units) - 1 if has_exchanges else units[-1].thought
    if not in_loop or last < 0:
        return gate
    if gate.begins is not None:
        return replace(gate, way=None, begins=None)

    def opens(frontier: int) -> bool:
        draft = here().draft
        first = cut(draft.ready().tip, frontier + 1)
        return first is None or first.piece.said - (draft.said - len(units) + 1) > last

    return replace(gate, opens=opens)


def _servers_may_leave(call: PendingCall) -> bool:
    """Return whether results of the provider's own tools may leave a request."""
    script, form = call.script, call.script.format.requests.server_results
    spoken = (unit.first for unit in reversed(script.units) if is_spoken(unit.message))
    return form is not None and form.may_leave(call.theirs.fields, script.raws[next(spoken, 0) :])


def _never(_frontier: int) -> bool:
    return False


def gated_residency(usual: Residency, gate: Gate) -> Residency:
    """Return the residency settings under a gate: masked arguments and thinking."""
    arguments = usual.arguments if gate.arguments else None
    thinking = gate.thinking or usual.thinking
    same = arguments is usual.arguments and thinking == usual.thinking
    return usual if same else replace(usual, arguments=arguments, thinking=thinking)


def at_prices(usual: Residency, economics: Economics | None) -> Residency:
    """Return the residency settings with the prices of a call; unchanged for decisions by size alone."""
    return usual if None in (economics, usual.economics) else replace(usual, economics=economics)

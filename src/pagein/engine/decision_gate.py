"""What may be decided for a request, by what stands in it."""

from collections.abc import Callable
from dataclasses import replace

from pagein.engine.log.rendering import cut
from pagein.engine.log.state import State
from pagein.engine.prepared_request import CLOSED_GATE, Gate
from pagein.engine.send.call import PendingCall
from pagein.engine.send.sent_changes import binds_thinking, carries_thinking
from pagein.model.messages import ToolResult
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.residency import Residency


def gate_of(call: PendingCall, here: Callable[[], State], *, has_exchanges: bool, repaired: bool) -> Gate:
    """What may be decided for a request: nothing where it is not valid by itself; no epoch in front of bound thinking, but where
    the user has the word: then that thinking may go (T8, M10), and so may all of it where tools of ours enter. Arguments are never
    masked where thinking may be bound to them.

    here: the state where the session stands. has_exchanges: whether it has turns that the client did not see.
    """
    script, recall = call.script, call.recall
    if repaired:
        return replace(CLOSED_GATE, way=recall.way, begins=recall.begins)
    units = script.units
    answer = next((place for place in range(len(units) - 1, -1, -1) if units[place].message.role == "assistant"), -1)
    in_loop = any(isinstance(block, ToolResult) for unit in units[answer + 1 :] for block in unit.message.blocks)
    gate = Gate(way=recall.way, begins=recall.begins)
    if not binds_thinking(call.head, script.api):
        return replace(gate, thinking=None) if carries_thinking(call.head, script.api) else gate
    gate = replace(gate, arguments=False, thinking="leaves")
    # what stands in an exchange may have thinking anywhere
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


def gated_residency(usual: Residency, gate: Gate) -> Residency:
    """The settings, without arguments where none may be masked, and with what becomes of thinking."""
    arguments = usual.arguments if gate.arguments else None
    thinking = gate.thinking or usual.thinking
    same = arguments is usual.arguments and thinking == usual.thinking
    return usual if same else replace(usual, arguments=arguments, thinking=thinking)


def at_prices(usual: Residency, economics: Economics | None) -> Residency:
    """The settings with the prices of one call; the same where they decide by size alone."""
    return usual if None in (economics, usual.economics) else replace(usual, economics=economics)

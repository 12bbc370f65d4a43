"""The tools for pools in a short form, offered beside a client's own tools and answered within its model's answer.

The client reads its files itself. So these tools reach only the objects known to the session's own branch.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.engine.session_pools import PoolReply
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.tools.calls import ArgumentReader, refusal_result, schema

_ID: Final = {"type": "string"}
_TOLD: Final = {
    "activate": "Show an object whole again, by the id in its toolcall_ref, object_ref or inactive_ref, or by the path of its file.",
    "deactivate": "Stop showing an object whole, by its id or path, when you need it no more.",
    "pin": "Show an object whole until it is unpinned or deactivated, by its id or path.",
    "unpin": "Take a pin back.",
}
_ABOVE: Final = "Its content stands above, in your context, below ACTIVE_CONTENT with this id."
OFFERS: Final = tuple(ToolOffer(name, text, schema(("id",), id=_ID)) for name, text in _TOLD.items())
"""The bytes must be the same in every request of a session, so running sessions keep the old form after a change."""


def answer_pool_call(session: Session, name: str, arguments: Mapping[str, object]) -> ReadResult:
    """Answer a call of a tool for pools. What it brings back stands in the answer.

    Raises no exception for any input of a model.
    """
    if name not in _TOLD:
        return refusal_result(f"There is no tool {name!r} here; there are {', '.join(_TOLD)}.")
    given = ArgumentReader(name, arguments)
    named = given.text("id")
    problem = given.problem()
    if problem is not None:
        return problem
    reply = _reply(session, name, named)
    details = {"id": reply.id} if reply.id else {}
    return ReadResult(reply.text, details, is_error=reply.is_error, failure=reply.failure)


def _reply(session: Session, name: str, named: str) -> PoolReply:
    pools = session.pools.of_window
    if name in ("deactivate", "unpin"):
        return pools.deactivate(named) if name == "deactivate" else pools.unpin(named)
    one = pools.find(named)
    window = session.traffic.pooled
    is_shown = (
        window is not None and one is not None and one.version is not None and window.is_shown(one.id, one.version)
    )
    act = pools.activate if name == "activate" else pools.pin
    reply = act(named, told=not is_shown)
    return replace(reply, text=f"{reply.text}. {_ABOVE}") if is_shown and not reply.is_error else reply

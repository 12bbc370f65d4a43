"""The tools `pin`, `unpin`, `activate` and `deactivate`: a model's orders about results in its window.

The session of the call must be the one whose window the gateway makes. An order takes effect with its next request. In the pooled
layout the gateway has tools of these names itself (`tools.pools`).
"""

from collections.abc import Callable
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import CallerError, HostError, StoreError
from pagein.tools.calls import ArgumentReader, Call, Offer, refusal_result, schema
from pagein.tools.pin_commands import touch

_MOST: Final = 20
_ID: Final = {
    "type": "string",
    "description": "The id in a stub, or that of a call; an unknown one is answered by the list of what there is.",
}


def _answer(tool: str, act: str) -> Callable[[Session, Call], ReadResult]:
    def answer(session: Session, call: Call) -> ReadResult:
        given = ArgumentReader(tool, call.arguments)
        name = given.text("id").strip(" \t\r\n\"'`")  # models may add quotes
        problem = given.problem()
        if problem is not None:
            return problem
        try:
            done = touch(session, act, name)
        except (CallerError, HostError, StoreError) as why:
            return refusal_result("\n".join([f"{why}", *_held(session)]))
        return ReadResult(done["text"], {"id": name}, failure=done["failure"])

    return answer


def _held(session: Session) -> list[str]:
    """Return a line for each result in the window, the newest first."""
    rows = list(reversed(session.hand.window()))
    lines = [
        f"{one.object_id or one.call_id}  {one.form}, {one.tokens:,} tokens, {one.tool}  {one.description}"
        for one in rows[:_MOST]
    ]
    return ["The window holds:", *lines] if lines else []


PIN: Final = Offer(
    "pin",
    "Keep a result in your context until it is unpinned. It takes room in every request. Not for what you can read again.",
    schema(("id",), id=_ID),
    _answer("pin", "pin"),
)
UNPIN: Final = Offer(
    "unpin",
    "Take a pin back: the result may leave your context again. Not for what was never pinned.",
    schema(("id",), id=_ID),
    _answer("unpin", "unpin"),
)
ACTIVATE: Final = Offer(
    "activate",
    "Bring a result that was taken out back into your context, whole, at a later step. Not for a look at a part: peek is cheaper.",
    schema(("id",), id=_ID),
    _answer("activate", "restore"),
)
DEACTIVATE: Final = Offer(
    "deactivate",
    "Let a result leave your context at a later step; its id recalls it. Not for what you still work with.",
    schema(("id",), id=_ID),
    _answer("deactivate", "drop"),
)
WINDOW_TOOLS: Final = (ACTIVATE, DEACTIVATE, PIN, UNPIN)

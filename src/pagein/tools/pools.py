"""The tools of a pooled session: `read`, `activate`, `deactivate`, `pin` and `unpin` change what the window shows.

What an object holds is in the active content of the next request, and not in the result of the call.
"""

from collections.abc import Callable
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.engine.session_pools import PoolReply
from pagein.tools.calls import ArgumentReader, Call, Offer, schema

_ID: Final = {
    "type": "string",
    "description": "The object's id, as the metadata pool lists it; or its nickname or path.",
}


def _result(reply: PoolReply) -> ReadResult:
    details = {"id": reply.id} if reply.id else {}
    return ReadResult(reply.text, details, is_error=reply.is_error, failure=reply.failure)


def _answer(
    tool: str, argument: str, act: Callable[[Session, Call, str], PoolReply]
) -> Callable[[Session, Call], ReadResult]:
    def answer(session: Session, call: Call) -> ReadResult:
        given = ArgumentReader(tool, call.arguments)
        named = given.text(argument)
        problem = given.problem()
        return _result(act(session, call, named)) if problem is None else problem

    return answer


READ: Final = Offer(
    "read",
    "Read a file. Its text stands in the active content from the next step on, always in its newest version; the result of this "
    "call only names it. Use activate, not read, for what the metadata pool lists already.",
    schema(("path",), path={"type": "string", "description": "The file, relative or absolute."}),
    _answer("read", "path", lambda session, call, path: session.pools.read(path, call.signal)),
)
ACTIVATE: Final = Offer(
    "activate",
    "Show an object whole from the next step on: a file, or the output of an earlier call. A file that was only listed is read now. "
    "Of the chat of an earlier session, ID#summary shows the summary, ID#3-5 those turns.",
    schema(("id",), id=_ID),
    _answer("activate", "id", lambda session, call, name: session.pools.activate(name, call.signal)),
)
DEACTIVATE: Final = Offer(
    "deactivate",
    "Stop showing an object whole. It stays in the metadata pool, and activate brings it back. Do this with what you need no more.",
    schema(("id",), id=_ID),
    _answer("deactivate", "id", lambda session, _, name: session.pools.deactivate(name)),
)
PIN: Final = Offer(
    "pin",
    "Show an object whole until it is unpinned or deactivated. Others leave by themselves once they are some steps old.",
    schema(("id",), id=_ID),
    _answer("pin", "id", lambda session, call, name: session.pools.pin(name, call.signal)),
)
UNPIN: Final = Offer(
    "unpin",
    "Take a pin back: the object leaves by itself again.",
    schema(("id",), id=_ID),
    _answer("unpin", "id", lambda session, _, name: session.pools.unpin(name)),
)
POOL_TOOLS: Final = (READ, ACTIVATE, DEACTIVATE, PIN, UNPIN)

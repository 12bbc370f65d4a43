"""Sessions to lay a hand on: a real store, a counter by which sizes are tokens, turns with one result each."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pagein.engine.engine import Engine, Settings
from pagein.engine.prepared_request import WindowRequest
from pagein.engine.session import Session
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.overflow import Valve
from pagein.policy.eviction.residency import Residency
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.eager_residency import eager

PATIENT = eager(batch_tokens=100_000, keep_calls=2, min_tokens=100)
"""Nothing leaves by itself: it would take more than any test says."""
EAGER = eager(batch_tokens=1000, keep_calls=2, min_tokens=100)
PRICED = eager(keep_calls=2, min_tokens=100, economics=Economics())
ASK = Message("user", (Text("please"),))


class OneToken:
    """Every character is a token, so that sizes in tests are sizes in tokens."""

    def count(self, text: str, kind: str = "result") -> float:
        return len(text)


def opened(
    folder: Path,
    residency: Residency = PATIENT,
    *,
    valve: Valve | None = None,
    manifest: bool = False,
    workspace: str = "here",
) -> Engine:
    store = SqliteStore(folder / "store.db")
    settings = Settings(residency, valve=valve or Valve(), manifest=manifest)
    return Engine(blobs=store, journals=store, counter=OneToken(), settings=settings, workspace=workspace)


def turn(name: str, size: int = 600) -> list[Message]:
    """A call and its result."""
    call = ToolCall(name, "Bash", '{"command":"ls"}')
    return [Message("assistant", (call,)), Message("tool", (ToolResult(name, body(name, size), "Bash"),))]


def body(name: str, size: int = 600) -> str:
    return f"{name} begins\n" + "x" * (size - len(name) - 8)


def says(session: Session, *turns: Sequence[Message]) -> list[WindowRequest]:
    """Say these turns; a request is prepared behind each."""
    found = []
    for messages in turns:
        for message in messages:
            session.append(message)
        found.append(session.advance())
    return found


def begun(engine: Engine, names: Iterable[str] = "abcde", name: str = "one") -> Session:
    session = engine.session(name)
    session.append(ASK)
    session.advance()
    says(session, *(turn(one) for one in names))
    return session


def shown(session: Session) -> dict[str, str]:
    """The results in the request that was prepared last."""
    return {
        block.call_id: block.text
        for message in session.last_request()
        for block in message.blocks
        if isinstance(block, ToolResult)
    }


def whole(session: Session) -> set[str]:
    """Calls whose results stand there as they were said."""
    return {name for name, text in shown(session).items() if not text.startswith("[pagein: ")}


def ids(session: Session) -> dict[str, str]:
    """Object ids by call, of all that stands as something else."""
    return {one.call_id: one.object_id for one in session.hand.window() if one.object_id}


def spoken(session: Session) -> list[str]:
    """Texts in the request that was prepared last, results aside."""
    return [block.text for message in session.last_request() for block in message.blocks if isinstance(block, Text)]

"""The session interface for provider requests, and the usage in their replies."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from pagein.engine.log.journal import Journal
from pagein.engine.log.state import State
from pagein.engine.prepared_request import OPEN_GATE, Gate, WindowRequest
from pagein.errors import BadInput
from pagein.model.entries import EntryId
from pagein.model.journal_notes import Note
from pagein.model.messages import Message, Usage
from pagein.policy.clients.profile import Profile
from pagein.providers.validity import Api
from pagein.providers.wire.usage import usage_of as usage_in

T = TypeVar("T")


class Talk(Protocol):
    """The part of a session that resolves and decides requests."""

    name: str
    model: str | None

    @property
    def journal(self) -> Journal[State]:
        """The journal of the session."""
        ...

    @property
    def leaf(self) -> EntryId | None:
        """The session's current entry."""
        ...

    @property
    def client(self) -> Profile | None:
        """The client profile at the current entry; None if unknown."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """Lock the session (see `JournalPersistence.turn`)."""
        ...

    def move(self, leaf: EntryId | None) -> None:
        """Go to another entry."""
        ...

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        """Append a message."""
        ...

    def note_compaction(self, kept: int = 0) -> EntryId:
        """Record a compaction by the client."""
        ...

    def is_private(self, text: str) -> bool:
        """Return whether a text holds spans that must not be stored."""
        ...

    def note(self, note: Note) -> EntryId:
        """Journal a fact."""
        ...

    def advance(self, at: float | None = None, gate: Gate = OPEN_GATE) -> WindowRequest:
        """Decide the next request and record it as sent."""
        ...

    def snapshot(self, sent: EntryId, more: Callable[[], Mapping[str, Any] | None]) -> Callable[[], None] | None:
        """Return a function to take a snapshot after a request, or None (see `snapshots.OfSession`)."""
        ...


class SdkReply(Protocol):
    """A reply object of a provider's SDK."""

    def model_dump(self) -> dict[str, Any]:
        """Return the reply's fields."""
        ...


Reply: TypeAlias = Usage | Mapping[str, Any] | SdkReply


def usage_of(reply: Reply, api: Api) -> Usage | None:
    """Return the token usage in a reply, or None. Raises BadInput for anything but a reply."""
    if isinstance(reply, Usage):
        return reply
    told = usage_in(reply if isinstance(reply, Mapping) else _dump_reply(reply), api)
    # an event of a stream may report output tokens alone, without the request's
    return told if told is not None and told.prompt else None


def _dump_reply(reply: SdkReply) -> Mapping[str, Any]:
    dump = getattr(reply, "model_dump", None)
    told = dump() if callable(dump) else None
    if not isinstance(told, Mapping):
        raise BadInput(
            f"a {type(reply).__name__} is no reply; give the provider's answer, whole: of a stream its final message, response or last chunk"
        )
    return told


async def in_thread(work: Callable[[], T]) -> T:
    """Run a function in a worker thread and await its result."""
    import asyncio

    return await asyncio.to_thread(work)

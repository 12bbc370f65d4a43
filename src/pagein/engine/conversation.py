"""What requests of a provider are placed in, and what they are answered with."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from pagein.engine.log.journal import Journal
from pagein.engine.log.state import State
from pagein.engine.prepared_request import OPEN_GATE, Gate, WindowRequest
from pagein.errors import BadInput
from pagein.model.entries import EntryId
from pagein.model.messages import Message, Usage
from pagein.policy.clients.profile import Profile
from pagein.providers.validity import Api
from pagein.providers.wire.usage import usage_of as usage_in

T = TypeVar("T")


class Talk(Protocol):
    """What of a session requests are placed in."""

    name: str
    model: str | None

    @property
    def journal(self) -> Journal[State]:
        """All that happened."""
        ...

    @property
    def leaf(self) -> EntryId | None:
        """Where it stands."""
        ...

    @property
    def client(self) -> Profile | None:
        """Which client it is, where it stands; None where nobody said."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """A time of its own (see `JournalPersistence.turn`)."""
        ...

    def move(self, leaf: EntryId | None) -> None:
        """Stand elsewhere."""
        ...

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        """Say something."""
        ...

    def note_compaction(self, kept: int = 0) -> EntryId:
        """The host began anew."""
        ...

    def is_private(self, text: str) -> bool:
        """Whether a text holds what must not be stored."""
        ...

    def note(self, kind: str, data: str) -> EntryId:
        """Journal a fact."""
        ...

    def advance(self, at: float | None = None, gate: Gate = OPEN_GATE) -> WindowRequest:
        """Decide, and note that a request was sent."""
        ...

    def snapshot(self, sent: EntryId, more: Callable[[], Mapping[str, Any] | None]) -> Callable[[], None] | None:
        """What takes a snapshot of its state behind this request, None where none is due (see `snapshots.OfSession.taking`)."""
        ...


class SdkReply(Protocol):
    """A reply as the object of a provider's SDK."""

    def model_dump(self) -> dict[str, Any]:
        """Its fields."""
        ...


Reply: TypeAlias = Usage | Mapping[str, Any] | SdkReply


def usage_of(reply: Reply, api: Api) -> Usage | None:
    """What a reply tells of the tokens it took, None where it tells nothing. Raises BadInput for what is no reply."""
    if isinstance(reply, Usage):
        return reply
    told = usage_in(reply if isinstance(reply, Mapping) else _dump_reply(reply), api)
    # an event of a stream may tell of the answer alone, which says nothing of the request
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
    """Do this in a worker thread and wait for it."""
    import asyncio

    return await asyncio.to_thread(work)

"""Read the token usage and the answer in the reply to a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from pagein.errors import BadInput
from pagein.model.journal_notes import FurtherUsageNote
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.usage import usage_of as usage_in

T = TypeVar("T")


class SdkReply(Protocol):
    """A reply object of a provider's SDK."""

    def model_dump(self) -> dict[str, Any]:
        """Return the reply's fields."""
        ...


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """An answer as the client saw it, read from a stream, with the usage that the provider reported.

    messages: its messages as the client may send them back, in the wire format of the request; without recall calls.
    is_whole: False if the answer was cut short.
    further: what was billed beside `usage`, because the model was asked again within the answer.
    told: why the provider says that its cache was missed; "" if it says nothing.
    name: the provider's name of the answer; "" if it is not to be journaled.
    """

    usage: Usage | None
    messages: tuple[bytes, ...] = ()
    is_whole: bool = True
    further: tuple[FurtherUsageNote, ...] = ()
    told: str = ""
    name: str = ""


Reply: TypeAlias = Usage | ClientAnswer | Mapping[str, Any] | SdkReply


def usage_of(reply: Reply, api: Api) -> Usage | None:
    """Return the token usage in a reply, or None. Raises BadInput for anything but a reply."""
    if isinstance(reply, Usage):
        return reply
    if isinstance(reply, ClientAnswer):
        return reply.usage
    told = usage_in(reply if isinstance(reply, Mapping) else _dump_reply(reply), api)
    # an event of a stream may report output tokens alone, without the request's
    return told if told is not None and told.prompt else None


def answer_of(reply: Reply, api: Api) -> ClientAnswer:
    """Return the answer in a reply, without messages if the reply has none. Raises BadInput for anything but a reply."""
    if isinstance(reply, ClientAnswer):
        return reply
    if isinstance(reply, Usage):
        return ClientAnswer(reply)
    form = format_named(api).answers
    read = form.whole(reply if isinstance(reply, Mapping) else _dump_reply(reply))
    return ClientAnswer(read.usage, form.turn(read, ()).shown, told=read.miss)


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

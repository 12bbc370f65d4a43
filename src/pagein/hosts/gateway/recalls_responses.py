"""Answers of OpenAI's Responses in which our tools are called (see `recalls`)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.exchanges import Exchange
from pagein.hosts.gateway.events import Event
from pagein.hosts.gateway.recalls import OwnCall, Result, event, extended, object_in, output_of
from pagein.hosts.gateway.replies import Reply, whole
from pagein.model.codec import encode_json

_CALLED: Final = "function_call"
_ENDS: Final = ("response.completed", "response.incomplete")
_BEGINS: Final = ("response.created", "response.queued", "response.in_progress")
# Items that wait for an answer of the client's; what the vendor runs itself does not.
_CLIENTS: Final = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)


@dataclass(slots=True)
class ResponsesAnswer:
    """One answer as the client sees it, over all the turns that it takes. ours: names of our tools."""

    ours: Collection[str]
    own: list[OwnCall] = field(default_factory=list)
    rounds: list[Reply] = field(default_factory=list)
    _client: bool = False
    _ended: bool = False
    _shown: list[dict[str, Any]] = field(default_factory=list)
    _actual: list[bytes] = field(default_factory=list)
    _said: list[bytes] = field(default_factory=list)
    _places: dict[int, int | None] = field(default_factory=dict)
    _count: int = 0
    _number: int = 0
    _moved: bool = False
    _tail: tuple[bytes, dict[str, Any]] | None = None

    # --- a stream ---

    def take(self, raw: bytes, one: Event | None) -> bytes:
        """What the client is sent for an event."""
        if one is not None and one.name.endswith(".delta") and not self._moved:
            self._number += 1
            return raw  # most of a stream, and nothing in it that the last event does not say
        value = None if one is None else object_in(one.data)
        return raw if value is None else self._passed(raw, value)

    def _passed(self, raw: bytes, value: dict[str, Any]) -> bytes:
        kind = value.get("type")
        if kind in _ENDS:
            self._tail = (raw, value)
            response = value.get("response")
            self._end(whole("openai_responses", encode_json(response)))
            return b""
        if kind in _BEGINS and self.rounds:
            return b""
        place = value.get("output_index")
        if isinstance(place, int):
            seen = self._seen(place, value.get("item"))
            if seen is None:
                return b""
            if seen != place:
                return self._numbered(b"", value | {"output_index": seen})
        return self._numbered(raw, value)

    def over(self) -> None:
        """A turn that did not end itself is not at its end."""

    def tail(self) -> bytes:
        """The end of the answer."""
        if self._tail is None:
            return b""
        raw, value = self._tail
        if len(self.rounds) == 1 and not self.own:
            return self._numbered(raw, value)
        return self._numbered(b"", value | {"response": self._merged(value["response"])})

    def _seen(self, place: int, item: object) -> int | None:
        if place not in self._places:
            hidden = isinstance(item, dict) and item.get("type") == _CALLED and item.get("name") in self.ours
            self._places[place] = None if hidden else self._count
            self._moved = self._moved or hidden
            self._count += not hidden
        return self._places[place]

    def _numbered(self, raw: bytes, value: dict[str, Any]) -> bytes:
        """The event with the number that follows; the very bytes where they have it."""
        number = self._number
        self._number += 1
        if "sequence_number" not in value or (raw and value["sequence_number"] == number):
            return raw or event(value, value["type"])
        return event(value | {"sequence_number": number}, value["type"])

    def _merged(self, response: dict[str, Any]) -> dict[str, Any]:
        usage = response.get("usage")
        if isinstance(usage, dict):
            output, prompt = output_of(self.rounds), usage.get("input_tokens")
            total = {"total_tokens": prompt + output} if isinstance(prompt, int) else {}
            usage = usage | {"output_tokens": output} | total
        return response | {"output": self._shown, "usage": usage}

    # --- an answer that is no stream ---

    def take_whole(self, body: bytes) -> bytes:
        """What the client is sent for a turn, where the answer ends with it."""
        value, reply = object_in(body), whole("openai_responses", body)
        if value is None or not reply.finished:
            return body
        self._end(reply)
        return body if len(self.rounds) == 1 and not self.own else encode_json(self._merged(value))

    # --- between the turns ---

    def _end(self, reply: Reply) -> None:
        items = [one for one in (reply.message or {}).get("output") or () if isinstance(one, dict)]
        hidden = [one for one in items if one.get("type") == _CALLED and one.get("name") in self.ours]
        visible = [one for one in items if one not in hidden]
        self.rounds.append(reply)
        self._shown += visible
        self._said = [encode_json(one) for one in items]
        self.own = [_call(one) for one in hidden]
        self._client, self._ended = any(one.get("type") in _CLIENTS for one in visible), True

    @property
    def goes_on(self) -> bool:
        """Whether the model waits for our results and for nothing else."""
        return self._ended and bool(self.own) and self._asks and not self._client

    @property
    def is_spliced(self) -> bool:
        """Whether the client sees something else than what was said."""
        return bool(self._actual) or (bool(self.own) and self._asks)

    @property
    def _asks(self) -> bool:
        return self.rounds[-1].stop == "completed"

    def go_on(self, body: bytes, results: Sequence[Result]) -> bytes:
        """The request that goes on with our results."""
        more = [*self._said, *(_result(one) for one in results)]
        self._actual += more
        self._tail, self._places, self._ended = None, {}, False
        return extended(body, "input", more)

    def exchange(self, results: Sequence[Result]) -> Exchange:
        """What the client's items will stand for."""
        merged = tuple(encode_json(one) for one in self._shown)
        return Exchange(merged, (*self._actual, *self._said), tuple(_result(one) for one in results))


def _call(one: dict[str, Any]) -> OwnCall:
    return OwnCall(str(one.get("call_id")), str(one["name"]), object_in(str(one.get("arguments")).encode()) or {})


def _result(one: Result) -> bytes:
    return encode_json({"type": "function_call_output", "call_id": one.call.id, "output": one.text})

"""Answers of OpenAI's Chat Completions in which our tools are called (see `recalls`). Its first choice is looked at."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.exchanges import Exchange
from pagein.hosts.gateway.events import Event
from pagein.hosts.gateway.recalls import OwnCall, Result, event, extended, object_in, output_of
from pagein.hosts.gateway.replies import Reader, Reply, reader, whole
from pagein.model.codec import encode_json

_CALLED: Final = "tool_calls"
_GOES_ON: Final = re.compile(rb'"finish_reason"\s*:\s*null')


@dataclass(slots=True)
class ChatAnswer:
    """One answer as the client sees it, over all the turns that it takes. ours: names of our tools."""

    ours: Collection[str]
    own: list[OwnCall] = field(default_factory=list)
    rounds: list[Reply] = field(default_factory=list)
    _client: bool = False
    _ended: bool = False
    _text: list[str] = field(default_factory=list)
    _shown: list[dict[str, Any]] = field(default_factory=list)
    _actual: list[bytes] = field(default_factory=list)
    _said: dict[str, Any] = field(default_factory=dict)
    _reading: Reader = field(default_factory=lambda: reader("openai_chat"))
    _places: dict[int, int | None] = field(default_factory=dict)
    _count: int = 0
    _unread: list[Event] = field(default_factory=list)
    _tail: list[tuple[bytes, dict[str, Any] | None]] = field(default_factory=list)

    # --- a stream ---

    def take(self, raw: bytes, one: Event | None) -> bytes:
        """What the client is sent for an event."""
        if one is None:
            return raw
        self._unread.append(one)
        if not self.rounds and b"tool_calls" not in one.data and _GOES_ON.search(one.data):
            return raw  # most of a stream; it is read when the turn is over
        value = object_in(one.data)
        choices = value.get("choices") if value is not None else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if one.data.strip() == b"[DONE]" or (choices == [] and value is not None):
            self._tail.append((raw, value))
            return b""
        if value is None or not isinstance(choice, dict):
            return raw
        if choice.get("finish_reason") is not None:
            self._tail.append((raw, value))
            return self._spoken(raw, value, choice, last=True)
        return self._spoken(raw, value, choice)

    def over(self) -> None:
        """The turn is at its end where it said why it stopped."""
        for one in self._unread:
            self._reading.take(one)
        reply = self._reading.reply()
        if reply.stop:
            self._end(reply)

    def tail(self) -> bytes:
        """The end of the answer."""
        return b"".join(self._ending(raw, value) for raw, value in self._tail)

    def _spoken(self, raw: bytes, value: dict[str, Any], choice: dict[str, Any], *, last: bool = False) -> bytes:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return b"" if last else raw
        calls = delta.get(_CALLED)
        kept = [moved for call in calls if (moved := self._moved(call)) is not None] if isinstance(calls, list) else []
        says = any(delta.get(name) for name in delta if name not in ("role", _CALLED)) or bool(kept)
        if last:
            # what it says goes out now, that it ends is held
            return (
                event(value | {"choices": [choice | _with_calls(delta, kept) | {"finish_reason": None}]})
                if says
                else b""
            )
        if not says and (self.rounds or isinstance(calls, list)):
            return b""
        if not isinstance(calls, list) or kept == calls:
            return raw
        return event(value | {"choices": [choice | _with_calls(delta, kept)]})

    def _moved(self, call: object) -> dict[str, Any] | None:
        """A piece of a call at the place where the client sees it; None where it is not for the client."""
        if not isinstance(call, dict) or not isinstance(index := call.get("index"), int):
            return None
        function = call.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if index not in self._places:
            hidden = name in self.ours
            self._places[index] = None if hidden else self._count
            self._count += not hidden
        place = self._places[index]
        return None if place is None else call | {"index": place}

    def _ending(self, raw: bytes, value: dict[str, Any] | None) -> bytes:
        if value is None:
            return raw
        choices = value.get("choices")
        if choices:
            return event(value | {"choices": [choices[0] | {"delta": {}}]}) if choices[0].get("delta") else raw
        return raw if len(self.rounds) < 2 else event(value | {"usage": self._used(value.get("usage"))})  # noqa: PLR2004 -- the first tells for itself

    def _used(self, usage: object) -> object:
        if not isinstance(usage, dict):
            return usage
        output, prompt = output_of(self.rounds), usage.get("prompt_tokens")
        total = {"total_tokens": prompt + output} if isinstance(prompt, int) else {}
        return usage | {"completion_tokens": output} | total

    # --- an answer that is no stream ---

    def take_whole(self, body: bytes) -> bytes:
        """What the client is sent for a turn, where the answer ends with it."""
        value = object_in(body)
        reply = whole("openai_chat", body)
        if value is None or reply.message is None:
            return body
        self._end(reply)
        if not self.own and len(self.rounds) == 1:
            return body
        first = value["choices"][0]
        shown = {**reply.message, **self._merged()}
        if not self._shown:
            shown = {name: one for name, one in shown.items() if name != _CALLED}
        return encode_json(value | {"choices": [first | {"message": shown}], "usage": self._used(value.get("usage"))})

    # --- between the turns ---

    def _end(self, reply: Reply) -> None:
        message = reply.message or {}
        calls = [one for one in message.get(_CALLED) or () if isinstance(one, dict)]
        hidden = [one for one in calls if (one.get("function") or {}).get("name") in self.ours]
        visible = [one for one in calls if one not in hidden]
        self.rounds.append(reply)
        self._text.append(message.get("content") or "")
        self._shown += visible
        said: dict[str, Any] = {"role": "assistant", "content": message.get("content") or None}
        self._said = said | ({_CALLED: calls} if calls else {})
        self.own = [_call(one) for one in hidden]
        self._client, self._ended = bool(visible), True

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
        """Whether the turn ended to have its calls answered; some servers say `stop` for that."""
        return self.rounds[-1].stop in (_CALLED, "stop")

    def go_on(self, body: bytes, results: Sequence[Result]) -> bytes:
        """The request that goes on with our results."""
        more = [encode_json(self._said), *(_result(one) for one in results)]
        self._actual += more
        self._tail, self._places, self._unread, self._ended = [], {}, [], False
        self._reading = reader("openai_chat")
        return extended(body, "messages", more)

    def exchange(self, results: Sequence[Result]) -> Exchange:
        """What the client's message will stand for."""
        merged = {"role": "assistant", **self._merged()}
        answers = tuple(_result(one) for one in results)
        return Exchange((encode_json(merged),), (*self._actual, encode_json(self._said)), answers)

    def _merged(self) -> dict[str, Any]:
        text: dict[str, Any] = {"content": "".join(self._text) or None}
        return text | ({_CALLED: self._shown} if self._shown else {})


def _with_calls(delta: dict[str, Any], kept: list[dict[str, Any]]) -> dict[str, Any]:
    rest = {name: one for name, one in delta.items() if name != _CALLED}
    return {"delta": rest | ({_CALLED: kept} if kept else {})}


def _call(one: dict[str, Any]) -> OwnCall:
    function = one["function"]
    return OwnCall(str(one.get("id")), str(function["name"]), object_in(str(function.get("arguments")).encode()) or {})


def _result(one: Result) -> bytes:
    return encode_json({"role": "tool", "tool_call_id": one.call.id, "content": one.text})

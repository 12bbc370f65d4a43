"""Turns of a model: separate recall calls from the client's tool calls, and build the messages that continue an answer.

Rules of this file
------------------
1. The provider gets back its own messages, followed by recall results. The client sees the same messages without recall calls.
2. Recall calls of an incomplete turn, or of a turn that did not stop for tool calls, are ignored: their arguments may be
   truncated.
3. The client answers its own calls. If a turn has both kinds, recall results are added beside the client's results when they
   arrive (`engine.send.recall_exchanges`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.gateway.stream.reply_reader import ModelReply
from pagein.model.json_text import decode_json, encode_json
from pagein.providers.validity.rules import Api

Json = Mapping[str, Any]
# Items of Responses that wait for an answer by the client.
_WAITING: Final = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
)


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of a recall tool.

    arguments: as written by the model, {} if not a JSON object
    """

    id: str
    name: str
    arguments: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnToolResult:
    """The result of a recall call."""

    call: OwnCall
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """A turn of the model.

    own: its recall calls
    said, shown: messages (Responses: items) as JSON, with and without recall calls
    calls_client: whether the turn also waits for the client
    spoke: whether its text must be separated from the next turn's text
    """

    own: tuple[OwnCall, ...] = ()
    said: tuple[bytes, ...] = ()
    shown: tuple[bytes, ...] = ()
    calls_client: bool = False
    spoke: bool = False

    @property
    def goes_on(self) -> bool:
        """Return whether the model waits for recall results only."""
        return bool(self.own) and not self.calls_client


def turn_of(api: Api, reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    """Return the turn in a provider's answer."""
    return _READERS[api](reply, ours)


def results_of(api: Api, results: Sequence[OwnToolResult]) -> tuple[bytes, ...]:
    """Return recall results as messages to send back."""
    blocks = answers_of(api, results)
    if api != "anthropic" or not blocks:
        return blocks
    return (b'{"role":"user","content":[' + b",".join(blocks) + b"]}",)


def answers_of(api: Api, results: Sequence[OwnToolResult]) -> tuple[bytes, ...]:
    """Return recall results in the form used beside the client's results: blocks for Messages, otherwise messages."""
    return tuple(encode_json(_ANSWERS[api](one)) for one in results)


def not_done(text: object) -> bool:
    """Return whether this is text that needs a separator before more text."""
    return isinstance(text, str) and bool(text) and not text[-1].isspace()


class Rounds:
    """The turns of an answer, in order."""

    def __init__(self, api: Api) -> None:
        self._api: Api = api
        self._shown: list[bytes] = []
        self._actual: list[bytes] = []
        self._answers: tuple[bytes, ...] = ()
        self.count = 0

    def end_turn(self, turn: ModelTurn) -> None:
        """Record a finished turn."""
        self.count += 1
        self._shown += turn.shown
        self._actual += turn.said

    def add_answers(self, results: Sequence[OwnToolResult]) -> None:
        """Record results before a continuation."""
        self._actual += results_of(self._api, results)

    def add_client_answers(self, results: Sequence[OwnToolResult]) -> None:
        """Record results to be sent together with the client's results."""
        self._answers = answers_of(self._api, results)

    @property
    def behind(self) -> tuple[bytes, ...]:
        """Return the messages after the client's request so far."""
        return tuple(self._actual)

    @property
    def exchange(self) -> RecallExchange | None:
        """Return the actual messages behind the client's message; None if equal, or if nothing was shown."""
        if self._shown == self._actual or not self._shown:
            return None
        return RecallExchange(tuple(self._shown), tuple(self._actual), self._answers)


# --- Anthropic Messages ---


def _messages(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    content = (reply.message or {}).get("content")
    blocks = [one for one in content if isinstance(one, dict) and _stays(one)] if isinstance(content, list) else []
    if not reply.finished:
        blocks = [one for one in blocks if one.get("type") != "tool_use" and one.get("signature") != ""]
    hidden = [one for one in blocks if one.get("type") == "tool_use" and one.get("name") in ours]
    visible = [one for one in blocks if one not in hidden]
    waits = reply.stop == "tool_use" and reply.finished
    own = tuple(OwnCall(str(one.get("id")), str(one["name"]), _object(one.get("input"))) for one in hidden)
    shown = _assistant(visible)
    return ModelTurn(
        own if waits else (),
        _assistant(blocks) if waits else shown,
        shown,
        any(one.get("type") == "tool_use" for one in visible),
    )


def _stays(block: Json) -> bool:
    """Return whether a block may be sent back: providers refuse empty texts."""
    return block.get("type") != "text" or bool(block.get("text"))


def _assistant(blocks: Sequence[Json]) -> tuple[bytes, ...]:
    return (encode_json({"role": "assistant", "content": blocks}),) if blocks else ()


def _tool_result(one: OwnToolResult) -> Json:
    block = {"type": "tool_result", "tool_use_id": one.call.id, "content": one.text}
    return {**block, "is_error": True} if one.is_error else block


# --- OpenAI Chat Completions ---


def _chat(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    message = dict(reply.message or {})
    calls = [one for one in message.pop("tool_calls", None) or () if isinstance(one, dict)]
    if not reply.stop:  # some servers do not send [DONE]
        calls = []
    hidden = [one for one in calls if _function(one).get("name") in ours]
    visible = [one for one in calls if one not in hidden]
    waits = reply.stop in ("tool_calls", "stop", "function_call")
    own = tuple(OwnCall(str(one.get("id")), str(_function(one)["name"]), _arguments(_function(one))) for one in hidden)
    message.setdefault("role", "assistant")
    shown = _spoken(message, visible)
    return ModelTurn(
        own if waits else (),
        _spoken(message, calls) if waits else shown,
        shown,
        bool(visible),
        not_done(message.get("content")),
    )


def _spoken(message: Json, calls: Sequence[Json]) -> tuple[bytes, ...]:
    if not calls and not message.get("content"):
        return ()
    return (encode_json({**message, "tool_calls": calls} if calls else message),)


def _function(call: Json) -> Json:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _tool_message(one: OwnToolResult) -> Json:
    return {"role": "tool", "tool_call_id": one.call.id, "content": one.text}


# --- OpenAI Responses ---


def _responses(reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    output = (reply.message or {}).get("output")
    items = [one for one in output if isinstance(one, dict)] if isinstance(output, list) else []
    hidden = [one for one in items if one.get("type") == "function_call" and one.get("name") in ours]
    waits = reply.stop == "completed"
    own = tuple(OwnCall(str(one.get("call_id")), str(one["name"]), _arguments(one)) for one in hidden)
    visible = [one for one in items if one not in hidden]
    shown = _resent(visible)
    return ModelTurn(
        own if waits else (),
        _resent(items) if waits else shown,
        shown,
        any(one.get("type") in _WAITING for one in visible),
    )


def _resent(items: Sequence[Json]) -> tuple[bytes, ...]:
    """Return the items in a form accepted by the provider.

    Incomplete thinking is removed, together with ids that refer to it.
    """
    if all(one.get("encrypted_content") for one in items if one.get("type") == "reasoning"):
        return tuple(encode_json(one) for one in items)
    kept = [one for one in items if one.get("type") != "reasoning"]
    return tuple(encode_json({name: value for name, value in one.items() if name != "id"}) for one in kept)


def _output(one: OwnToolResult) -> Json:
    return {"type": "function_call_output", "call_id": one.call.id, "output": one.text}


def _arguments(call: Json) -> Json:
    text = call.get("arguments")
    try:
        return _object(decode_json(text.encode("utf-8", "surrogatepass"))) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


_READERS: Final[Mapping[Api, Callable[[ModelReply, Collection[str]], ModelTurn]]] = {
    "anthropic": _messages,
    "openai_chat": _chat,
    "openai_responses": _responses,
}
_ANSWERS: Final[Mapping[Api, Callable[[OwnToolResult], Json]]] = {
    "anthropic": _tool_result,
    "openai_chat": _tool_message,
    "openai_responses": _output,
}

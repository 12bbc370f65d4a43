"""What a model said in one turn, calls of our own tools told from those of the client's; and how an answer of several turns goes on.

Rules of this file
------------------
1. What goes back to the provider is what it said, with our results behind it. What the client saw is the same without ours.
2. A turn that did not come to its end, or stopped for another reason than to have tools called, calls nothing of ours: a call
   may be cut off in its arguments.
3. The client's calls are the client's to answer. Where a turn has both, ours are answered and put beside the client's results
   when they come (`engine.send.recall_exchanges`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.gateway.stream.reply_reader import ModelReply
from pagein.model.codec import decode_json, encode_json
from pagein.providers.validity.rules import Api

Json = Mapping[str, Any]
# Items of Responses that wait for an answer of the client's.
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
    """A call of a tool of ours. arguments: as the model wrote them, {} where that is no JSON object."""

    id: str
    name: str
    arguments: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnToolResult:
    """What a call is answered with."""

    call: OwnCall
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One turn. said, shown: messages (Responses: items) as JSON, with and without our calls. calls_client: it waits for the client, too.

    spoke: it has text that must not run into the next.
    """

    own: tuple[OwnCall, ...] = ()
    said: tuple[bytes, ...] = ()
    shown: tuple[bytes, ...] = ()
    calls_client: bool = False
    spoke: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the model waits for our results and for nothing else."""
        return bool(self.own) and not self.calls_client


def turn_of(api: Api, reply: ModelReply, ours: Collection[str]) -> ModelTurn:
    """What was said in an answer of the provider's."""
    return _READERS[api](reply, ours)


def results_of(api: Api, results: Sequence[OwnToolResult]) -> tuple[bytes, ...]:
    """Our results as messages that go back."""
    blocks = answers_of(api, results)
    if api != "anthropic" or not blocks:
        return blocks
    return (b'{"role":"user","content":[' + b",".join(blocks) + b"]}",)


def answers_of(api: Api, results: Sequence[OwnToolResult]) -> tuple[bytes, ...]:
    """Our results as they stand beside the client's: for Messages as blocks, else as messages."""
    return tuple(encode_json(_ANSWERS[api](one)) for one in results)


def not_done(text: object) -> bool:
    """Whether there is text here that more text would run into."""
    return isinstance(text, str) and bool(text) and not text[-1].isspace()


class Rounds:
    """The turns of one answer, as they come."""

    def __init__(self, api: Api) -> None:
        self._api: Api = api
        self._shown: list[bytes] = []
        self._actual: list[bytes] = []
        self._answers: tuple[bytes, ...] = ()
        self.count = 0

    def end_turn(self, turn: ModelTurn) -> None:
        """A turn is over."""
        self.count += 1
        self._shown += turn.shown
        self._actual += turn.said

    def add_answers(self, results: Sequence[OwnToolResult]) -> None:
        """It is gone on with by these."""
        self._actual += results_of(self._api, results)

    def add_client_answers(self, results: Sequence[OwnToolResult]) -> None:
        """These wait for the client's results."""
        self._answers = answers_of(self._api, results)

    @property
    def behind(self) -> tuple[bytes, ...]:
        """What stands behind the client's request by now."""
        return tuple(self._actual)

    @property
    def exchange(self) -> RecallExchange | None:
        """What the client's message stands for; None where it is what was said, or nothing was shown."""
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
    """Whether a block may go back: empty texts are refused there."""
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
    if not reply.stop:  # some servers do not say [DONE]
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
    """Items as they may go back: thinking that was not given in full cannot, and then nothing may point to it."""
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

"""Drive recorded sessions over HTTP: each recorded model call is sent again as a request to a simulated provider.

The exchanges can be written as a request log for `pagein replay`: so a session's bill over the wire and its bill in a
replay cover the same requests, counted by the same counter.

Rules of this file
------------------
1. The client marks the end of its prompt, as agents do, with the recorded cache TTL; it names its session, and resends
   the recording whatever the answers are.
2. Data missing from a recording is generated once and kept: the schemas of the called tools, from their arguments.
3. After a compaction by the host the prompt holds only later messages. A tool result without its call becomes a user
   text; calls without a result are omitted.
4. Repeated reads are answered over the wire as in a replay.
5. The calls of an answer get the ids used by the client afterwards.
6. The parts of a recording visible on the wire identify the call of a request, and its answer.
7. Tokens are counted by characters everywhere, as in a replay: with a public vocabulary, exact counts differ from text
   to text, and a replay credits no policy with tokens not assignable to a text.
8. Every event happens at its recorded time, in the provider and in the gateway, without waiting.
"""

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pagein import wiring
from pagein.engine.engine import Settings as EngineSettings
from pagein.model.json_text import encode_json
from pagein.model.messages import Message, Recorded, Text, Thinking, ToolCall, ToolResult
from pagein.policy.economics.savings_reserve import RESERVE, SHARE_AT_RISK
from pagein.policy.eviction.residency import PRICED
from pagein.providers.tokens.counters import ratio_counter
from pagein.providers.validity import Api
from pagein.providers.wire import decode, format_named, render
from pagein.replay.policies.ablation import ablation
from pagein.replay.prompt.model_calls import RecordedCall, RecordedCalls, gather
from pagein.replay.run import ReplayRequest as ReplayAsked
from pagein.replay.run import replay
from pagein.simulator import ProviderCall, ProviderSettings, SimulatedProvider
from pagein.simulator import ScriptCall as CallsTool
from pagein.simulator.provider_settings import CacheKind
from pagein.simulator.script import Say, ScriptPart, ScriptTurn
from pagein.testing.recorded_time import GatewayTerms, SetClock, gateway_at

_PATIENCE: Final = 120.0
_ASKING: Final = Message("user", (Text("go on"),))
_CALLS: Final = ("tool_use", "function", "function_call")
_NAMED: Final = {"x-session-id": "driven"}
_WARNING: Final = "x-pagein-warning"

_Place: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """A request as sent, and its answer.

    at: seconds since 1970.
    status: HTTP status.
    warning: a failure of the gateway, "" without one.
    """

    at: float
    request: dict[str, Any]
    response: dict[str, Any]
    status: int
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Drive:
    """A recorded session as requests in a wire format, to a model.

    marks: whether the client sets cache breakpoints, in formats with them.
    """

    entries: Sequence[Recorded]
    api: Api
    model: str
    marks: bool = True

    def provider(self, clock: SetClock, cache: CacheKind = "documented") -> SimulatedProvider:
        """Return a provider that answers each request as recorded. Raises the errors of `SimulatedProvider`.

        cache: as in `ProviderSettings`.
        """
        calls = gather(self.entries)
        answered = _answered_calls(calls)
        turns: dict[_Place, deque[ScriptTurn]] = {}
        for call in calls.calls:
            place = _place(self._on_the_wire(_prompt(calls, call, answered)))
            turns.setdefault(place, deque()).append(self._turn(call.reply))

        def answer(asked: ProviderCall) -> ScriptTurn:
            found = turns.get(_place(asked.messages))
            if not found:
                return ScriptTurn((Say("not recorded"),))
            return found.popleft() if len(found) > 1 else found[0]

        settings = ProviderSettings(
            takes_foreign_thinking=True, keeps_bodies=False, now=clock.now, counter=ratio_counter, cache=cache
        )
        return SimulatedProvider(answer, settings)

    def through(self, address: str, clock: SetClock) -> Iterator[HttpExchange]:
        """Send the requests in order, each at the recorded time. Raises OSError without an answer."""
        calls = gather(self.entries)
        answered, tools, mark = _answered_calls(calls), _tools(calls, self.api), _mark(calls)
        for call in calls.calls:
            body = render(_prompt(calls, call, answered), self.api, model=self.model)
            if tools:
                body["tools"] = tools
            clock.set(call.at)
            body = _add_breakpoint(body, mark) if self.marks and format_named(self.api).cache.takes_ttls else body
            path = format_named(self.api).http.path.format(model=self.model)
            exchange = _send(f"{address}{path}", body, clock.now())
            _name_calls(exchange.response, [one.id for one in call.reply.blocks if isinstance(one, ToolCall)])
            yield exchange

    def _on_the_wire(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as decoded from a request."""
        return decode(encode_json(render(messages, self.api, model=self.model)), self.api).messages

    def _turn(self, reply: Message) -> ScriptTurn:
        told = self._on_the_wire((_ASKING, replace(reply, role="assistant")))[1:]
        said: list[ScriptPart] = []
        for block in (block for one in told for block in one.blocks):
            match block:
                case Text(text=text):
                    said.append(Say(text))
                case ToolCall() as call:
                    said.append(CallsTool(call.name, _arguments(call.arguments)))
                case _:
                    pass
        return ScriptTurn(tuple(said))


@dataclass(frozen=True, slots=True)
class Bills:
    """The cost of a session, BIT: over HTTP without and with a gateway, and replayed from a log of the requests
    without.

    replayed: without pagein, and with pagein. The model never recalls, because it repeats the recording.
    refused: refused requests, both ways.
    failed: calls with a failure in the gateway.
    """

    api: Api
    requests: int
    refused: int
    failed: int
    direct: float
    through: float
    replayed: tuple[float, float]

    @property
    def ratios(self) -> tuple[float, float]:
        """The bill with pagein relative to the bill without: over HTTP, and as replayed."""
        append, pagein = self.replayed
        return self.through / self.direct if self.direct else 1.0, pagein / append if append else 1.0


def drive_and_bill(entries: Sequence[Recorded], folder: Path) -> Bills:
    """Drive a session twice, replay its requests, and return the bills; writes in this folder.

    Sends Anthropic Messages if a Claude model answered in the recording, else Chat Completions. Nothing is shown once: the
    gateway does so only after an unknown client got the recall tools, and a replay from the start. The gateway's store has saved
    enough for the whole reserve, as a replay assumes.
    """
    spoken = {one.model or "" for one in entries if isinstance(one, Message) and one.role == "assistant"}
    api, model = ("openai_chat", "gpt-5.1")
    if any("claude" in name for name in spoken):
        api, model = ("anthropic", "claude-sonnet-4-5")
    drive = Drive(entries, api, model)
    clock, residency = SetClock(), replace(PRICED, shown_once=None)
    with drive.provider(clock) as provider:
        write_log(drive.through(provider.url, clock), folder / "log.jsonl")
        direct = provider.bill()
    clock = SetClock()
    with drive.provider(clock) as provider:
        with gateway_at(
            provider.url,
            folder / "gateway",
            GatewayTerms(
                clock,
                EngineSettings(residency),
                ratio_counter(drive.model),
                trusted=drive.model,
                saved=RESERVE / SHARE_AT_RISK,
            ),
        ) as address:
            failed = sum(bool(one.warning) for one in drive.through(address, clock))
        through = provider.bill()
    log, without = (folder / "log.jsonl",), "keep-alive,shown-once"
    terms = ReplayAsked(
        log, prices=drive.model, policies=("append",), without=(without,), stress=False, recalls=False, jobs=1
    )
    rows = [one["policies"] for one in replay(terms, wiring.open_for_replay).bill["per_session"]]
    append, ours = (sum(row[name]["cost"] for row in rows) for name in ("append", ablation(without.split(","))))
    refused = direct.refused + through.refused
    return Bills(api, direct.requests, refused, failed, direct.bit, through.bit, (append, ours))


def write_log(exchanges: Iterable[HttpExchange], path: Path) -> None:
    """Write a request log of these exchanges (docs/reference/formats.md)."""
    rows = (
        {
            "timestamp": datetime.fromtimestamp(one.at, UTC).isoformat(),
            "headers": _NAMED,
            "request": one.request,
            "response": one.response,
        }
        for one in exchanges
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _answered_calls(calls: RecordedCalls) -> frozenset[str]:
    """Return the answered tool calls: an interrupted host omits the others, because no provider accepts them."""
    return frozenset(one.call_id for said in calls.messages for one in said.blocks if isinstance(one, ToolResult))


def _prompt(calls: RecordedCalls, call: RecordedCall, answered: Collection[str]) -> list[Message]:
    begins = max(
        (one.messages_before for one in calls.compactions if one.messages_before < call.messages_before), default=0
    )
    made: set[str] = set()
    found: list[Message] = []
    for one in calls.messages[begins : call.messages_before]:
        blocks = tuple(block for block in one.blocks if not isinstance(block, ToolCall) or block.id in answered)
        made.update(block.id for block in blocks if isinstance(block, ToolCall))
        found.append(_of_calls(one if len(blocks) == len(one.blocks) else replace(one, blocks=blocks), made))
    return found


def _of_calls(message: Message, made: Collection[str]) -> Message:
    """Return a message with only results of known calls: other results become texts of the user."""
    strange = [one for one in message.blocks if isinstance(one, ToolResult) and one.call_id not in made]
    if not strange:
        return message
    blocks = tuple(Text(one.text) if isinstance(one, ToolResult) and one in strange else one for one in message.blocks)
    return replace(message, role="user" if len(strange) == len(blocks) else message.role, blocks=blocks)


def _place(messages: Sequence[Message]) -> _Place:
    """Return a key of a request, unique in its session and independent of a gateway's changes to results."""
    said = [block for one in messages if one.role == "assistant" for block in one.blocks]
    last = next((block.id for block in reversed(said) if isinstance(block, ToolCall)), "")
    return sum(not isinstance(block, Thinking) for block in said), last


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _tools(calls: RecordedCalls, api: Api) -> list[dict[str, Any]]:
    arguments: dict[str, dict[str, Any]] = {}
    for call in calls.calls:
        for block in call.reply.blocks:
            if isinstance(block, ToolCall):
                arguments.setdefault(block.name, {}).update({name: {} for name in _arguments(block.arguments)})
    tools = [(name, {"type": "object", "properties": arguments[name]}) for name in sorted(arguments)]
    return [format_named(api).tools.definition(name, name, schema) for name, schema in tools]


def _name_calls(response: dict[str, Any], ids: Sequence[str]) -> None:
    """Give the calls in an answer, of any format, these ids."""
    choices = response.get("choices") or [{}]
    said = choices[0].get("message", {}).get("tool_calls") or response.get("content") or response.get("output") or []
    calls = [one for one in said if one.get("type") in _CALLS]
    for one, name in zip(calls, ids, strict=False):
        one["call_id" if one["type"] == "function_call" else "id"] = name


def _mark(calls: RecordedCalls) -> dict[str, Any]:
    """Return the cache breakpoint of a client: with one hour if most recorded writes had this TTL."""
    usages = [call.usage for call in calls.calls if call.usage is not None]
    long = 2 * sum(one.written_1h for one in usages) > sum(one.written for one in usages)
    return {"cache_control": {"type": "ephemeral", "ttl": "1h"} if long else {"type": "ephemeral"}}


def _add_breakpoint(body: dict[str, Any], mark: dict[str, Any]) -> dict[str, Any]:
    for blocks in [body.get("system"), *(one["content"] for one in body["messages"][-1:])]:
        if isinstance(blocks, list) and blocks:
            blocks[-1] = {**blocks[-1], **mark}
    return body


def _send(address: str, body: dict[str, Any], at: float) -> HttpExchange:
    headers = {"content-type": "application/json", "authorization": "Bearer none", "x-api-key": "none", **_NAMED}
    request = Request(address, json.dumps(body).encode(), headers)  # noqa: S310 -- loopback
    try:
        with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 -- loopback
            return HttpExchange(at, body, json.load(answer), answer.status, answer.headers.get(_WARNING, ""))
    except HTTPError as refused:
        with refused:
            return HttpExchange(at, body, json.load(refused), refused.code)

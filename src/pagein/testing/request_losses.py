"""The cost of a made session beyond append-only, as the requests of a client over the wire.

The real engine decides on the bytes of every request, with the recall tools that the gateway offers;
`testing.documented_bills` charges both the client's bytes and pagein's. So it finds what a replay cannot: tools that lift a small
prompt over the cache's minimum, and breakpoints at wrong places.

Evicted texts are never recalled, as in `testing.losses`.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import ceil
from typing import Any, Final, Literal, TypeAlias

from pagein.engine.conversation import ClientAnswer
from pagein.engine.engine import Engine, Settings
from pagein.engine.send.call import RequestFacts
from pagein.model.messages import Usage
from pagein.policy.eviction.presets import PRESETS, Preset
from pagein.providers.wire.tool_offers import definition
from pagein.providers.wire.ttl_edits import keepalive_body
from pagein.simulator.provider_settings import CacheKind
from pagein.store.memory.memory_store import MemoryStore
from pagein.testing.documented_bills import PRICES, BilledRequest, DocumentedCache
from pagein.testing.made_sessions import MadeResult, MadeSession
from pagein.tools.brief import offers
from pagein.wiring import default_counter

Api: TypeAlias = Literal["anthropic", "openai_chat"]

BEGIN: Final = 1_795_800_000.0
_ANSWER: Final = 9000
"""Tokens of the longest answer that the client allows."""
_LIMIT: Final = 0.97
"""Share of a window at which pagein rewrites it at any cost, with a third more than the news for an estimate's error."""
_MOST: Final = 300_000.0
"""BIT that keep-alive requests of a session may cost, as the gateway's caps by default."""
_ASKS: Final = ("review it, says", "says", "fix it, says")
_OTHERS: Final = {"claude-sonnet-4-5": "claude-sonnet-4-6", "claude-opus-4-6": "claude-opus-4-5"}
"""A model with the same prices, to which a session may switch."""
_TEXT: Final = "".join(f"line {place:05d} of what a tool had to say, {place * 7919 % 10007}\n" for place in range(4000))
_ACTS: Final[Mapping[str, str]] = {"run": "Bash", "fail": "Bash", "read": "Read", "edit": "Edit", "write": "Write"}
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Bash": ("command",),
    "Read": ("file_path",),
    "Edit": ("file_path", "old_string", "new_string"),
    "Write": ("file_path", "content"),
}


@dataclass(frozen=True, slots=True)
class ClientManner:
    """How a client sends its requests.

    known: whether its tools are those of a known coding agent.
    marked: breakpoints at the ends of its newest messages; 0 for a client that asks for no cache.
    marks_front: whether its prompt prefix has a breakpoint, too.
    ratio: characters of a token.
    keeps: whether the user allows keep-alive requests.
    guarded: whether a hook guards masked arguments.
    """

    model: str
    known: bool
    marked: int
    marks_front: bool
    ratio: float
    keeps: bool
    guarded: bool

    @property
    def api(self) -> Api:
        """The wire format of the client."""
        return "anthropic" if self.has_blocks else "openai_chat"

    @property
    def has_blocks(self) -> bool:
        """Whether its messages consist of blocks, and its requests have a field for the system prompt."""
        return self.model.startswith("claude")


def random_manner(chance: random.Random) -> ClientManner:
    """Return a random manner."""
    return ClientManner(
        model=chance.choice(tuple(PRICES)),
        known=chance.random() < 0.7,  # noqa: PLR2004 -- most clients
        marked=chance.choice((1, 1, 1, 2, 0)),
        marks_front=chance.random() < 0.8,  # noqa: PLR2004
        ratio=chance.choice((2.6, 3.2, 4.0, 5.0)),
        keeps=chance.random() < 0.5,  # noqa: PLR2004 -- a coin
        guarded=chance.random() < 0.5,  # noqa: PLR2004
    )


# ── requests of the client ─────────────────────────────────────────────────


@dataclass(slots=True)
class _MadeRequest:
    """A request of the client. at: seconds since 1970. answer: the answer as the client sends it back; output: its tokens."""

    at: float
    model: str
    body: bytes
    answer: bytes
    output: int


def _requests(made: MadeSession, manner: ClientManner) -> Iterator[_MadeRequest]:
    client = _Client(made, manner)
    now, is_over = BEGIN, True
    for number, step in enumerate(made.steps):
        speaks = step.words or step.compacts or is_over
        now += step.idle if is_over or speaks else 0.0
        if step.compacts:
            client.compact()
        if speaks or not client.messages:
            asked = _ASKS[(made.front + step.words) % len(_ASKS)]
            client.say(_text(f"{asked} the person, {number}", max(5, step.words), manner.ratio))
        model = _OTHERS.get(manner.model, manner.model) if step.other else manner.model
        body = client.body(model)
        calls = [(f"call_{number}_{place}", one) for place, one in enumerate(step.results)]
        answer = client.answer(number, calls)
        output = max(step.output, ceil(len(answer) / manner.ratio))  # a provider reports all that the answer has
        yield _MadeRequest(now, model, body, answer, output)
        now += step.thought + step.took
        client.take(answer, calls)
        is_over = not calls


class _Client:
    """A client with its conversation."""

    def __init__(self, made: MadeSession, manner: ClientManner) -> None:
        self.manner = manner
        self.messages: list[dict[str, Any]] = []
        self._raw: list[bytes] = []
        self._mark = {"type": "ephemeral", "ttl": "1h"} if made.hour else {"type": "ephemeral"}
        words = _text("You work on a repository.", made.front, manner.ratio)
        self._tools = _tools_of(manner)
        block: dict[str, Any] = {"type": "text", "text": words}
        if manner.marked and manner.marks_front:
            block |= {"cache_control": self._mark}
        self._system = json.dumps([block]).encode()
        self._begins = json.dumps({"role": "system", "content": words}).encode()

    def compact(self) -> None:
        """Begin the conversation anew."""
        self.messages.clear()
        self._raw.clear()

    def say(self, words: str) -> None:
        """The person speaks."""
        if self.manner.has_blocks and self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].append({"type": "text", "text": words})
            self._raw[len(self.messages) - 1 :] = []
        elif self.manner.has_blocks:
            self.messages.append({"role": "user", "content": [{"type": "text", "text": words}]})
        else:
            self.messages.append({"role": "user", "content": words})

    def answer(self, number: int, calls: Sequence[tuple[str, MadeResult]]) -> bytes:
        """Return what the model answers, as a message."""
        said = f"so much for that, {number}"
        if self.manner.has_blocks:
            blocks = [{"type": "tool_use", "id": name, **self._call(name, one)} for name, one in calls]
            return json.dumps({"role": "assistant", "content": blocks or [{"type": "text", "text": said}]}).encode()
        made = [(name, self._call(name, one)) for name, one in calls]
        told = [
            {"id": name, "type": "function", "function": {"name": one["name"], "arguments": json.dumps(one["input"])}}
            for name, one in made
        ]
        return json.dumps(
            {"role": "assistant", "content": None if told else said} | ({"tool_calls": told} if told else {})
        ).encode()

    def take(self, answer: bytes, calls: Sequence[tuple[str, MadeResult]]) -> None:
        """Append the answer and the results of its calls."""
        self.messages.append(json.loads(answer))
        told = [(name, _result(name, one, self.manner.ratio), one.kind == "fail") for name, one in calls]
        if not told:
            return
        if not self.manner.has_blocks:
            self.messages += [{"role": "tool", "tool_call_id": name, "content": text} for name, text, _ in told]
            return
        content = [
            {"type": "tool_result", "tool_use_id": name, "content": text} | ({"is_error": True} if bad else {})
            for name, text, bad in told
        ]
        self.messages.append({"role": "user", "content": content})

    def body(self, model: str) -> bytes:
        """Return the request."""
        self._raw += [json.dumps(one).encode() for one in self.messages[len(self._raw) :]]
        said = [*self._raw]
        if self.manner.has_blocks:
            for place in range(max(0, len(said) - 2 * self.manner.marked + 1), len(said), 2):
                said[place] = self._marked(self.messages[place])
        if not self.manner.has_blocks:
            said = [self._begins, *said]
        head = b'{"model":"%s","max_tokens":%d,"tools":%s,' % (model.encode(), _ANSWER, self._tools)
        system = b'"system":%s,' % self._system if self.manner.has_blocks else b""
        return b'%s%s"messages":[%s]}' % (head, system, b",".join(said))

    def _marked(self, message: Mapping[str, Any]) -> bytes:
        *others, last = message["content"]
        return json.dumps({**message, "content": [*others, {**last, "cache_control": self._mark}]}).encode()

    def _call(self, name: str, one: MadeResult) -> dict[str, Any]:
        if not self.manner.known:
            return {"name": "lookup", "input": {"query": f"{name} {one.file}"}}
        tool, path = _ACTS[one.kind], f"/project/file-{one.file}.py"
        text = _text(name, one.tokens, self.manner.ratio) if tool in ("Edit", "Write") else ""
        given = {"command": f"make {name}", "file_path": path, "old_string": name, "new_string": text, "content": text}
        return {"name": tool, "input": {field: given[field] for field in _FIELDS[tool]}}


def _tools_of(manner: ClientManner) -> bytes:
    """Return the tools in each request of the client."""
    names = _FIELDS if manner.known else ("lookup",)
    return json.dumps([_tool(name, has_blocks=manner.has_blocks) for name in names]).encode()


def _tool(name: str, *, has_blocks: bool) -> dict[str, Any]:
    fields = _FIELDS.get(name, ("query",))
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in fields}, "required": list(fields)}
    told = {"name": name, "description": "A tool."}
    if has_blocks:
        return {**told, "input_schema": schema}
    return {"type": "function", "function": {**told, "parameters": schema}}


def _result(name: str, one: MadeResult, ratio: float) -> str:
    return "done" if one.kind in ("edit", "write") else _text(name, one.tokens, ratio)


def _text(name: str, tokens: int, ratio: float) -> str:
    """Return a text of this size, with a unique first line."""
    length = max(len(name) + 1, round(tokens * ratio))
    start = sum(map(ord, name)) * 61 % 100_000
    text = _TEXT[start : start + length - len(name) - 1]
    return f"{name}\n{text}"


# ── losses ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, order=True)
class RequestLoss:
    """The extra cost over append-only at the worst end of a session, as a share of append-only.

    share: without the price of the recall tools that a known agent has from its first request on that can be cached.
    end: calls up to that end. whole: the largest share with that price.
    full: the largest share at ends from the first request of the client on that may fill its window, which neither
        `share` nor `whole` has: append-only is about to be refused there, or compacted (as in `testing.losses`).
    """

    share: float
    end: int = 0
    whole: float = field(default=0.0, compare=False)
    full: float = field(default=-1.0, compare=False)


def request_loss(
    made: MadeSession, manner: ClientManner, preset: Preset, kind: CacheKind = "documented"
) -> RequestLoss:
    """Return the loss of a session with a preset. kind: how long the provider keeps cache entries."""
    sent = list(_requests(made, manner))
    caches = _Caches(made, manner, kind)
    direct = [caches.bill(one, one.body) for one in sent]
    plain = [one.cost for one in direct]
    theirs = accumulate(plain)
    ours, has_tools = _curated(sent, made, manner, preset, kind)
    caches = _Caches(made, manner, kind)
    tools = accumulate(_price_of_tools(sent, plain, caches, manner, has_tools)) if any(has_tools) else [0.0] * len(sent)
    most = _first_full(sent, direct)
    found, whole, full = RequestLoss(-1.0), -1.0, -1.0
    for end, (base, paid, own) in enumerate(zip(theirs, ours, tools, strict=True), start=1):
        share = (paid - max(0.0, own)) / base - 1
        if end >= most:
            full = max(full, share)
        else:
            found, whole = max(found, RequestLoss(share, end)), max(whole, paid / base - 1)
    return replace(found, whole=whole, full=full)


def _first_full(sent: Sequence[_MadeRequest], direct: Sequence[BilledRequest]) -> int:
    """Return the first end at which the client's own request may be too long for its model; else one past the last."""
    before = 0
    for end, (one, billed) in enumerate(zip(sent, direct, strict=True), start=1):
        window, feared = PRICES[one.model].window, billed.prompt + max(0, billed.prompt - before) / 3
        if feared > _LIMIT * window or billed.prompt + _ANSWER > window:
            return end
        before = billed.prompt
    return len(sent) + 1


def _price_of_tools(
    sent: Sequence[_MadeRequest],
    plain: Sequence[float],
    caches: "_Caches",
    manner: ClientManner,
    has_tools: Sequence[bool],
) -> Iterator[float]:
    """Yield what the recall tools cost in each request of an append-only client: at most two BIT for each of their tokens.

    plain: the cost of each request without the tools. has_tools: whether each request has the tools.

    If the tools lift a prompt over the cache's minimum, the extra cost of that is not included.
    """
    own = [json.dumps(definition(one, manner.api)) for one in offers(everything=False)]
    most, theirs = 2.0 * sum(map(len, own)) / manner.ratio, _tools_of(manner)
    tools = b"%s,%s]" % (theirs[:-1], ",".join(own).encode())
    for one, cost, has in zip(sent, plain, has_tools, strict=True):
        body = one.body.replace(theirs, tools, 1) if has else one.body
        yield min(most, caches.bill(one, body).cost - cost)


def _curated(
    sent: Sequence[_MadeRequest], made: MadeSession, manner: ClientManner, preset: Preset, kind: CacheKind
) -> tuple[Sequence[float], Sequence[bool]]:
    """Return the cost up to each call, with the keep-alive request that goes out if no other call follows, and whether
    each request of a known agent has recall tools that entered after a request of which nothing was cached.
    """
    chosen = PRESETS[preset]
    residency = replace(chosen.residency, arguments=chosen.masked_in(chosen.arguments))
    caches, spent, kept = _Caches(made, manner, kind), 0.0, 0.0
    costs: list[float] = []
    facts = RequestFacts(documented=kind == "documented", guarded=manner.guarded)
    tools, is_cached = offers(everything=False), False
    has_tools: list[bool] = []
    with Engine(blobs=MemoryStore(), counter=default_counter(), settings=Settings(residency)) as engine:
        for place, one in enumerate(sent):
            lasting = max(0.0, _MOST - kept) if manner.keeps else 0.0
            prepared = engine.prepare(
                one.body, manner.api, at=one.at, hint="made", offers=tools, lasting=lasting, facts=facts
            )
            if prepared.failure:
                raise RuntimeError(prepared.failure)
            billed = caches.bill(one, prepared.body)
            spent += billed.cost
            had = bool(has_tools) and has_tools[-1]
            has_tools.append(manner.known and bool(prepared.offered) and (had or not is_cached))
            is_cached = billed.read + billed.written + billed.written_1h > 0
            usage = Usage(
                billed.fresh, billed.read, billed.written + billed.written_1h, billed.written_1h, billed.output
            )
            keep = engine.observe(prepared, ClientAnswer(usage, (one.answer,))).keep
            body = None if keep is None else keepalive_body(prepared.body, manner.api, (one.answer,))
            if keep is None or body is None:
                costs.append(spent)
                continue
            is_sent = place + 1 < len(sent) and sent[place + 1].at > keep.at
            pinged = caches.of(one.model).bill(body, keep.at, 1, keeps=is_sent)
            costs.append(spent + pinged.cost)
            if is_sent:
                spent, kept = spent + pinged.cost, kept + pinged.cost
                told = Usage(pinged.fresh, pinged.read, pinged.written + pinged.written_1h, pinged.written_1h, 1)
                engine.note_keepalive(prepared, told, keep.at)
    return costs, has_tools


class _Caches:
    """The provider's caches, one for each model, which other sessions may have filled with the prompt prefix before."""

    def __init__(self, made: MadeSession, manner: ClientManner, kind: CacheKind) -> None:
        self._made, self._manner, self._kind = made, manner, kind
        self._by_model: dict[str, DocumentedCache] = {}

    def of(self, model: str) -> DocumentedCache:
        """Return the cache of a model."""
        return self._by_model.setdefault(model, DocumentedCache(model, self._manner.ratio, self._kind))

    def bill(self, one: _MadeRequest, body: bytes) -> BilledRequest:
        """Charge a request, with these bytes, and keep its cache entries."""
        if one.model not in self._by_model and self._made.warm == 1.0:
            self.of(one.model).bill(_front_of(body), one.at - 60.0, 1)
        return self.of(one.model).bill(body, one.at, one.output)


def _front_of(body: bytes) -> bytes:
    """Return the request with another first message and nothing behind, as another session begins."""
    told = json.loads(body)
    begins = [one for one in told["messages"] if one["role"] == "system"]
    return json.dumps({**told, "messages": [*begins, {"role": "user", "content": "."}]}).encode()

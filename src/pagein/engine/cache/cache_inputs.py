"""The inputs of a provider's cache from a request: prompt prefix, cache usage, the request before, and prices.

Rules of this file
------------------
1. A prompt prefix is digested: model, tools, instructions, and the settings on which a cache depends. Changes are
   journaled on the branch; a provider's cache holds nothing after the first changed part.
2. For Messages the cache holds only the prompt before a breakpoint. A request without breakpoints neither reads nor
   writes the cache; with breakpoints in tools or system prompt alone, only these are cached, and nothing of the
   conversation. Other formats and other caches need no breakpoints.
3. A change is journaled before the request: the client stops setting breakpoints, or starts again. So the same branch
   has the same prices in every process. For a client that always sets breakpoints nothing is journaled.
4. A provider that reports tokens read or written is believed: then a proxy after pagein sets breakpoints, and the cache
   takes part. If the client sets breakpoints on the prompt prefix, these are reported too; then the report counts only
   if next to nothing was paid in full.
5. A client that stopped setting breakpoints may return to an entry in the cache. Its TTL is unknown, so the longest is
   assumed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import blake2b
from math import inf
from typing import Final, Literal, TypeAlias

from pagein.engine.intake.message_chain import Transcript
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.errors import BadSetting
from pagein.model.entries import Body, EntryId, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import CacheMarksNote, PrefixDigests, SystemPromptNote, UsageNote
from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import Message, Text, Usage
from pagein.policy.economics.decision_prices import economics_of, economics_without_cache, waits_for_marks
from pagein.policy.economics.rewrite_cost import Economics
from pagein.ports import TokenCounter
from pagein.providers.prices.price_lookup import prices
from pagein.providers.prices.token_prices import Prices
from pagein.providers.wire.formats import SYSTEM_FIELDS, format_named
from pagein.providers.wire.prompt_footprint import head_footprints
from pagein.providers.wire.request_body import Envelope, model_in, same_name
from pagein.providers.wire.wire_format import WireFormat

Part: TypeAlias = Literal["model", "tools", "system", "settings", "headers", "messages"]
"""A part of a request on which a provider's cache depends."""

_SETTINGS: Final = (
    "tool_choice",
    "disable_parallel_tool_use",
    "parallel_tool_calls",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "output_config",
    "response_format",
    "text",
    "speed",
    "context_management",
)
_IN_FRONT: Final = ("tools", *SYSTEM_FIELDS)
_PARTS: Final[tuple[Part, ...]] = ("model", "tools", "system", "settings", "headers")
_NAMED: Final = b'"cache_control"'
_LONG: Final = (b'"ttl":"1h"', b'"ttl": "1h"')
_LOOKED_AT: Final = 4  # messages at the end to search for the client's last breakpoint
_FEW: Final = 64
"""Most tokens paid in full if a breakpoint is at the prompt's end."""
_MARK: Final = re.compile(rb'"cache_control"\s*:\s*\{')  # null sets no breakpoint

# --- the prompt prefix ---

NO_HEAD: Final = PrefixDigests()


@dataclass(frozen=True, slots=True)
class _SentFronts:
    """The prompt prefixes of a branch.

    latest: the time of the last request with each of the earlier ones, in seconds since 1970; -inf without one.
    current: the prompt prefix of the last request; None before the first.
    sent: the time of the last request with it.
    prompt: tokens of the last request, as the provider reported them; 0 before the first report.
    """

    latest: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    current: tuple[str, ...] | None = None
    sent: float = -inf
    prompt: int = 0

    def sent_with(self, front: tuple[str, ...]) -> float:
        """Return the time of the last request with a prompt prefix; -inf without one."""
        return self.sent if front == self.current else self.latest[front]


class Fronts:
    """The prompt prefixes of each branch so far: after a new prefix the cache holds nothing.

    The cache may still hold an earlier prefix, so a client can return to it.
    """

    def __init__(self, journal: Journal[State]) -> None:
        self._seen: Fold[_SentFronts] = Fold(
            journal, _SentFronts(), _add_front, "fronts", takes=(PrefixDigests, RequestSent, UsageNote, MessageEntry)
        )

    def is_new(self, parent: EntryId | None, head: PrefixDigests, form: WireFormat) -> bool:
        """Return whether no earlier request of this branch had this prompt prefix."""
        seen = self._seen[parent].latest
        if not form.cache.depends_on_settings:
            return bool(seen) and head.conversation not in {one[1:3] for one in seen if one[0] == head.model}
        return bool(seen) and _front(head) not in seen

    def may_return(self, parent: EntryId | None, head: PrefixDigests, at: float | None) -> bool:
        """Return whether the cache may hold a request with another prompt prefix, to which the client can go back."""
        prices = prices_for(head.model, at)
        lasts = inf if prices is None else max(prices.cache.ttl, prices.cache.long_ttl) + prices.cache.grace
        seen = self._seen[parent]
        others = (seen.sent_with(front) for front in seen.latest if front != _front(head))
        return any(sent > -inf and (at is None or at - sent <= lasts) for sent in others)

    def last_prompt(self, parent: EntryId | None) -> int:
        """Return the tokens of the branch's last request, as the provider reported them; 0 before the first report."""
        return self._seen[parent].prompt


def changed_parts(before: PrefixDigests, head: PrefixDigests) -> tuple[Part, ...]:
    """Return the parts in which two prompt prefixes differ."""
    return tuple(part for part in _PARTS if getattr(before, part) != getattr(head, part))


def _front(head: PrefixDigests) -> tuple[str, ...]:
    return head.model, head.tools, head.system, head.settings


def is_switched(before: PrefixDigests, head: PrefixDigests) -> bool:
    """Return whether two successive requests use different caches of Anthropic."""
    return before != NO_HEAD and _front(before) != _front(head)


def _add_front(seen: _SentFronts, body: Body) -> _SentFronts:
    match body:
        case NoteEntry(note=PrefixDigests() as head):
            front, latest = _front(head), dict(seen.latest)
            if seen.current is not None:
                latest[seen.current] = seen.sent
            return replace(seen, latest={front: -inf, **latest}, current=front, sent=latest.get(front, -inf))
        case RequestSent(moment=moment):
            return replace(seen, sent=inf if moment is None else max(seen.sent, moment))
        case MessageEntry(message=Message(usage=Usage() as usage)) | NoteEntry(note=UsageNote(usage=usage)):
            return replace(seen, prompt=usage.prompt)
        case _:
            return seen


def head_of(envelope: Envelope, script: Transcript, context: str = "") -> PrefixDigests:
    """Return the digests of the prompt prefix in this request.

    context: the caller's own part, as in `Engine.prepare`.
    """
    fields = envelope.fields
    model = model_in(envelope) or ""
    settings = b",".join(encode_json(name) + b":" + fields[name] for name in _SETTINGS if name in fields)
    instructions = [fields[name] for name in format_named(envelope.api).requests.system_fields if name in fields]
    system = [*instructions, *(item.raw for item in script.items[: script.head])]
    return PrefixDigests(
        # journaled as text, which cannot hold half of a surrogate pair
        model.encode("utf-8", "replace").decode(),
        _digest([fields["tools"]] if "tools" in fields else []),
        _digest(system),
        _digest([b"{%s}" % settings]) if settings else "",
        _digest([encode_json(context)]) if context else "",
    )


def notes_of_change(
    before: PrefixDigests, head: PrefixDigests, envelope: Envelope, script: Transcript, counter: TokenCounter
) -> Iterator[PrefixDigests | SystemPromptNote]:
    """Yield the facts to journal where a request's prompt prefix differs from the last one's."""
    fields = {name: decode_json(envelope.fields[name]) for name in _IN_FRONT if name in envelope.fields}
    yield replace(head, tokens=round(sum(one.tokens for one in head_footprints(fields, counter))))
    if before.system != head.system and (text := _system_text(envelope, script)):
        yield SystemPromptNote(text)


def _system_text(envelope: Envelope, script: Transcript) -> str:
    """Return the texts of a request's system prompt: in fields of its own, and in the first messages; "" if absent."""
    form = format_named(envelope.api).requests
    fields = {name: decode_json(bytes(envelope.fields[name])) for name in form.system_fields if name in envelope.fields}
    values = (decode_json(bytes(item.raw)) for item in script.items[: script.head])
    leading = (form.message(value, 0) for value in values if isinstance(value, dict))
    prompts = (*form.system(fields), *leading)
    return "\n".join(block.text for one in prompts for block in one.blocks if isinstance(block, Text))


def _digest(raws: list[bytes]) -> str:
    name = blake2b(digest_size=8)
    for raw in raws:
        name.update(_digest_of(raw))
    return name.hexdigest() if raws else ""


@lru_cache(maxsize=64)
def _digest_of(raw: bytes) -> bytes:
    """Digest tools and prompts, which are large and the same from call to call."""
    return same_name(decode_json(raw))


# --- the use of the cache, and the prices ---


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The cache use of a branch.

    marks: True if the client set breakpoints in the last request's conversation.
    latest: time of the last request that the cache may hold, in seconds since 1970; infinite if unknown.
    told: True if the provider reported cached tokens without a breakpoint of the client.
    front: True if the client set breakpoints on the prompt prefix alone.
    """

    marks: bool = True
    latest: float = -inf
    told: bool = False
    front: bool = False

    def holds(self, at: float | None, lifetime: float) -> bool:
        """Return whether the cache may hold anything of the branch at this time."""
        return self.latest > -inf and (at is None or at - self.latest <= lifetime)


FROM_THE_START: Final = CacheUse()


def has_marks(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the conversation of a request may be cached: False only for Messages without a breakpoint."""
    if not script.format.cache.needs_breakpoints or bytes(fields.get("cache_control", b"")).lstrip().startswith(b"{"):
        return True
    # a client's last breakpoint is usually near the end
    return any(_MARK.search(item.raw) for item in reversed(script.items[script.head :]))


def marks_front(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the prompt prefix of a request has a breakpoint."""
    front = (*(fields[name] for name in ("system", "tools") if name in fields), *script.raws[: script.head])
    return any(_MARK.search(part) for part in front)


def step(caching: CacheUse, body: Body) -> CacheUse:
    """Return the cache use after a further entry."""
    match body:
        case NoteEntry(note=CacheMarksNote(marks="front")):
            return replace(caching, marks=False, front=True)
        case NoteEntry(note=CacheMarksNote(marks=marks)):
            return replace(caching, marks=marks == "marked", front=False, told=caching.told and not caching.front)
        case RequestSent() if caching.marks:
            return replace(caching, latest=inf if body.moment is None else max(caching.latest, body.moment))
        case _ if caching.marks or (caching.told and not caching.front):
            return caching
        case MessageEntry(message=Message(usage=Usage() as usage)) | NoteEntry(note=UsageNote(usage=usage)):
            is_cached = usage.read + usage.written > 0
            return replace(caching, told=not caching.front or usage.fresh <= _FEW) if is_cached else caching
        case _:
            return caching


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """An answered request.

    usage: as the provider reported it.
    answer: the provider's name of the answer; "" if it was not journaled.
    head: digests of the prompt prefix.
    at: time of the request, in seconds since 1970; None if unknown.
    """

    usage: Usage
    answer: str
    head: PrefixDigests
    at: float | None


@dataclass(frozen=True, slots=True)
class RequestTrail:
    """The last request of a branch, and the last that was answered; None before the first.

    is_open: whether no usage was reported for the last request yet.
    may_be_cached: whether the provider may have cached anything of the branch: false if every request but the last was
        answered, and none read or wrote the cache.
    smallest: tokens of the smallest prompt reported with these tools and instructions, 0 without one: they have no more.
    """

    head: PrefixDigests
    at: float | None = None
    answered: AnsweredRequest | None = None
    is_open: bool = False
    may_be_cached: bool = False
    smallest: int = 0


_UNSENT: Final = RequestTrail(PrefixDigests())


def answered_requests(journal: Journal[State]) -> Fold[RequestTrail]:
    """Return the trail at each entry of a journal: for a call whose predecessor another process sent."""
    return Fold(journal, _UNSENT, _follow, "answered", takes=(PrefixDigests, RequestSent, UsageNote))


def _follow(trail: RequestTrail, body: Body) -> RequestTrail:
    match body:
        case NoteEntry(note=PrefixDigests() as head):
            smallest = trail.smallest if head.conversation == trail.head.conversation else 0
            return replace(trail, head=head, smallest=smallest)
        case RequestSent(moment=at):
            return replace(trail, at=at, is_open=True, may_be_cached=trail.may_be_cached or trail.is_open)
        case NoteEntry(note=UsageNote(usage=usage, answer=answer)):
            answered = AnsweredRequest(usage, answer, trail.head, trail.at)
            may_be_cached = trail.may_be_cached or usage.read + usage.written > 0
            smallest = min(usage.prompt, trail.smallest or usage.prompt)
            return replace(trail, answered=answered, is_open=False, may_be_cached=may_be_cached, smallest=smallest)
        case _:
            return trail


def economics_for(model: str, fields: Mapping[str, bytes], script: Transcript, at: float | None) -> Economics | None:
    """Return the prices of a request.

    None for a model without a price.
    """
    day = None if at is None else datetime.fromtimestamp(at, UTC).date()
    found = _economics(model, day, asks_long(fields, script)) if model else None
    if found is None or not found.at_marks or marks_front(fields, script):
        return found
    return replace(found, marks_front=False)


def prices_without_cache(model: str, at: float | None, caching: CacheUse, *, front: bool = False) -> Economics | None:
    """Return the prices of a request without breakpoints in its conversation.

    None if the cache takes part anyway.

    caching: the cache use of the branch.
    front: True if the prompt prefix has breakpoints.
    """
    found = prices_for(model, at)
    if found is None or caching.told or not waits_for_marks(found):
        return None
    held = caching.holds(at, found.cache.long_ttl + found.cache.grace)
    return economics_without_cache(economics_of(found, long=True), held=held, front=front)


def prices_for(model: str, at: float | None) -> Prices | None:
    """Return the price row of a model on a day.

    None for a model without a price.
    """
    return _prices(model, None if at is None else datetime.fromtimestamp(at, UTC).date()) if model else None


def asks_long(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the client asks the cache to keep the end of a request for an hour."""
    marked = [item.raw for item in script.items[-_LOOKED_AT:] if _NAMED in item.raw]
    last = marked[-1] if marked else fields.get("cache_control", b"")
    return any(one in last for one in _LONG)


@lru_cache(maxsize=256)
def _prices(model: str, day: date | None) -> Prices | None:
    try:
        return prices(model, day)
    except BadSetting:
        return None


@lru_cache(maxsize=256)
def _economics(model: str, day: date | None, long: bool) -> Economics | None:  # noqa: FBT001 -- a cache key
    try:
        return economics_of(prices(model, day), long=long)
    except BadSetting:
        return None

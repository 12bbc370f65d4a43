"""What is sent when something of ours failed (law 7): pure, and never an exception.

Rules of this file
------------------
1. First the rendering that was sent last with what the client said since; then the original without the thinking that is no longer
   valid; then the original, which is what the agent would have sent without us.
2. A candidate is taken where the provider would refuse it for nothing that it would not refuse the original for.
3. Whatever goes wrong in here passes the candidate over. The reasons are reported, the first being what failed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from pagein.errors import HostError
from pagein.model.codec import decode_json
from pagein.model.messages import Message
from pagein.providers.marking import Wishes, changes, with_changes
from pagein.providers.thinking import Stale, body_without, stale, stale_in_body, without
from pagein.providers.validity import (
    ANYBODY,
    NOTHING_RECEIVED,
    Api,
    Received,
    Target,
    Violation,
    check_body,
    check_messages,
)
from pagein.providers.wire import WireRequest
from pagein.providers.wire.marked import with_marks

Used: TypeAlias = Literal["last", "cleaned", "original"]
T = TypeVar("T")

_MARK_RULES: Final = frozenset({"M14", "M15", "M16", "M17"})
_BINDING_RULES: Final = frozenset({"T2", "T6"})
_NO_MARKS_OF_THE_CLIENT: Final = Wishes(client="replaced")


@dataclass(frozen=True, slots=True)
class LastSent(Generic[T]):
    """The messages of the request that was answered last on this branch, and how many of the client's messages they stand for."""

    messages: Sequence[T]
    said: int


@dataclass(frozen=True, slots=True)
class Fallback(Generic[T]):
    """The request to send. reasons: what failed, and why each better candidate was passed over.

    violations: what the provider may refuse it for all the same; then it would have refused the agent's own.
    """

    request: T
    used: Used
    reasons: tuple[str, ...]
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Whom the request goes to (None: the model it names), and what is known of the answers that it holds."""

    whom: Target | None = None
    received: Received = NOTHING_RECEIVED


NO_FACTS: Final = Facts()


def fallback_bytes(
    failure: str, original: WireRequest, last: LastSent[bytes] | None = None, facts: Facts = NO_FACTS
) -> Fallback[WireRequest]:
    """The request that came over the wire, as the bytes to send it on with."""

    def joined(sent: LastSent[bytes]) -> WireRequest:
        items = (*sent.messages, *_since(original.items, sent))
        made = replace(original, items=items, changed=True)
        if _breaks_marks(check(made)):
            made = with_marks(made, changes(_values(made), original.api, _NO_MARKS_OF_THE_CLIENT))
        return made

    def check(request: WireRequest) -> list[Violation]:
        body = request.body()
        return check_body(_values(request), request.api, facts.whom, facts.received, size=len(body))

    def cleaned() -> WireRequest | None:
        found = _stale_in(_values(original), original.api, facts)
        return original.without_thinking(found.places) if _unstuck(found) else None

    return _chosen(failure, original, _candidates(last, joined, cleaned), check)


def fallback_body(
    failure: str, original: Mapping[str, Any], api: Api, last: LastSent[Any] | None = None, facts: Facts = NO_FACTS
) -> Fallback[Mapping[str, Any]]:
    """The same for a body of plain values."""
    key = "input" if api == "openai_responses" else "messages"

    def joined(sent: LastSent[Any]) -> Mapping[str, Any]:
        made = {**original, key: [*sent.messages, *_since(original[key], sent)]}
        if _breaks_marks(check(made)):
            made = with_changes(made, changes(made, api, _NO_MARKS_OF_THE_CLIENT))
        return made

    def check(request: Mapping[str, Any]) -> list[Violation]:
        return check_body(request, api, facts.whom, facts.received)

    def cleaned() -> Mapping[str, Any] | None:
        found = _stale_in(original, api, facts)
        return body_without(original, found.places) if _unstuck(found) else None

    return _chosen(failure, original, _candidates(last, joined, cleaned), check)


def fallback_messages(
    failure: str,
    original: Sequence[Message],
    last: LastSent[Message] | None = None,
    facts: Facts = NO_FACTS,
    api: Api = "anthropic",
) -> Fallback[Sequence[Message]]:
    """The same for host-neutral messages."""
    whom = facts.whom or ANYBODY

    def joined(sent: LastSent[Message]) -> Sequence[Message]:
        return [*sent.messages, *_since(original, sent)]

    def check(request: Sequence[Message]) -> list[Violation]:
        return check_messages(request, api, whom, facts.received)

    def cleaned() -> Sequence[Message] | None:
        found = stale(original, facts.received, whom)
        return without(original, found.places) if _unstuck(found) else None

    return _chosen(failure, original, _candidates(last, joined, cleaned), check)


_Candidates: TypeAlias = list[tuple[Used, Callable[[], T | None]]]


def _candidates(
    last: "LastSent[Any] | None", joined: Callable[[LastSent[Any]], T], cleaned: Callable[[], T | None]
) -> "_Candidates[T]":
    found: _Candidates[T] = [("cleaned", cleaned)]
    if last is not None:
        found.insert(0, ("last", lambda: joined(last)))
    return found


def _chosen(
    failure: str, original: T, candidates: "_Candidates[T]", check: Callable[[T], list[Violation]]
) -> Fallback[T]:
    reasons = [failure]
    own, problem = _guarded(partial(check, original))
    if problem:
        reasons.append(f"the original could not be checked: {problem}")
    allowed = {one.rule for one in own or ()} - _BINDING_RULES
    for used, build in candidates:
        made, problem = _guarded(build)
        if made is None:
            if problem:
                reasons.append(f"{_NAMES[used]}: {problem}")
            continue
        broken, problem = _guarded(partial(check, made))
        worse = sorted({one.rule for one in broken or ()} - allowed)
        if broken is not None and not worse:
            return Fallback(made, used, tuple(reasons), tuple(broken))
        reasons.append(f"{_NAMES[used]}: {problem or 'it would be refused by ' + ', '.join(worse)}")
    return Fallback(original, "original", tuple(reasons), tuple(own or ()))


_NAMES: Final[Mapping[Used, str]] = {
    "last": "the last rendering with the client's news was not sent",
    "cleaned": "the original without stale thinking was not sent",
    "original": "the original",
}


def _guarded(step: Callable[[], T]) -> tuple[T | None, str]:
    """What a step gives, or why it gives nothing."""
    try:
        return step(), ""
    except Exception as problem:  # noqa: BLE001 -- law 7: whatever fails in here is ours, and the agent must not pay for it
        return None, f"{type(problem).__name__}: {problem}"


def _since(said: Sequence[T], sent: LastSent[Any]) -> Sequence[T]:
    if len(said) < sent.said:
        raise HostError(f"the client says {len(said)} messages, fewer than the {sent.said} that were rendered")
    return said[sent.said :]


def _breaks_marks(violations: Sequence[Violation]) -> bool:
    return not _MARK_RULES.isdisjoint(one.rule for one in violations)


def _stale_in(body: Mapping[str, Any], api: Api, facts: Facts) -> Stale:
    return stale_in_body(body, facts.received, facts.whom) if api == "anthropic" else Stale()


def _unstuck(found: Stale) -> bool:
    """Whether there is stale thinking, and it can go."""
    if found.stuck:
        raise HostError("stale thinking stands in the message whose calls are being answered")
    return bool(found.places)


def _values(request: WireRequest) -> Mapping[str, Any]:
    value = decode_json(request.body())
    return value if isinstance(value, dict) else {}

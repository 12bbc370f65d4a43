"""The cache doctor: explain why a call read less from the cache than the previous call had left there.

A pure function of facts.

Rules of this file
------------------
1. The expected read is the prompt of the previous call on the same branch (`expected`). A call that reads as much, or
   falls short by less than the error of the estimates, is well.
2. The simulator knows breakpoints, TTLs, look-back and changes of the prompt. If the provider read as much as the
   simulator (`predicted`), the simulator's reason is the explanation.
3. If the provider read even less, the provider is responsible only as far as earlier answers prove the size of the
   cached prefix (`proven`). The rest is an estimate, and reported as an error of the estimate. Of a change and a loss,
   the larger is reported.
4. The first cause in the order of the prompt counts: model, tools, instructions, settings and headers, messages.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.caches.cache_values import Reason

Who: TypeAlias = Literal["client", "us", "provider", "nobody"]
Cause: TypeAlias = Literal[
    "none",
    "first",
    "model",
    "tools",
    "system",
    "settings",
    "headers",
    "messages",
    "expired",
    "unanswered",
    "no marks",
    "below minimum",
    "look-back",
    "no cache",
    "thinking",
    "estimate",
    "unexplained",
]
"""Why a cache was not read.

`none`: the cache was read. `first`: no previous call. `unanswered`: the previous call had no answer yet. `estimate`:
the expectation was larger than the proven size of the cache.
"""

_PARTS: Final[tuple[Cause, ...]] = ("model", "tools", "system", "settings", "headers")
_OF_REASON: Final[dict[Reason, tuple[Cause, Who]]] = {
    "unanswered": ("unanswered", "client"),
    "expired": ("expired", "nobody"),
    "no_marks": ("no marks", "client"),
    "below_minimum": ("below minimum", "nobody"),
    "no_cache": ("no cache", "provider"),
}
_OFF: Final = 0.02  # error of the block sizes, as a share of the prompt
_LEAST_OFF: Final = 256.0


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The known facts of one call. Sizes in the provider's tokens, times in seconds.

    prompt, read: as the provider reported them.
    expected: size of the previous call's prompt up to its last breakpoint; None without a previous call.
    predicted: tokens that the simulator reads.
    reason: the simulator's reason for this number.
    changed: parts before the messages that differ from the previous call, in any order.
    place: first message that differs; None if the call extends the previous one.
    by_us: whether pagein changed that message.
    idle: time since the previous call; None if not known.
    blocks: number of blocks after the previous call's cached prefix; None if not counted.
    proven: the part of `predicted` that is proven by sizes reported by the provider; None without reported sizes. An
        estimate is then accepted as evidence, except for a change made by pagein.
    drops_thinking: whether the model drops the thinking of the previous turn, because a new turn began.
    """

    prompt: float
    read: float
    expected: float | None
    predicted: float
    reason: Reason
    rules: CacheRules
    changed: tuple[str, ...] = ()
    place: int | None = None
    by_us: bool = False
    idle: float | None = None
    blocks: int | None = None
    proven: float | None = None
    drops_thinking: bool = False

    @property
    def lost(self) -> float:
        """Tokens certainly in the provider's cache, but not read."""
        proven = self.proven if self.proven is not None else 0.0 if self.by_us else self.predicted
        return min(proven, self.predicted) - self.read


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a call read less from the cache than possible.

    shortfall: number of tokens missed.
    place: the first message that changed, from 0.
    """

    cause: Cause
    who: Who
    shortfall: int = 0
    place: int | None = None

    @property
    def is_miss(self) -> bool:
        """Whether tokens were missed that a call before had left in the cache."""
        return self.shortfall > 0 and self.cause not in ("none", "first")

    @property
    def words(self) -> str:
        """The diagnosis as a sentence."""
        sentence = _WORDS[self.cause]
        if self.cause != "messages":
            return sentence
        return f"message {self.place} is not what it was: changed by {'pagein' if self.who == 'us' else 'the client'}"


WELL: Final = Diagnosis("none", "nobody")

_WORDS: Final[dict[Cause, str]] = {
    "none": "the cache was read as expected",
    "first": "the first call of its conversation",
    "model": "another model was asked",
    "tools": "the tools changed",
    "system": "the instructions changed",
    "settings": "settings that the prompt depends on changed",
    "headers": "headers that the prompt depends on changed",
    "messages": "a message changed",
    "expired": "the cache outlived its lifetime between the calls",
    "unanswered": "the call before had not been answered yet",
    "no marks": "nothing was marked to be cached",
    "below minimum": "the prompt is shorter than what is cached",
    "look-back": "too many blocks since the last mark: the entry was not looked for",
    "no cache": "the model has no cache",
    "thinking": "a new turn began, and the model drops what it thought before: the prompt is another one from there on",
    "estimate": "pagein expected more than is known to have been in the cache: an error of its estimate",
    "unexplained": "the provider no longer had what it was given",
}


def diagnose(facts: CallFacts) -> Diagnosis:
    """Diagnose the cache read of a call."""
    if facts.expected is None:
        return Diagnosis("first", "nobody")
    off = max(_LEAST_OFF, _OFF * facts.prompt)
    is_changed = bool(facts.changed) or facts.place is not None
    shortfall = round((facts.expected if is_changed else min(facts.expected, facts.prompt)) - facts.read)
    if shortfall <= off:
        return WELL
    if facts.drops_thinking and not is_changed:
        return Diagnosis("thinking", "nobody", shortfall)
    if facts.lost > off and 2 * facts.lost >= shortfall:
        return Diagnosis("unexplained", "provider", shortfall)
    if not is_changed and facts.predicted - facts.read > off:
        return Diagnosis("estimate", "nobody", shortfall)
    cause, who = _cause(facts)
    return Diagnosis(cause, who, shortfall, facts.place if cause == "messages" else None)


def _cause(facts: CallFacts) -> tuple[Cause, Who]:
    """The simulator's reason for the limit of the read, and who caused it."""
    part = next((part for part in _PARTS if part in facts.changed), None)
    if part is not None:
        return part, "client"
    if facts.place is not None:
        return "messages", "us" if facts.by_us else "client"
    if facts.reason in _OF_REASON:
        return _OF_REASON[facts.reason]
    if facts.rules.lookback is not None and facts.blocks is not None and facts.blocks >= facts.rules.lookback:
        return "look-back", "client"
    return "unexplained", "provider"

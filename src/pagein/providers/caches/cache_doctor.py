"""The cache doctor: why a call read less from the provider's cache than the call before it left there. Pure: facts in, explanation out.

Rules of this file
------------------
1. What was to be read is what the call before on the same branch held (`expected`). A call that reads as much, or short of it by
   no more than estimates are off, is well.
2. The simulator knows marks, lifetimes, look-back and changes of the prompt. Where the provider read what it says (`predicted`),
   the reason it has is the explanation.
3. Where the provider read less than even that, it is the provider's doing only as far as earlier answers prove the size of what was
   there (`proven`). The rest is an estimate, and its error is told as that. Of a change and a loss the greater one is told.
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
"""Why a cache was not read. `none`: it was; `first`: there was no call before; `unanswered`: the call before had no answer yet;
`estimate`: more was expected than is known to have been there.
"""

_PARTS: Final[tuple[Cause, ...]] = ("model", "tools", "system", "settings", "headers")
_OF_REASON: Final[dict[Reason, tuple[Cause, Who]]] = {
    "unanswered": ("unanswered", "client"),
    "expired": ("expired", "nobody"),
    "no_marks": ("no marks", "client"),
    "below_minimum": ("below minimum", "nobody"),
    "no_cache": ("no cache", "provider"),
}
_OFF: Final = 0.02  # how far sizes of blocks may be off, as a share of the prompt
_LEAST_OFF: Final = 256.0


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is known of one call. Sizes in the provider's tokens, times in seconds.

    prompt, read: as the provider reported them. expected: what the call before held up to its last mark, None where there was
    none. predicted: what the simulator says is read, and reason: why that much. proven: how much of that sizes prove which the
    provider itself told; None where none did: then an estimate is good enough, but not to clear ourselves.
    drops_thinking: whether the model drops what it thought in the turn before, now that a new one began.
    changed: parts in front of the messages that are not what they were, in any order. place: the first message that is not what it
    was, None where the call extends the one before; by_us: whether we changed it. idle: since the call before, None where not known.
    blocks: how many stand behind what the call before left in the cache, None where not counted.
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
        """What the provider had for sure and did not read."""
        proven = self.proven if self.proven is not None else 0.0 if self.by_us else self.predicted
        return min(proven, self.predicted) - self.read


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a call read less than it might have. shortfall: by how many tokens; place: the first message that changed, from 0."""

    cause: Cause
    who: Who
    shortfall: int = 0
    place: int | None = None

    @property
    def words(self) -> str:
        """One sentence of it."""
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
    """Why this call read what it did."""
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
    """Why the simulator says that no more is read, and who had it so."""
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

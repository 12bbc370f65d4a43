"""Choose the tools of a client that stay out of the prompt until the model searches for them, at the prices of a model.

Evidence is what earlier sessions offered and used. A tool that any of them used is never deferred. How many of the others
the next session uses is estimated as by Good and Turing: as many as were used in just one session, for each session that
was seen. A use of a deferred tool costs a search: the model writes it, reads its prompt once more, and the definitions
that it found stand in the conversation. What is spared is the tool's definition at every call of a session as long as the
earlier ones.

Where a session was there a moment ago, the cache holds the front of its prompt. The same tools as in that session then
spare the writing of the front; other tools must gain more than that, or are not chosen at all (`cold`): a session that ends
soon would not gain it.

Unit of money: one uncached input token (BIT). Sizes are in tokens.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal, TypeAlias, get_args

from pagein.policy.economics.rewrite_cost import Economics

FloorPaging: TypeAlias = Literal["never", "cold", "always"]
"""When tools are deferred: never, where no cache may hold the front of an earlier session's prompt, or where it is expected to pay."""
FLOOR_PAGING: Final[tuple[FloorPaging, ...]] = get_args(FloorPaging)
LEAST_CALLS: Final = 20
"""Calls of earlier sessions without a use, below which a tool is not deferred."""
_MOST_LIKELY: Final = 0.5  # of the chances that a tool is used
_FOUND: Final = 3  # tools that a search finds: 3 to 5, most of them near in size to the one that is meant
_WRITTEN: Final = 120.0  # tokens in which the model says that it searches


@dataclass(frozen=True, slots=True)
class SessionTools:
    """The tools of a session.

    offered: names of the tools that the client offered.
    used: names of the tools that the model called.
    calls: number of model calls.
    prompt: tokens of an average prompt.
    deferred: names of the tools that the session deferred.
    front: tokens of the first prompt, which later sessions share for the most part.
    sent: time of the last request, seconds since 1970; None if unknown.
    """

    offered: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    calls: int = 0
    prompt: float = 0.0
    deferred: frozenset[str] = frozenset()
    front: float = 0.0
    sent: float | None = None


@dataclass(frozen=True, slots=True)
class ToolSize:
    """A tool that may be deferred, with the tokens of its definition."""

    name: str
    tokens: float


def deferred_tools(
    tools: Sequence[ToolSize],
    sessions: Sequence[SessionTools],
    economics: Economics,
    search: float,
    now: float | None = None,
    *,
    keeps_front: bool = False,
) -> tuple[str, ...]:
    """Return the names of the tools to defer, in the given order; empty if deferral does not pay as a whole.

    tools: the tools that may be deferred, used ones too.
    search: tokens of the tool that searches.
    now: time of the request, seconds since 1970; None if unknown.
    keeps_front: whether a session that begins while the cache may hold an earlier front defers what that session deferred.
    """
    names = frozenset(one.name for one in tools)
    warm = [one for one in sessions if names <= one.offered and _is_warm(one, economics, now)]
    if keeps_front and warm:
        latest = max(warm, key=lambda one: one.sent or 0.0).deferred
        return tuple(one.name for one in tools if one.name in latest) if latest <= names else ()
    gains = _gains(tools, sessions, economics)
    carried = search * _carrying(economics, _calls([one for one in sessions if one.calls])) if gains else 0.0

    def gain(names: Collection[str]) -> float:
        return sum(gains[name] for name in names) - (carried if names else 0.0)

    best = max([frozenset(name for name in gains if gains[name] > 0.0), frozenset[str]()], key=gain)
    most = gain(best)
    for one in warm:
        if one.deferred <= gains.keys():
            kept = gain(one.deferred) + (economics.write - economics.read) * one.front
            if kept > most:
                best, most = one.deferred, kept
    return tuple(one.name for one in tools if one.name in best)


def _is_warm(session: SessionTools, economics: Economics, now: float | None) -> bool:
    """Return whether the cache may hold the front of a session's prompt."""
    return now is not None and session.sent is not None and abs(now - session.sent) <= economics.lifetime


def _gains(tools: Sequence[ToolSize], sessions: Sequence[SessionTools], economics: Economics) -> Mapping[str, float]:
    """Return the expected saving from deferring each tool that enough calls did not use."""
    uses = Counter(name for one in sessions for name in one.used)
    seen = {one.name: [each for each in sessions if one.name in each.offered and each.calls] for one in tools}
    unused = [one for one in tools if not uses[one.name] and sum(each.calls for each in seen[one.name]) >= LEAST_CALLS]
    once = sum(uses[one.name] == 1 for one in tools)
    mean = sum(one.tokens for one in tools) / max(1, len(tools))
    return {
        one.name: _gain(
            one,
            seen[one.name],
            economics,
            min(_MOST_LIKELY, (once + 0.5) / len(seen[one.name]) / len(unused)),
            mean,
        )
        for one in unused
    }


def _gain(tool: ToolSize, seen: Sequence[SessionTools], economics: Economics, chance: float, mean: float) -> float:
    """Return the expected saving from deferring a tool in a session.

    seen: the sessions that were offered it.
    chance: of a use in the session.
    mean: tokens of an average tool.
    """
    calls, prompt = _calls(seen), sum(one.prompt for one in seen) / len(seen)
    searching = economics.output * _WRITTEN + economics.read * prompt
    standing = (tool.tokens + (_FOUND - 1) * mean) * (economics.write + economics.read * calls / 2)
    return tool.tokens * _carrying(economics, calls) - chance * (searching + standing)


def _carrying(economics: Economics, calls: float) -> float:
    """Return the cost of a token in front of a session's prompt: written once, then read."""
    return economics.write + economics.read * (calls - 1)


def _calls(sessions: Sequence[SessionTools]) -> float:
    return float(median(one.calls for one in sessions))

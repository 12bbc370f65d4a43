"""Randomly generated and randomly changed sessions, for an adversary to search.

A session is a plain value, so a bad one can be printed, kept and changed.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["run", "fail", "read", "edit", "write"]

CHARGED: Final = (
    "generic:r=.1,w=1.25,min=0",
    "generic:r=.1,w=1.25",
    "generic:r=.05,w=1.25,min=1024",
    "generic:r=.3,w=1.25,out=1,min=0",
    "generic:r=.5,w=2,w1h=4,min=0",
    "generic:r=.02,w=1,w1h=1.2,out=0,min=0",
    "generic:cache=none",
    "claude-opus-4-6",
    "claude-sonnet-4-5",
    "claude-haiku-5-5",
    "gpt-5.1",
    "gpt-5.5",
    "gpt-5.6-sol",
    "gemini-2.5-pro",
    "deepseek-v4-pro",
    "self-hosted",
)
"""The prices of drawn sessions: each kind of cache, dear and cheap reads, price cliffs, peak hours."""

_LONGEST: Final = 120
_KINDS: Final[tuple[Kind, ...]] = ("run", "run", "run", "fail", "read", "read", "edit", "write")


@dataclass(frozen=True, slots=True)
class MadeResult:
    """A tool's result or, for a writing tool, its input: the size in tokens, and the file."""

    kind: Kind
    tokens: int
    file: int = 0


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One model call, with the results of its tools.

    idle: time before the request, seconds.
    words: size of a user message before the call, tokens; 0: no message.
    thought: time until the model answered, seconds.
    output: size of the answer, tokens.
    took: time until the tools answered, seconds.
    hidden: tokens that entered the prompt unseen; negative: tokens that left it.
    other: whether another model answered.
    compacts: whether the host compacted before the call.
    """

    results: tuple[MadeResult, ...] = ()
    idle: float = 0.0
    words: int = 0
    thought: float = 1.0
    output: int = 50
    took: float = 1.0
    hidden: int = 0
    other: bool = False
    compacts: bool = False


@dataclass(frozen=True, slots=True)
class MadeSession:
    """A generated session.

    hour: whether the host asks for a cache TTL of one hour.
    front: size of the prompt prefix, tokens.
    warm: share of the prefix kept warm by other sessions.
    """

    charged: str
    hour: bool
    is_sub: bool
    front: int
    warm: float
    steps: tuple[MadeCall, ...]


# ── drawn and changed ──────────────────────────────────────────────────────


def random_session(chance: random.Random) -> MadeSession:
    """Return a random session."""
    length = min(_LONGEST, 1 + int(chance.expovariate(1 / chance.choice((3, 8, 20)))))
    habit = _habit(chance)
    return MadeSession(
        charged=chance.choice(CHARGED),
        hour=chance.random() < 0.5,  # noqa: PLR2004 -- a coin
        is_sub=chance.random() < 0.2,  # noqa: PLR2004 -- one in five
        front=_size(chance, 300, 40_000),
        warm=chance.choice((0.0, 0.0, 0.5, 1.0)),
        steps=tuple(_step(chance, habit) for _ in range(length)),
    )


@dataclass(frozen=True, slots=True)
class _Habit:
    """The common traits of the steps of a session: frequencies of events, and sizes of results."""

    sizes: tuple[int, int]
    pauses: float
    slow: float
    odd: float


def _habit(chance: random.Random) -> _Habit:
    low = _size(chance, 20, 2000)
    return _Habit(
        (low, _size(chance, low, 12_000)),
        chance.choice((0.0, 0.1, 0.4)),
        chance.choice((0.0, 0.0, 0.1)),
        chance.choice((0.0, 0.02, 0.15)),
    )


def _step(chance: random.Random, habit: _Habit) -> MadeCall:
    spoken = chance.random() < 0.3  # noqa: PLR2004
    count = 0 if chance.random() < 0.15 else chance.choice((1, 1, 1, 2, 4))  # noqa: PLR2004

    def odd() -> bool:
        return chance.random() < habit.odd

    return MadeCall(
        results=tuple(_result(chance, habit) for _ in range(count)),
        idle=_time(chance, habit.pauses) if spoken else chance.choice((0.0, 0.0, 2.0)),
        words=_size(chance, 5, 3000) if spoken else 0,
        thought=_time(chance, habit.slow),
        output=_size(chance, 5, 4000),
        took=_time(chance, habit.pauses / 3),
        hidden=chance.choice((0, 0, 30, _size(chance, 30, 6000), -_size(chance, 30, 3000) if odd() else 0)),
        other=odd(),
        compacts=odd(),
    )


def _result(chance: random.Random, habit: _Habit) -> MadeResult:
    return MadeResult(chance.choice(_KINDS), _size(chance, *habit.sizes), chance.randrange(4))


def _size(chance: random.Random, low: int, high: int) -> int:
    """Return a size between these bounds, every order of magnitude equally likely."""
    return round(low * math.exp(chance.random() * math.log(high / low)))


def _time(chance: random.Random, slow: float) -> float:
    """Return seconds, mostly near the TTLs of caches."""
    if chance.random() >= slow:
        return chance.choice((0.0, 1.0, 8.0, 40.0))
    near = chance.choice((280.0, 300.0, 320.0, 600.0, 1800.0, 3600.0, 3880.0))
    return max(0.0, chance.choice((near, near + chance.choice((-1.0, 1.0)), near * chance.uniform(0.5, 1.5))))


def change_session(made: MadeSession, chance: random.Random) -> MadeSession:
    """Return this session with one to three changes."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        made = chance.choice(_CHANGES)(made, chance)
    return made


def _shortened(made: MadeSession, chance: random.Random) -> MadeSession:
    return replace(made, steps=made.steps[: chance.randint(1, len(made.steps))])


def _without(made: MadeSession, chance: random.Random) -> MadeSession:
    if len(made.steps) == 1:
        return made
    first = chance.randrange(len(made.steps))
    last = min(len(made.steps), first + chance.choice((1, 1, 2, 5)))
    return replace(made, steps=(made.steps[:first] + made.steps[last:]) or made.steps[:1])


def _again(made: MadeSession, chance: random.Random) -> MadeSession:
    first = chance.randrange(len(made.steps))
    run = made.steps[first : first + chance.choice((1, 1, 3, 8))]
    where = chance.randint(0, len(made.steps))
    return replace(made, steps=(made.steps[:where] + run + made.steps[where:])[:_LONGEST])


def _another(made: MadeSession, chance: random.Random) -> MadeSession:
    where = chance.randint(0, len(made.steps))
    steps = (*made.steps[:where], _step(chance, _habit(chance)), *made.steps[where:])
    return replace(made, steps=steps[:_LONGEST])


def _reprice(made: MadeSession, chance: random.Random) -> MadeSession:
    return replace(made, charged=chance.choice(CHARGED))


def _reframe(made: MadeSession, chance: random.Random) -> MadeSession:
    what = chance.randrange(4)
    if what == 0:
        return replace(made, hour=not made.hour)
    if what == 1:
        return replace(made, is_sub=not made.is_sub)
    if what == 2:  # noqa: PLR2004 -- the third of four
        return replace(made, warm=chance.choice((0.0, 0.5, 1.0)))
    return replace(made, front=max(1, round(made.front * chance.uniform(0.3, 3.0))))


def _resize(made: MadeSession, chance: random.Random) -> MadeSession:
    where = chance.randrange(len(made.steps))
    step, times = made.steps[where], chance.choice((0.1, 0.5, 0.8, 1.25, 2.0, 8.0))
    match chance.randrange(5):
        case 0 if step.results:
            results = tuple(replace(one, tokens=_clamp(one.tokens * times)) for one in step.results)
            step = replace(step, results=results)
        case 1:
            step = replace(step, hidden=_clamp(step.hidden * times) or chance.choice((0, 500, -500)))
        case 2:
            step = replace(step, output=_clamp(step.output * times))
        case 3:
            step = replace(step, words=_clamp(step.words * times) or chance.choice((0, 20)))
        case _:
            step = replace(step, other=not step.other)
    return replace(made, steps=(*made.steps[:where], step, *made.steps[where + 1 :]))


def _retime(made: MadeSession, chance: random.Random) -> MadeSession:
    where = chance.randrange(len(made.steps))
    step, time = made.steps[where], _time(chance, 0.8)
    match chance.randrange(6):
        case 0:
            step = replace(step, idle=time)
        case 1:
            step = replace(step, took=time)
        case 2:
            step = replace(step, thought=time)
        case 3:
            step = replace(step, other=not step.other)
        case 4:
            step = replace(step, compacts=not step.compacts)
        case _:
            step = replace(step, results=tuple(replace(one, kind=chance.choice(_KINDS)) for one in step.results))
    return replace(made, steps=(*made.steps[:where], step, *made.steps[where + 1 :]))


def _clamp(value: float) -> int:
    return max(-20_000, min(20_000, round(value)))


_CHANGES: Final[Sequence[Callable[[MadeSession, random.Random], MadeSession]]] = (
    _shortened,
    _shortened,
    _without,
    _again,
    _another,
    _reprice,
    _reframe,
    _resize,
    _resize,
    _resize,
    _retime,
    _retime,
)

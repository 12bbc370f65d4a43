"""The request that a program would have sent at every call of a recording, and the calls where it had to be skipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from benchmarks.peers.driving import Answer
from benchmarks.peers.script import Script
from benchmarks.peers.shapes import Shown

from pagein.errors import BadInput


class Asking(Protocol):
    """Whoever answers requests: a worker, or a function in a test."""

    def __call__(self, window: int, tokens: float, limit: int, messages: Sequence[bytes]) -> Answer:
        """The messages that would be sent instead."""
        ...


@dataclass(frozen=True, slots=True)
class Rendered:
    """One request as it goes out: the blocks of each message.

    places: for each call of the window so far, how many of these messages come before what was appended behind that call's own.
    took: seconds by the clock and of processors, None where the peer raised.
    fell: why the raw request went out instead (the peer failed, or a provider would refuse what it made), else empty.
    """

    messages: tuple[tuple[Shown, ...], ...]
    places: tuple[int, ...]
    took: tuple[float, float] | None
    fell: Literal["", "failed", "refused"] = ""
    why: str = ""


@dataclass(slots=True)
class _Window:
    messages: list[bytes] = field(default_factory=list)
    shown: list[tuple[Shown, ...]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def render_all(script: Script, ask: Asking, tell: Callable[[int], None] = lambda _: None) -> list[Rendered]:
    """Put every request of a script to a peer. Raises HostError where its process does not answer."""
    rendered: list[Rendered] = []
    window = _Window()
    for turn in script.turns:
        if turn.opens:
            window = _Window()
        window.messages.extend(turn.messages)
        window.shown.extend(map(script.shapes.shown, turn.messages))
        window.ends.append(len(window.messages))
        answer = ask(turn.window, turn.sized.prompt, script.limit, window.messages)
        rendered.append(_rendered(script, window, answer))
        tell(len(rendered))
    return rendered


def _rendered(script: Script, window: _Window, answer: Answer) -> Rendered:
    if answer.error:
        return _raw(window, "failed", answer.error)
    took = answer.seconds, answer.cpu
    if not answer.messages:
        return _raw(window, "refused", "a request without messages", took)
    try:
        shown = tuple(map(script.shapes.shown, answer.messages))
        broken = script.shapes.violations(answer.messages)
    except BadInput as problem:
        return _raw(window, "refused", str(problem), took)
    if broken and (news := broken - script.shapes.violations(window.messages)):
        return _raw(window, "refused", ", ".join(sorted(news)), took)
    return Rendered(shown, _places(window, shown), took)


def _raw(
    window: _Window, fell: Literal["failed", "refused"], why: str, took: tuple[float, float] | None = None
) -> Rendered:
    return Rendered(tuple(window.shown), tuple(window.ends), took, fell, why)


def _places(window: _Window, answered: tuple[tuple[Shown, ...], ...]) -> tuple[int, ...]:
    """Where each call's end is among the answered messages. A peer that drops or merges messages is followed by the ids of calls."""
    if len(answered) == len(window.shown):
        return tuple(window.ends)
    where: dict[str, int] = {}
    for place, message in enumerate(answered):
        for shown in message:
            where.setdefault(shown.call, place)
    nearest = len(answered)
    after = [nearest] * (len(window.shown) + 1)
    for place in range(len(window.shown) - 1, -1, -1):
        known = [where[shown.call] for shown in window.shown[place] if shown.call and shown.call in where]
        nearest = min(known, default=nearest)
        after[place] = nearest
    return tuple(after[end] for end in window.ends)

"""What stays in the window and what is paged out, decided before each model call.

Results grow old: one that was there for `keep_calls` calls may go. Nothing goes until `batch_tokens` of such results have
come together; then they go in one batch, oldest first, down to `low_water_tokens`. One batch is one rewrite of the
window, which voids the provider's cache behind the frontier, so batches must be large and rare (`notes/real-sessions.md` 2).

A group (an assistant message with its results) goes as a whole. Only the content of results is ever replaced.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.errors import BadSetting
from pagein.model.messages import ToolResult
from pagein.policy.stubs import LONGEST


@dataclass(frozen=True, slots=True)
class Residency:
    """Settings of paging out, in tokens and model calls."""

    batch_tokens: int = 40_000
    keep_calls: int = 10
    low_water_tokens: int = 0
    min_tokens: int = 200

    def __post_init__(self) -> None:
        for name, least in (("batch_tokens", 1), ("keep_calls", 0), ("low_water_tokens", 0), ("min_tokens", 0)):
            if getattr(self, name) < least:
                raise BadSetting(f"{name} must be {least} or more, not {getattr(self, name)}")
        if self.low_water_tokens >= self.batch_tokens:
            raise BadSetting(
                f"low_water_tokens must be less than batch_tokens ({self.batch_tokens}), not {self.low_water_tokens}"
            )


@dataclass(frozen=True, slots=True)
class Resident:
    """A tool result in the window that may be paged out one day.

    message, block: its place in the request. born: the model call, from 0, that first saw it; results of one group share it.
    """

    call_id: str
    message: int
    block: int
    tokens: int
    born: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Link:
    resident: Resident
    rest: "_Link | None"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Standing:
    """The residents of a branch, by age. Made by steps from `EMPTY`; each step is O(1) amortised and shares what it keeps.

    old_tokens: tokens of the residents that were there for `keep_calls` calls.
    """

    # A queue in two lists: `_front` is oldest first, `_back` is newest first. `_old` is newest first.
    _front: _Link | None = None
    _back: _Link | None = None
    _old: _Link | None = None
    old_tokens: int = 0

    def born(self, resident: Resident) -> "Standing":
        """A result entered the window."""
        return replace(self, _back=_Link(resident, self._back))

    def at_call(self, call: int, settings: Residency) -> "Standing":
        """The next model call is number `call`, from 0: who is old enough by then may go."""
        # A group that the next call sees for the first time answers the latest assistant message: it stays.
        last_old = call - max(settings.keep_calls, 1)
        front, back, old, tokens = self._front, self._back, self._old, self.old_tokens
        while True:
            if front is None:
                front, back = _reversed(back), None
            if front is None or front.resident.born > last_old:
                break
            old = _Link(front.resident, old)
            tokens += front.resident.tokens
            front = front.rest
        return Standing(front, back, old, tokens)

    def without(self, places: Iterable[tuple[int, int]]) -> "Standing":
        """These results, given by message and block, are no longer resident."""
        gone = frozenset(places)
        old = [one for one in self.old() if (one.message, one.block) not in gone]
        young = [one for one in self._young() if (one.message, one.block) not in gone]
        return Standing(_listed(reversed(young)), None, _listed(old), sum(one.tokens for one in old))

    def old(self) -> Iterator[Resident]:
        """Residents that may go, oldest first."""
        yield from _walk(_reversed(self._old))

    def all(self) -> Iterator[Resident]:
        """All residents, oldest first: those that may go now, and those that may go one day."""
        yield from self.old()
        yield from self._young()

    def _young(self) -> Iterator[Resident]:
        yield from _walk(self._front)
        yield from _walk(_reversed(self._back))


EMPTY: Final = Standing()


@dataclass(frozen=True, slots=True)
class Epoch:
    """A decision to rewrite the window. `frontier` is the first message that changes; `page_out` is oldest first."""

    frontier: int
    page_out: tuple[Resident, ...] = field(default=())


def removable(result: ToolResult, tokens: int, settings: Residency) -> bool:
    """Whether this result may be paged out at all: errors and images stay, and what is small is not worth a stub."""
    big = tokens >= settings.min_tokens and tokens > 0 and len(result.text) > LONGEST
    return big and not result.is_error and not result.images


def decide(standing: Standing, settings: Residency) -> Epoch | None:
    """What to page out before the call for which `standing` was brought up to date, or None to leave the window alone."""
    if standing.old_tokens < settings.batch_tokens:
        return None
    left = standing.old_tokens
    going: list[Resident] = []
    for resident in standing.old():
        if left <= settings.low_water_tokens and resident.born != going[-1].born:
            break
        going.append(resident)
        left -= resident.tokens
    return Epoch(min(one.message for one in going), tuple(going))


def _walk(link: _Link | None) -> Iterator[Resident]:
    while link is not None:
        yield link.resident
        link = link.rest


def _listed(residents: Iterable[Resident]) -> _Link | None:
    link: _Link | None = None
    for resident in residents:
        link = _Link(resident, link)
    return link


def _reversed(link: _Link | None) -> _Link | None:
    return _listed(_walk(link))

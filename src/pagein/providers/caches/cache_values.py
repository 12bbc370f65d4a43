"""What goes into a cache model and what comes out."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Reason: TypeAlias = Literal[
    "hit", "warm", "capped", "expired", "unanswered", "not_found", "no_marks", "below_minimum", "no_cache"
]

SHORT: Final = 300
LONG: Final = 3600


class Chains:
    """Names for cumulative prefixes: the identity of *this block after exactly these blocks* (A1).

    Two prompts share the ids of exactly the prefix that they share. Every request given to one simulator must be
    named by one `Chains`. Keys are compared by equality, so a hash of a block's bytes, or any tuple that decides them, does.
    """

    ROOT: Final = 0

    def __init__(self) -> None:
        self._ids: dict[tuple[int, Hashable], int] = {}

    def extend(self, parent: int, key: Hashable) -> int:
        """Id of the prefix `parent` followed by the block `key`; the same for the same arguments, else a new one."""
        return self._ids.setdefault((parent, key), len(self._ids) + 1)

    def __len__(self) -> int:
        return len(self._ids)


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A cache breakpoint on the block at `position`, counted from 1. `ttl` is SHORT or LONG, in seconds."""

    position: int
    ttl: int = SHORT


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """One model call as a cache sees it. Times in seconds, sizes in tokens.

    at: when the request started; lifetimes count from here.
    chain: id of the prefix that ends with each block, in prompt order. Only read during the call, so it may be a growing list.
    cumulative: tokens up to and including each block, as long as `chain`.
    marks: breakpoints; models without them ignore these.
    answered_at: when the first byte of the response came; what this request writes can be read from then (A7). None: `at`.
    read_cap: no more than this was readable, as a recording shows (an unexplained miss): what lay behind it is gone.
    warm: this much of the prefix is kept warm by others and is read even where this simulator has no entry for it.
    newest_user, newest_tool: positions of the newest user and tool blocks, where the provider may mark by itself (O4);
        both 0: the prompt ends with one of them.
    answer: chain id of the prompt with its answer appended, for providers that store it (DeepSeek); 0: not told.
    """

    at: float
    chain: Sequence[int]
    cumulative: Sequence[float]
    marks: tuple[Breakpoint, ...] = ()
    output: float = 0.0
    answered_at: float | None = None
    read_cap: float | None = None
    warm: float = 0.0
    newest_user: int = 0
    newest_tool: int = 0
    answer: int = 0

    @property
    def prompt(self) -> float:
        """All prompt tokens."""
        return self.cumulative[-1] if self.cumulative else 0.0

    @property
    def usable_from(self) -> float:
        """When others can read what this request writes."""
        return self.at if self.answered_at is None else self.answered_at


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """How a call was served, in tokens. `hit` is the position of the last block read from the cache whole (0: none).

    reason: why as much, or as little, was read. The long lifetime's writes are `written_1h` whatever its length.
    """

    read: float
    written_5m: float
    written_1h: float
    fresh: float
    output: float
    hit: int = 0
    reason: Reason = "not_found"

    @property
    def written(self) -> float:
        """Tokens written, of either lifetime."""
        return self.written_5m + self.written_1h

    @property
    def prompt(self) -> float:
        """All prompt tokens."""
        return self.read + self.written_5m + self.written_1h + self.fresh

"""Input and output of a cache model."""

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

    Two prompts share the ids of exactly their common prefix. Every request to one simulator must be named by the same
    `Chains`. Keys are compared by equality: use a hash of a block's bytes, or any tuple that determines them.
    """

    ROOT: Final = 0

    def __init__(self) -> None:
        self._ids: dict[tuple[int, Hashable], int] = {}

    def extend(self, parent: int, key: Hashable) -> int:
        """The id of the prefix `parent` followed by the block `key`. Equal arguments give equal ids."""
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
    """A model call as seen by a cache. Times in seconds, sizes in tokens.

    at: start of the request, and of the TTLs.
    chain: id of the prefix that ends with each block, in prompt order. Only read during the call, so it may be a
        growing list.
    cumulative: tokens up to and including each block, as long as `chain`.
    marks: breakpoints; models without breakpoints ignore them.
    answered_at: time of the first byte of the response; the writes of this request can be read from then on (A7). None:
        `at`.
    read_cap: limit on the read, as shown by a recording (an unexplained miss); the prefix beyond it is gone.
    warm: this much of the prefix is kept warm by other requests and is read even without an entry in this simulator.
    newest_user, newest_tool: positions of the newest user and tool blocks, for an automatic breakpoint (O4); both 0:
        the prompt ends with one of them.
    answer: chain id of the prompt with its answer appended, for providers that store it (DeepSeek); 0: unknown.
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
        """The total of prompt tokens."""
        return self.cumulative[-1] if self.cumulative else 0.0

    @property
    def usable_from(self) -> float:
        """The time from which the writes of this request can be read."""
        return self.at if self.answered_at is None else self.answered_at


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """How the cache served a call, in tokens.

    hit: position of the last block that was read whole (0: none).
    reason: why this many tokens were read.
    written_1h: writes with the long TTL, whatever its length.
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
        """Tokens written, with short or long TTL."""
        return self.written_5m + self.written_1h

    @property
    def prompt(self) -> float:
        """The total of prompt tokens."""
        return self.read + self.written_5m + self.written_1h + self.fresh

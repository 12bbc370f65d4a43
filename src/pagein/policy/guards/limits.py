"""The limits of a session's reads, as profiles: `strict`, `balanced` and `off`.

The numbers of `strict` are those of the design of `read`. The numbers of `balanced` are read off recorded sessions
(`scripts/measure_budgets.py`), so that ordinary work meets no hard limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

ProfileName: TypeAlias = Literal["strict", "balanced", "off"]
PolicyName: TypeAlias = Literal["refuse", "warn", "off"]
"""What is done about a doubtful target: refuse it, answer with a warning, or nothing."""

NEAR: Final = 0.8
"""Share of a total from which an answer warns that the budget is nearly spent."""
LEAST_CHARS: Final = 100
"""Fewest characters that an answer may be cut to."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a profile. None: unlimited.

    reads: reads with new lines until the budget is restored.
    total_lines: new lines in them.
    lines: lines of one read.
    chars: characters of one answer.
    results: places shown by one snippet.
    context: lines around such a place.
    """

    reads: int | None = None
    total_lines: int | None = None
    lines: int | None = None
    chars: int | None = None
    results: int | None = None
    context: int | None = None


UNLIMITED: Final = Limits()
PROFILES: Final[Mapping[ProfileName, Limits]] = {
    "strict": Limits(reads=25, total_lines=2_500, lines=300, chars=12_000, results=20, context=20),
    "balanced": Limits(reads=80, total_lines=20_000, lines=2_000, chars=50 * 1024, results=50, context=50),
    "off": UNLIMITED,
}


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """How the reads of a session are guarded.

    profile: the limits.
    relevance: what is done about a file outside the places of the last search.
    folders: what is done about files in `vendor`, `node_modules`, `.git` and `dist`.
    """

    profile: ProfileName = "balanced"
    relevance: PolicyName = "warn"
    folders: PolicyName = "refuse"

    @property
    def limits(self) -> Limits:
        """The limits of the profile."""
        return PROFILES[self.profile]


DEFAULT_GUARDS: Final = GuardSettings()

"""The note about stability tiers: the assembled contents of a request, as changes since the request before."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TierNote:
    """A prompt was assembled in tiers: its items, as changes since the last prompt on the branch.

    rules, terms: the choices and the cache prices from here on; None if they stay.
    seen: key, keyed digest and tokens of each new or changed item.
    gone: keys of items that are not given any more.
    unselected: files that are given and not selected; None if they stay.
    modified: paths of files that the assistant edited.
    references: references to files, by path, in the first prompt.
    restarted: whether another process assembled the last one.
    cold: whether the provider's cache held nothing any more.
    covered: messages up to the final cache breakpoint, the prompt included.
    """

    rules: dict[str, Any] | None = None
    terms: dict[str, Any] | None = None
    seen: tuple[tuple[str, str, float], ...] = ()
    gone: tuple[str, ...] = ()
    unselected: tuple[str, ...] | None = None
    modified: tuple[str, ...] = ()
    references: dict[str, int] | None = None
    restarted: bool = False
    cold: bool = False
    covered: int = 0

"""The report of a run that brings a derived layer up to date."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerReport:
    """The work of bringing a layer up to its store.

    followed: entries or versions that were looked at. made: what was made of them.
    behind: entries or versions that are not followed yet, at most.
    """

    followed: int = 0
    made: int = 0
    behind: int = 0

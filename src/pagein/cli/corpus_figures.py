"""The bill of the recorded sessions with pagein: the figures that users read in the docs and in `pagein serve`.

`scripts/measure_bar.py` gives them, and `scripts/generate_docs.py` writes them into the README and docs/reference/residency-results.md.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CorpusFigures:
    """The bill of the recorded sessions as a share of that of append-only, at a read price of .1.

    cost: mean of the coding sources.
    claude_code: that of the three Claude Code sources.
    median: the median session of Claude Code.
    """

    cost: float
    claude_code: float
    median: float


SESSIONS: Final = 385
CLIENTS_TTLS: Final = CorpusFigures(cost=0.865, claude_code=0.919, median=0.974)
"""The policy `without-lifetimes`."""
NEW_STORE: Final = CorpusFigures(cost=0.831, claude_code=0.862, median=0.937)
"""The policy `pagein-quiet` in a store without savings of earlier sessions."""
NO: Final = CorpusFigures(cost=0.809, claude_code=0.819, median=0.828)
"""The policy `pagein-quiet`: without keep-alive requests, the default."""
YES: Final = CorpusFigures(cost=0.807, claude_code=0.818, median=0.829)
"""The policy `pagein`: with keep-alive requests."""


def share(figure: float) -> str:
    """Return a share as the documentation prints it, such as `.856`."""
    return f"{figure:.3f}".removeprefix("0")

"""The figures of the odds of a quote: coefficients in thousandths of a logit, and the usual value of each term.

Written by `scripts/train_reads.py`. Sums over sessions: no text of any.
"""

from collections.abc import Mapping
from typing import Any, Final

FIGURES: Final[Mapping[str, Any]] = {
    "sources": [
        "agentv",
        "context-evaluator",
        "entireio-cli",
        "nimbus",
        "oh-my-posh",
        "pi-mono",
    ],
    "intercept": -3373,
    "terms": {
        "size": {"coefficient": 81, "mean": 41},
        "older": {"coefficient": -1256, "mean": 0},
        "accesses": {"coefficient": -75, "mean": 19},
        "covered": {"coefficient": -2289, "mean": 0},
        "whole": {"coefficient": 337, "mean": 0},
        "document": {"coefficient": -993, "mean": 0},
        "task reads": {"coefficient": -1210, "mean": 0},
        "since edit": {"coefficient": -96, "mean": 11},
        "idle, no edits": {"coefficient": 94, "mean": 2},
    },
}

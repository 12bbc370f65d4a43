"""Residency settings for tests: results leave early, by age alone, at any cost, and no result is shown once."""

from typing import Final

from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.policy.eviction.residency import Residency, Thinking
from pagein.policy.eviction.residency_rules import USUAL
from pagein.policy.stubs.previews import Previews

_AGES: Final[dict[str, int | None]] = {"keep_calls": 10, "keep_calls_free": 0, "keep_reads": 0}


def eager(
    *,
    min_tokens: int = 200,
    previews: Previews | None = None,
    economics: Economics | None = None,
    arguments: ArgumentRules | None = None,
    thinking: Thinking = "kept",
    batch_tokens: int = 1,
    **ages: int | None,
) -> Residency:
    """Return settings under which each old enough result leaves with the next call, reads of files included.

    economics: prices; None: whatever it costs. batch_tokens: least tokens that leave without prices.
    ages: of the residency table, by name.
    """
    rules = USUAL.without_layer("files").with_ages(_AGES | ages)
    return Residency(rules, min_tokens, economics, previews, arguments, thinking, batch_tokens, shown_once=None)

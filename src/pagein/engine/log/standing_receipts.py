"""Receipts at the end of visible texts, with the text above each receipt."""

import re
from dataclasses import dataclass
from typing import Final

from pagein.engine.log.read_notes import trace_of
from pagein.policy.reads.receipt_lines import LONGEST_RECEIPT_LINE, RECEIPT_LINE

_UNKNOWN: Final = re.compile(r"\n\[not known: [^\n]*\Z")
CODEX_HEAD: Final = re.compile(r"\AWall time: [0-9.]+ seconds\nOutput:(?:\n|\Z|(?=.))")
"""What codex puts in front of the result of each call over MCP."""


@dataclass(frozen=True, slots=True)
class StandingReceipt:
    """A receipt in a window, with the text above the receipt.

    traces: hashes of the text above, as far as that may be the answer.
    """

    tag: str
    traces: frozenset[str]


def standing_receipt(text: str) -> StandingReceipt | None:
    """Return the receipt at the end of a text in a window; None if absent."""
    found = RECEIPT_LINE.search(text, max(len(text) - LONGEST_RECEIPT_LINE, 0))
    if found is None:
        return None
    above = text[: found.start()]
    forms = [above, CODEX_HEAD.sub("", above, count=1)]
    forms += [one[: beside.start()] for one in forms if (beside := _UNKNOWN.search(one)) is not None]
    return StandingReceipt(found[1], frozenset(map(trace_of, forms)))

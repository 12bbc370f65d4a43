"""The line with a receipt below the text of a read: a model's later proof of the text in its window."""

import re
from typing import Final

RECEIPT_DIGITS: Final = 10
"""Hexadecimal digits of a receipt: 40 bits, which nobody guesses in the reads of one session."""
RECEIPT_LINE: Final = re.compile(rf"\n\[known=([0-9a-f]{{{RECEIPT_DIGITS}}})\]\s*\Z")
LONGEST_RECEIPT_LINE: Final = 64
"""Characters at the end of a text among which its receipt is looked for."""


def has_receipt(text: str) -> bool:
    """Return whether a text ends with a receipt."""
    return RECEIPT_LINE.search(text, max(len(text) - LONGEST_RECEIPT_LINE, 0)) is not None

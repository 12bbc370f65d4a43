"""The texts of the parts of an assembled prompt. Headers are constants, so that equal contents give equal bytes."""

import re
from collections.abc import Iterable
from typing import Final

from pagein.model.laid_prompts import HistoryMessage
from pagein.policy.tiers.tier_values import HISTORY, SYMBOL, URL

ACKNOWLEDGEMENT: Final = "Ok."
"""The assistant's answer to each block of context. Always these bytes."""
TREE: Final = "# Files of the repository"
URLS: Final = "# Pages from the web"
FILES: Final = "# Files in work"
_NAMES: Final = {"user": "User", "assistant": "Assistant"}


def file_text(path: str, text: str) -> str:
    """A whole file, fenced."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"## {path}\n\n{fence}\n{text}\n{fence}"


def item_text(key: str, text: str) -> str:
    """The text of an item with its own block."""
    if key.startswith(SYMBOL):
        return f"## Symbols of {key.removeprefix(SYMBOL)}\n\n{text}"
    if key.startswith(URL):
        return f"## {key.removeprefix(URL)}\n\n{text}"
    return file_text(key, text)


def tier_text(tier: str, items: Iterable[tuple[str, str]], said: Iterable[HistoryMessage]) -> str:
    """The text of a tier: symbol entries, files, messages. "" for an empty tier.

    items: keys and texts.
    """
    known = list(items)
    symbols = [text for key, text in known if key.startswith(SYMBOL)]
    files = [item_text(key, text) for key, text in known if not key.startswith((SYMBOL, HISTORY))]
    spoken = [f"### {_NAMES[one.role]}\n{one.text}" for one in said]
    sections = (
        ("Symbols", symbols),
        ("Files", files),
        ("Conversation History", spoken),
    )
    return "\n\n".join(f"## {name} ({tier})\n\n" + "\n\n".join(texts) for name, texts in sections if texts)


def section_text(header: str, texts: Iterable[str]) -> str:
    """Texts below a header; "" without texts."""
    known = [text for text in texts if text]
    return "\n\n".join((header, *known)) if known else ""

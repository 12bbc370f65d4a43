"""Texts of a search's answer: the heading and each match; and a test for texts of this form."""

from typing import Final

from pagein.model.search_query import ObjectMatch

_BEGIN: Final = "Found "
_END: Final = " match(es):\n"
_OBJECT: Final = "\n**pg-"
_LOOKED_AT: Final = 40
"""Characters of an answer that hold its heading and the beginning of its first match."""


def heading_text(shown: int) -> str:
    """Return the lines above the matches; with none shown, the whole answer."""
    return f"{_BEGIN}{shown}{_END}" if shown else "No matches found."


def match_text(hit: ObjectMatch) -> str:
    """Return the lines for one match."""
    return f"**{hit.object_id}** [offset {hit.offset}]:\n  ...{hit.context}..."


def shows_matches(text: str) -> bool:
    """Return whether a text begins as the answer of a search with matches, under whatever name the tool was called."""
    return text.startswith(_BEGIN) and _END + _OBJECT in text[:_LOOKED_AT]

"""Texts of a search's answer: the heading and each match; and a test for texts of this form."""

from datetime import UTC, datetime
from typing import Final

from pagein.model.search_query import CONTENT, Hit, ObjectMatch

_BEGIN: Final = "Found "
_END: Final = " match(es):\n"
_OBJECT: Final = "\n**"
_LOOKED_AT: Final = 40
"""Characters of an answer that hold its heading and the beginning of its first match."""


def heading_text(shown: int) -> str:
    """Return the lines above the matches; with none shown, the whole answer."""
    return f"{_BEGIN}{shown}{_END}" if shown else "No matches found."


def match_text(hit: ObjectMatch) -> str:
    """Return the lines for one match."""
    place = f"offset {hit.offset}" if hit.hit is None else place_text(hit.hit)
    return f"**{hit.object_id}** [{place}]:\n  ...{hit.context}..."


def place_text(hit: Hit) -> str:
    """Return the place of a match in a stored version: turn, step and speaker or line, object, session and time."""
    where, place = hit.where, hit.place
    parts = [] if place is None else [f"turns={place.turn}"]
    if place is not None and place.step is not None:
        parts.append(f"step {place.step}")
    spoken = None if place is None else place.speaker
    if spoken is None:
        parts += [where.type if hit.field == CONTENT else f"{where.type}, {hit.field}", f"line {hit.match.line}"]
        parts += [name for name in (where.path or where.nickname,) if name]
    else:
        parts.append(spoken)
    if where.session is not None:
        parts.append(f"session {where.session}")
    parts.append(_moment(where.at))
    return ", ".join(parts)


def _moment(at: float) -> str:
    try:
        known = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else ""
    except (ValueError, OverflowError, OSError):  # the clock of a writer may give any number
        known = ""
    return known or "at an unknown time"


def shows_matches(text: str) -> bool:
    """Return whether a text begins as the answer of a search with matches, under whatever name the tool was called."""
    return text.startswith(_BEGIN) and _END + _OBJECT in text[:_LOOKED_AT]

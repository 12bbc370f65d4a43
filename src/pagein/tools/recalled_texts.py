"""Implement `pagein peek` without a session as functions with plain values in and out. Needs the store alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pagein.engine.log.evicted_texts import EvictedTexts
from pagein.errors import BadSetting
from pagein.policy.recall.surroundings import CONTEXT, around
from pagein.policy.recall.text_slices import LENGTH, LINES, Slice, by_characters, by_lines

Place: TypeAlias = Mapping[str, int | str | None]
"""`offset`, `length`, `line`, `lines` and `around`, as far as given."""

_OTHER_PLACES: Final = "[--around TEXT shows the lines around a text to edit.]"
"""Tells a model that recalls by its shell, and knows only `pagein peek ID`, what the recall tools tell in their definition."""


def look(texts: EvictedTexts, object_id: str, place: Place) -> dict[str, Any]:
    """Return a part of an object without a session and without a journal entry.

    Raises NotRecallable with the reason, and BadSetting.
    """
    name = object_id.strip()
    part = _slice(name, texts.recall(name), place)
    if part.following is not None and all(value is None for value in place.values()):
        part = replace(part, hints=(*part.hints, _OTHER_PLACES))
    following = None if part.following is None else {part.following[0]: part.following[1]}
    details = {"id": name, "offset": part.start, "end": part.end, "total": part.total, "next": following}
    return {"text": part.as_text, "details": details, "is_error": False, "images": [], "failure": None}


def whole(texts: EvictedTexts, object_id: str) -> str:
    """Return the complete text of an object. Raises NotRecallable with the reason."""
    return texts.recall(object_id)


def _slice(name: str, text: str, place: Place) -> Slice:
    offset, length, line, lines = (_number(place, one) for one in ("offset", "length", "line", "lines"))
    quote = place.get("around")
    if isinstance(quote, str):
        if not quote.strip() or offset is not None or length is not None or line is not None:
            raise BadSetting("give --around with a text, alone or with --lines")
        return around(name, text, quote, CONTEXT if lines is None else lines)
    if line is None and lines is None:
        return by_characters(name, text, offset or 0, LENGTH if length is None else length)
    if offset is not None:
        raise BadSetting("give --offset and --length, or --line and --lines, not both")
    return by_lines(name, text, 1 if line is None else line, LINES if lines is None else lines)


def _number(place: Place, name: str) -> int | None:
    value = place.get(name)
    return value if isinstance(value, int) else None

"""Implement `pagein peek`, `pagein ingest` and `pagein stats` as functions with plain values in and out.

The result shapes are stable: each is printed as a JSON object under `--json`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.errors import BadSetting
from pagein.policy.recall.surroundings import CONTEXT, around
from pagein.policy.recall.text_slices import LENGTH, LINES, Slice, by_characters, by_lines
from pagein.tools.calls import Call
from pagein.tools.ingest import INGEST
from pagein.tools.peek import PEEK
from pagein.tools.read_commands import result_values
from pagein.tools.stats import STATS

Place: TypeAlias = Mapping[str, int | str | None]
"""`offset`, `length`, `line`, `lines` and `around`, as far as given."""

_OTHER_PLACES: Final = "[--around TEXT shows the lines around a text to edit.]"
"""Tells a model that recalls by its shell, and knows only `pagein peek ID`, what the recall tools tell in their definition."""


def peek(session: Session, object_id: str, place: Place) -> dict[str, Any]:
    """Return a part of an object, as shown to the session's model. Shape as for `read_file`."""
    said = {name: value for name, value in place.items() if value is not None}
    return result_values(PEEK.answer(session, Call({"id": object_id, **said})))


def look(engine: Engine, object_id: str, place: Place) -> dict[str, Any]:
    """Return a part of an object without a session and without a journal entry.

    Raises NotRecallable with the reason, and BadSetting.
    """
    name = object_id.strip()
    part = _slice(name, engine.recall(name), place)
    if part.following is not None and all(value is None for value in place.values()):
        part = replace(part, hints=(*part.hints, _OTHER_PLACES))
    following = None if part.following is None else {part.following[0]: part.following[1]}
    details = {"id": name, "offset": part.start, "end": part.end, "total": part.total, "next": following}
    return {"text": part.as_text, "details": details, "is_error": False, "images": [], "failure": None}


def whole(engine: Engine, object_id: str) -> str:
    """Return the complete text of an object. Raises NotRecallable with the reason."""
    return engine.recall(object_id)


def ingest(session: Session, paths: Sequence[str], tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Put files into the store for a session. Shape as for `read_file`, with ids and skipped files in the details."""
    return result_values(INGEST.answer(session, Call({"paths": list(paths)}, tell=tell)))


def stats(session: Session) -> dict[str, Any]:
    """Return figures of a session's objects, its recalls and the store.

    Shape as for `read_file`, with the figures in the details.
    """
    return result_values(STATS.answer(session, Call()))


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

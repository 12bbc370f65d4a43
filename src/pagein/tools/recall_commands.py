"""Implement `pagein peek`, `pagein ingest` and `pagein stats` as functions with plain values in and out.

The result shapes are stable: each is printed as a JSON object under `--json`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.errors import BadSetting
from pagein.policy.recall.text_slices import LENGTH, LINES, Slice, by_characters, by_lines
from pagein.tools.calls import Call
from pagein.tools.ingest import INGEST
from pagein.tools.peek import PEEK
from pagein.tools.read_commands import result_values
from pagein.tools.stats import STATS

Numbers: TypeAlias = Mapping[str, int | None]
"""`offset`, `length`, `line` and `lines`, as far as given."""


def peek(session: Session, object_id: str, numbers: Numbers) -> dict[str, Any]:
    """Return a part of an object, as shown to the session's model. Shape as for `read_file`."""
    said = {name: value for name, value in numbers.items() if value is not None}
    return result_values(PEEK.answer(session, Call({"id": object_id, **said})))


def look(engine: Engine, object_id: str, numbers: Numbers) -> dict[str, Any]:
    """Return a part of an object without a session and without a journal entry.

    Raises NotRecallable with the reason, and BadSetting.
    """
    name = object_id.strip()
    part = _slice(name, engine.recall(name), numbers)
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


def _slice(name: str, text: str, numbers: Numbers) -> Slice:
    offset, length, line, lines = (numbers.get(one) for one in ("offset", "length", "line", "lines"))
    if line is None and lines is None:
        return by_characters(name, text, offset or 0, LENGTH if length is None else length)
    if offset is not None:
        raise BadSetting("give --offset and --length, or --line and --lines, not both")
    return by_lines(name, text, 1 if line is None else line, LINES if lines is None else lines)

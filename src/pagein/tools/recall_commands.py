"""Implement `pagein peek --session`, `pagein ingest` and `pagein stats` as functions with plain values in and out.

The result shapes are stable: each is printed as a JSON object under `--json`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pagein.engine.session import Session
from pagein.tools.calls import Call
from pagein.tools.ingest import INGEST
from pagein.tools.peek import PEEK
from pagein.tools.read_commands import result_values
from pagein.tools.recalled_texts import Place
from pagein.tools.stats import STATS


def peek(session: Session, object_id: str, place: Place) -> dict[str, Any]:
    """Return a part of an object, as shown to the session's model. Shape as for `read_file`."""
    said = {name: value for name, value in place.items() if value is not None}
    return result_values(PEEK.answer(session, Call({"id": object_id, **said})))


def ingest(session: Session, paths: Sequence[str], tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Put files into the store for a session. Shape as for `read_file`, with ids and skipped files in the details."""
    return result_values(INGEST.answer(session, Call({"paths": list(paths)}, tell=tell)))


def stats(session: Session) -> dict[str, Any]:
    """Return figures of a session's objects, its recalls and the store.

    Shape as for `read_file`, with the figures in the details.
    """
    return result_values(STATS.answer(session, Call()))

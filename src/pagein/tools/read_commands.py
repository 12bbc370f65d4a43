"""Implement `pagein read`, `pagein refresh` and `pagein reads` as functions with plain values in and out.

The result shapes are stable: each is printed as a JSON object under `--json`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import BadInput
from pagein.tools.reading.unified_read import answer_unified_read

_LONGEST: Final = 80
"""Characters of a query in the figures."""
_RANGE: Final = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


def read_file(
    session: Session, path: str, *, offset: int | None = None, limit: int | None = None, bypass: bool = False
) -> dict[str, object]:
    """Read a file as the session's model would: `{"text", "details", "is_error", "images", "failure"}`."""
    return result_values(session.read(path, offset, limit, bypass_cache=bypass))


def read_by_mode(session: Session, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Read by a mode as the session's model would: the contract of docs/reference/read.md, with `images` and `failure`."""
    result = answer_unified_read(session, {name: value for name, value in arguments.items() if value is not None})
    values = result_values(result)
    return {**result.details, "images": values["images"], "failure": values["failure"]}


def refresh(session: Session, path: str, lines: str | None = None) -> dict[str, object]:
    """Make the next read show the full text: of the file, of `path:A-B`, or of `lines` ("A" or "A-B").

    Shape as for `read_file`.
    """
    if lines is None:
        return result_values(session.refresh(path))
    return result_values(session.refresh(path, *offset_and_limit(lines)))


def reads(session: Session) -> dict[str, object]:
    """Return statistics of the reads on the session's branch since its last compaction."""
    now, guards = session.status(), session.guards.figures()
    return {
        "session": session.name,
        "files": now.files,
        "scopes": now.scopes,
        "entries": now.entries,
        "start": now.start,
        "modes": now.modes,
        "baseline_bytes": now.baseline,
        "sent_bytes": now.sent,
        "saved_bytes": now.saved,
        "saved_tokens": now.saved_tokens,
        "malformed": now.malformed,
        "store": None if now.store is None else {"blobs": now.store.blobs, "bytes": now.store.size},
        "failure": "the store cannot be asked" if now.store is None else None,
        "guards": guards,
        "text": "\n".join([now.text, *_budget_lines(guards)]),
    }


def _budget_lines(guards: Mapping[str, Any]) -> list[str]:
    """Return the lines about the read budget, with a table of the metrics; none for a session that was never guarded."""
    metrics, everywhere = guards["metrics"], guards["metrics_of_all_branches"]
    if not everywhere["reads_count"] and not everywhere["search_count"]:
        return []
    reads, lines = (
        f"{guards[name]} of {'any number of' if guards[f'{name}_limit'] is None else guards[f'{name}_limit']}"
        for name in ("reads", "lines")
    )
    rows = [
        ("metric", "branch", "all branches"),
        *((name, str(metrics[name]), str(everywhere[name])) for name in metrics),
    ]
    wide = [max(len(row[place]) for row in rows) for place in range(3)]
    search = guards["search"]
    return [
        f"read budget ({guards['profile']}): {guards['budget_state']}, {reads} reads and {lines} new lines since it was restored",
        f"consecutive reads: {guards['bundle_items']}, of {guards['bundle_lines']} lines",
        "last search: none"
        if search is None
        else f"last search: {search['query'][:_LONGEST]!r}, {search['hits']} hits, {search['files']} files",
        "",
        *(f"{name:<{wide[0]}}  {here:>{wide[1]}}  {all_of_it:>{wide[2]}}" for name, here, all_of_it in rows),
    ]


def result_values(result: ReadResult) -> dict[str, object]:
    """Return a result as plain values; for images only the type and the size of their base64 form."""
    return {
        "text": result.text,
        "details": dict(result.details),
        "is_error": result.is_error,
        "images": [{"media_type": image.media_type, "size": image.size} for image in result.images],
        "failure": result.failure,
    }


def offset_and_limit(token: str) -> tuple[int, int | None]:
    """Return the lines "A" (to the end) or "A-B" as offset and limit. Raises BadInput for anything else."""
    match = _RANGE.fullmatch(token)
    if match is None:
        raise BadInput(f'Invalid range token "{token}". Use <start> or <start>-<end>.')
    first, last = int(match[1]), None if match[2] is None else int(match[2])
    for number in (first, last):
        if number is not None and number < 1:
            raise BadInput(f'Invalid line number "{number}". Line numbers must be positive integers.')
    if last is not None and last < first:
        raise BadInput(f'Invalid range "{token}": end line must be greater than or equal to start line.')
    return first, None if last is None else last - first + 1

"""The tools `read` and `readcache_refresh`, as offered by a host to a model.

`READ` has the name and the arguments of the host's own read tool, so that no prompt needs to change. It also accepts
`bypass_cache`, if a host chooses to offer this argument. `READ_BY_MODE` has modes (`tools.reading`), and also answers a call
in the shape of a host.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.ports import Signal
from pagein.tools.reading.argument_matrix import json_schema
from pagein.tools.reading.unified_read import answer_unified_read, has_modes

Arguments = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a session.

    schema: JSON schema of the arguments
    call: returns a result readable by the model, also for wrong arguments; never raises for a model's input
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    call: Callable[[Session, Arguments, Signal | None], ReadResult]


def _schema(**described: tuple[str, str]) -> dict[str, Any]:
    properties = {name: {"type": kind, "description": text} for name, (kind, text) in described.items()}
    return {"type": "object", "properties": properties, "required": ["path"]}


def _answer_by_mode(session: Session, arguments: Arguments, signal: Signal | None) -> ReadResult:
    if has_modes(arguments):
        return answer_unified_read(session, arguments, signal)
    return _answer_read(session, arguments, signal)


def _answer_read(session: Session, arguments: Arguments, signal: Signal | None) -> ReadResult:
    problem = _problem("read", arguments)
    if problem is not None:
        return problem
    return session.read(
        str(arguments["path"]),
        _number(arguments, "offset"),
        _number(arguments, "limit"),
        bypass_cache=arguments.get("bypass_cache") is True,
        signal=signal,
    )


def _refresh(session: Session, arguments: Arguments, signal: Signal | None) -> ReadResult:
    problem = _problem("readcache_refresh", arguments)
    if problem is not None:
        return problem
    if signal is not None and signal.is_set():
        return ReadResult("Operation aborted", is_error=True)
    return session.refresh(str(arguments["path"]), _number(arguments, "offset"), _number(arguments, "limit"))


READ: Final = Tool(
    "read",
    "Read a file. Text comes as it is, images as attachments. At most 2000 lines or 50KB are shown at once; go on with "
    "offset until the file is complete. Text that you were shown before and that is still the same is answered by a "
    "[readcache: ...] line that says so, changes by a diff. Line numbers in such an answer count as in the file.",
    _schema(
        path=("string", "The file, relative or absolute. A trailing :START-END selects lines."),
        offset=("number", "First line to show, counted from 1."),
        limit=("number", "How many lines to show."),
    ),
    _answer_read,
)

READ_BY_MODE: Final = Tool(
    "read",
    "Read a file, a symbol, some lines, or how a file differs from another state of it; mode says which. Lines that you were "
    "shown before and that are still the same are answered by a [readcache: ...] line that says so, changes by a diff; line "
    "numbers in such an answer count as in the file. An answer that was cut tells how to go on.",
    json_schema(),
    _answer_by_mode,
)

REFRESH: Final = Tool(
    "readcache_refresh",
    "Have the next read of a file, or of some of its lines, show the text itself and not a [readcache: ...] line. Use it "
    "when an edit failed because the old text was not found, or when the earlier text is out of sight.",
    _schema(
        path=("string", "The file, relative or absolute. A trailing :START-END selects lines."),
        offset=("number", "First line to refresh, counted from 1."),
        limit=("number", "How many lines to refresh."),
    ),
    _refresh,
)

TOOLS: Final = (READ, REFRESH)


def _problem(tool: str, arguments: Arguments) -> ReadResult | None:
    """Return the errors in the arguments in a form that a model can act on, or None."""
    wrong = [] if isinstance(arguments.get("path"), str) else ["path: must be a text"]
    for name in ("offset", "limit"):
        value = arguments.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            wrong.append(f"{name}: must be a number")
    if not wrong:
        return None
    lines = "\n".join(f"  - {line}" for line in wrong)
    given = json.dumps(dict(arguments), indent=2, default=str)
    return ReadResult(f'Validation failed for tool "{tool}":\n{lines}\n\nReceived arguments:\n{given}', is_error=True)


def _number(arguments: Arguments, name: str) -> float | None:
    value = arguments.get(name)
    return value if isinstance(value, int | float) else None

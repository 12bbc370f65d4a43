"""The errors of `read`: a code for each, with its meaning and remedy, in one table."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pagein.errors import CallerError
from pagein.model.read_contract import NextCall, ReadError, target_of

LONGEST_NAME: Final = 200
"""Characters of a path or another name in a message."""

CODES: Final[Mapping[str, str]] = {
    "INVALID_ARGS": "An argument is missing, unknown, of the wrong type, out of bounds, or belongs to another mode. The message lists each.",
    "NOT_FOUND": "There is no such file. The message names files with a similar name.",
    "IS_DIRECTORY": "The target is a folder. Name a file in it, or search it with `mode=snippet` and `pattern`.",
    "NOT_A_FILE": "The target is a pipe, a device or a socket.",
    "UNREADABLE": "The file system refuses to open the file.",
    "FILE_TOO_LARGE": "The file is larger than `read` opens. Search it, or read a part with a tool that streams.",
    "BINARY_FILE": "The file has no text.",
    "WRONG_ENCODING": "The file is text, and not in UTF-8. The message names the first wrong byte.",
    "OUT_OF_RANGE": "The first line, match or hunk is behind the last one.",
    "OUTSIDE_WORKSPACE": "The file is not in the workspace of the session.",
    "SYMLINK_ESCAPE": "The path is in the workspace, and a link on it leads out.",
    "EXCLUDED_FILE": "The content of such files is never stored (law 9), so this tool does not show it.",
    "UNKNOWN_SYMBOL": "No symbol has the name. The message names similar ones, and how many files could not be parsed.",
    "AMBIGUOUS_SYMBOL": "Several symbols have the name. The message lists them with path, lines, signature and id.",
    "UNPARSABLE": "The file of the symbol cannot be parsed, or only in part.",
    "NO_GRAMMAR": "There is no grammar for the files of the symbol.",
    "NO_SYMBOLS": "The extra `pagein[symbols]` is not installed.",
    "NO_RESULTS": "Nothing matches the pattern.",
    "NO_GIT": "The extra `pagein[git]` is not installed.",
    "NO_REPOSITORY": "The file is in no git repository that can be opened.",
    "UNKNOWN_BASE": "The commit or stored version to compare with does not exist.",
    "NO_BASE_CONTENT": "The stored version has no text to compare with.",
    "UNMERGED": "The index holds several versions of the file, because a merge is not finished.",
    "BUDGET_EXCEEDED": "The read budget is spent. A narrowing search or a new message of the user restores it.",
    "LOW_RELEVANCE": "The file is outside the places of the last search, and the setting `guard_relevance` refuses such reads.",
    "EXCLUDED_FOLDER": "The file is in `vendor`, `node_modules`, `.git` or `dist`.",
    "NO_WORKSPACE": "The session has no folder, so it cannot read files.",
    "FAILED": "Something inside pagein failed. The message says what; another tool can read the file.",
    "ABORTED": "The caller cancelled the read.",
}
"""Every code of this package, with its meaning."""


class ReadRefusal(CallerError):
    """A failed call of `read`, with code, message and helpful calls.

    stabilization: what the guards say of it; None for an error that they did not judge.
    """

    def __init__(
        self,
        code: str,
        message: str,
        next_calls: Iterable[NextCall] = (),
        stabilization: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.error = ReadError(code, message, tuple(next_calls))
        self.stabilization = stabilization


def short_name(name: str) -> str:
    """Return a name for a message: a long name without its middle, because the model is sent every character."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 :]}"


def next_read(mode: str, target: str, **arguments: Any) -> NextCall:  # noqa: ANN401 - arguments of a tool
    """Return a call of `read`.

    target: a path from the workspace on; with mode=symbol, an id.
    """
    written = target if mode == "symbol" else target_of(target)
    return {"tool": "read", "arguments": {"mode": mode, "target": written, **arguments}}


def code_table() -> Iterator[str]:
    """Yield the rows of the Markdown table for the docs."""
    yield "| code | meaning |"
    yield "|---|---|"
    for code, meaning in CODES.items():
        yield f"| `{code}` | {meaning} |"

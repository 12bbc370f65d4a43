"""File accesses and quotes of a tool call, derived from its name and arguments alone.

Tools are known by their name as the clients spell it (Claude Code, codex, OpenCode, pi, Gemini CLI, Copilot CLI,
SWE-agent); a tool of another name touches nothing. Shell commands are parsed with best effort, see
`pagein.policy.clients.shell_reads`.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

from pagein.model.fields import Row, lines_of, number, objects, text
from pagein.model.messages import FileAccess, ToolCall
from pagein.policy.clients.shell_reads import shell_reads

_PATHS: Final = ("file_path", "filePath", "path", "filename", "notebook_path", "target_file", "absolute_path")
_OLD: Final = ("old_string", "oldString", "oldText", "old_str", "old_text", "search")
_FOLDERS: Final = ("workdir", "cwd", "dir_path", "directory")
_LINES: Final = ("offset", "start_line", "limit", "end_line")
_PATCHES: Final = ("input", "patchText", "patch", "cmd", "command")
# names of tools, in lower case
READS: Final = frozenset(("read", "view", "read_file", "open", "readfile", "notebookread"))
EDITS: Final = frozenset(("edit", "multiedit", "str_replace", "replace", "notebookedit", "edit_file"))
WRITES: Final = frozenset(("write", "create", "write_file", "create_file"))
SHELLS: Final = frozenset(
    (
        "bash",
        "exec_command",
        "shell",
        "local_shell",
        "shell_command",
        "run_command",
        "run_shell_command",
        "execute_bash",
    )
)
_BEGIN: Final = "*** Begin Patch"
_HEADERS: Final[tuple[tuple[str, Literal["edit", "write", "delete"]], ...]] = (
    ("*** Update File: ", "edit"),
    ("*** Add File: ", "write"),
    ("*** Delete File: ", "delete"),
    ("*** Move to: ", "write"),
)
_SHORTEST_PATCH_LINE: Final = 12
_LONGEST_PATCH_LINE: Final = 39


@lru_cache(maxsize=64)  # parsing a command line costs more than the rest of the work on a call
def accesses(name: str, arguments: str, cwd: str | None = None) -> tuple[FileAccess, ...]:
    """Return the files read, edited, written or deleted by a call, in the order of its arguments.

    arguments: JSON text. cwd: folder of the session; paths inside it are returned relative to it.
    """
    row = arguments_of(arguments)
    tool = name.lower()
    body = patch_body(row)
    if body is not None:
        found = list(_patch_accesses(body))
    elif tool in SHELLS:
        found = list(shell_reads(lines_of(row.get("cmd", row.get("command"))), text(row, *_FOLDERS)))
    else:
        found = list(_native(tool, row))
    return tuple(_inside(access, cwd) for access in found)


def quotes(call: ToolCall) -> tuple[str, ...]:
    """Return the old texts in an edit's arguments, as spelled there, without empty texts."""
    if call.name.lower() not in EDITS:
        return ()
    row = arguments_of(call.arguments)
    candidates = [text(row, *_OLD), *(text(edit, *_OLD) for edit in objects(row.get("edits")))]
    return tuple(old for old in candidates if old)


def patch_lines(call: ToolCall) -> tuple[str, ...]:
    """Return the removed and context lines of 12 to 39 characters in an apply_patch body, without indentation.

    Longer lines are found in the same way as any other text.
    """
    body = patch_body(arguments_of(call.arguments))
    if body is None:
        return ()
    quoted = (line[1:].strip() for line in body.split("\n") if line[:1] in ("-", " "))
    return tuple(line for line in quoted if _SHORTEST_PATCH_LINE <= len(line) <= _LONGEST_PATCH_LINE)


def arguments_of(arguments: str) -> Row:
    """Return the arguments of a call by name; empty if their text is neither a JSON object nor the free text of a custom tool."""
    import msgspec

    try:
        row: object = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"input": arguments} if arguments.startswith(_BEGIN) else {}
    if isinstance(row, str):
        return {"input": row}
    return row if isinstance(row, dict) else {}


def patch_body(row: Row) -> str | None:
    """Return the patch in a call's arguments, from the first line on; None if absent."""
    for key in _PATCHES:
        if key not in row:
            continue
        body = lines_of(row[key])
        begin = body.find(_BEGIN)
        if begin >= 0:
            return body[begin:]
    return None


def _patch_accesses(body: str) -> Iterator[FileAccess]:
    for line in body.split("\n"):
        for header, op in _HEADERS:
            if line.startswith(header):
                yield FileAccess(op, line[len(header) :].strip())


def _native(tool: str, row: Row) -> Iterator[FileAccess]:
    path = next((found for key in _PATHS if isinstance(found := row.get(key), str)), "")
    if not path:
        return
    if tool in READS:
        yield _read_access(path, row)
    elif tool in EDITS:
        yield FileAccess("edit", path)
    elif tool in WRITES:
        yield FileAccess("write", path)


def _read_access(path: str, row: Row) -> FileAccess:
    span = row.get("view_range")
    if isinstance(span, list) and len(span) == 2 and all(isinstance(end, int) for end in span):  # noqa: PLR2004
        return FileAccess("read", path, span[0], span[1] if span[1] >= span[0] else None)
    if row.keys().isdisjoint(_LINES):
        return FileAccess("read", path)
    start, limit = number(row, "offset", "start_line"), number(row, "limit")
    first = None if start is None else max(1, start)
    if limit is None:
        return FileAccess("read", path, first, number(row, "end_line"))
    return FileAccess("read", path, first or 1, (first or 1) + max(1, limit) - 1)


def _inside(access: FileAccess, cwd: str | None) -> FileAccess:
    if not cwd:
        return access
    folder, path = cwd.replace("\\", "/").rstrip("/") + "/", access.path.replace("\\", "/")
    if not path.startswith(folder):
        return access
    return FileAccess(access.op, path[len(folder) :], access.start, access.end, access.via)

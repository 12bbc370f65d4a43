"""Client profiles: data and pure functions to interpret one client's tools and results, and the files of any tool call.

Rules of this file
------------------
1. The files that a call reads, edits, writes or deletes follow from its name and arguments alone. Tools are known by
   their name as the clients spell it (Claude Code, codex, OpenCode, pi, Gemini CLI, Copilot CLI, SWE-agent); a tool of
   another name touches nothing. Shell commands are parsed with best effort (`policy.clients.shell_reads`).
2. A tool that the profile does not name is just output: it reads nothing, writes nothing and never fails by its text.
3. The lines of a result are derived from its own text, with the numbers of its own gutter, notices and arguments. Where
   any of them contradicts another, no line counts as shown: that costs a saving, never a truth.
4. A call failed if the wire format says so, or, where the wire format has no word for it, if the client's text says so.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from pagein.model.fields import Row, lines_of, number, objects, text
from pagein.model.messages import Block, FileAccess, Message, ShownLines, ToolCall, ToolResult
from pagein.policy.clients.line_layouts import LineLayout, ShownText, lines_shown_by, raw_text
from pagein.policy.clients.shell_reads import ExactRead, exact_read, shell_reads

Op: TypeAlias = Literal["read", "write", "edit", "list", "search", "exec", "other"]

_FAILS: Final = re.compile(r"(?!)")
_END: Final = 1000
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


@dataclass(frozen=True, slots=True)
class CallEffect:
    """The effect of a call.

    accesses: the files that it touches, as far as its arguments show.
    """

    op: Op
    accesses: tuple[FileAccess, ...] = ()


OTHERS_OUTPUT: Final = CallEffect("other")


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A client's tools and the forms of the tools' results. Profiles compare by identity.

    ops: operation of each tool, by name.
    layouts: how its read tool shows lines; the first that fits counts.
    fails: by kind of tool, the form of a result that reports a failure; `any` holds for each of them.
    envelope: text that its shell puts in front of the output, group 1 the exit code; None for output alone, and
        a form that never fits where output does not show files exactly.
    torn: form of output with missing or added parts.
    trims: whether blank lines around shell output are lost.
    counts_last: whether a trailing newline counts as one more line in its reads.
    repeat: its own answer to a read that it answered before; never matches if it has none.
    empty: its notice that a file which it was to show is empty; never matches if it has none.
    verified: the result of an edit if the client found the file as it had shown or written it last; never matches if
        the client does not look.
    altered: a result's words that a person changed the text before it was written; never matches if it has none.
    proves: whether any of its results shows lines of a file for certain, so that a later read may be answered by them.
    """

    name: str
    ops: Mapping[str, Op] = field(default_factory=dict)
    layouts: tuple[LineLayout, ...] = ()
    fails: Mapping[Op | Literal["any"], re.Pattern[str]] = field(default_factory=dict)
    envelope: re.Pattern[str] | None = None
    torn: re.Pattern[str] = _FAILS
    trims: bool = True
    counts_last: bool = True
    repeat: re.Pattern[str] = _FAILS
    empty: re.Pattern[str] = _FAILS
    verified: re.Pattern[str] = _FAILS
    altered: re.Pattern[str] = _FAILS
    proves: bool = True

    def effect_of(self, call: ToolCall) -> CallEffect:
        """Return the effect of a call; a patch is an edit in any tool."""
        op = self.ops.get(call.name)
        if op is None:
            return OTHERS_OUTPUT
        found = accesses(call.name, call.arguments)
        changes = op == "exec" and any(one.op != "read" for one in found)
        return CallEffect("edit" if changes else op, found)

    def is_failure(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether a result reports a failure, by the wire format or by its text."""
        op = self.ops.get(call.name)
        return result.is_error if op is None else result.is_error or _fails(self, op, result.text)

    def lines_shown(self, call: ToolCall, result: ToolResult) -> ShownText | None:
        """Return the lines of a file in a result; None if uncertain."""
        if self.is_failure(call, result) or result.images:
            return None
        return _lines_of_result(self, call.name, call.arguments, result.text)

    def is_repeat(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether a result is the client's own note that an earlier read showed the same."""
        return self.ops.get(call.name) == "read" and self.repeat.fullmatch(result.text.strip()) is not None

    def is_empty(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether a result is the client's own notice that a file is empty."""
        return self.ops.get(call.name) == "read" and self.empty.fullmatch(result.text.strip()) is not None

    def annotate(self, message: Message, calls: Mapping[str, ToolCall] | None = None) -> Message:
        """Add to a message from the wire the accesses of calls, and the tool, failure and lines of results.

        calls: the calls that it may answer, by id. Present values stay.
        """
        known = {} if calls is None else calls
        blocks = tuple(self._annotate(block, known) for block in message.blocks)
        same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
        return message if same else replace(message, blocks=blocks)

    def _annotate(self, block: Block, calls: Mapping[str, ToolCall]) -> Block:
        if isinstance(block, ToolCall) and not block.accesses:
            found = self.effect_of(block).accesses
            return replace(block, accesses=found) if found else block
        call = calls.get(block.call_id) if isinstance(block, ToolResult) else None
        if call is None or not isinstance(block, ToolResult):
            return block
        shown = None if block.shown is not None else self.lines_shown(call, block)
        lines = None if shown is None else ShownLines(shown.first, len(shown.lines), shown.total)
        told = (block.name or call.name, self.is_failure(call, block), block.shown or lines)
        if told == (block.name, block.is_error, block.shown):
            return block
        return replace(block, name=told[0], is_error=told[1], shown=told[2])


@dataclass(frozen=True, slots=True)
class InterpretedResult:
    """A profile's reading of a result and its call.

    effect: the effect of the call.
    is_failure: whether the result reports a failure.
    is_repeat: whether the result is the client's own note that an earlier read showed the same.
    shown: the lines of a file in the result; None if uncertain.
    """

    effect: CallEffect
    is_failure: bool
    is_repeat: bool
    shown: ShownText | None


@lru_cache(maxsize=32)  # asked when a result is answered and when it was sent
def reading_of(profile: Profile, call: ToolCall, result: ToolResult) -> InterpretedResult:
    """Return a profile's reading of a result and its call."""
    return InterpretedResult(
        profile.effect_of(call),
        profile.is_failure(call, result),
        profile.is_repeat(call, result),
        profile.lines_shown(call, result),
    )


@lru_cache(maxsize=32)  # asked when a result comes and when it is read
def _fails(profile: Profile, op: Op, text: str) -> bool:
    found = None if profile.envelope is None else profile.envelope.match(text)
    if found is not None:
        return int(found[1]) != 0
    # a client reports a failure at one of the ends; a look there alone keeps big outputs cheap
    ends = text if len(text) <= 2 * _END else f"{text[:_END]}\0{text[-_END:]}"
    return any(profile.fails.get(kind, _FAILS).search(ends) is not None for kind in (op, "any"))


@lru_cache(maxsize=16)
def _lines_of_result(profile: Profile, name: str, arguments: str, text: str) -> ShownText | None:
    """Return the lines of a file in the result of a successful call."""
    meaning = profile.effect_of(ToolCall("", name, arguments))
    if len(meaning.accesses) != 1 or meaning.accesses[0].op != "read" or profile.torn.search(text) is not None:
        return None
    if meaning.op == "read":
        return lines_shown_by(profile.layouts, meaning.accesses[0], arguments_of(arguments), text)
    return _shown_by_shell(profile, arguments, text) if meaning.op == "exec" else None


def _shown_by_shell(profile: Profile, arguments: str, text: str) -> ShownText | None:
    """Return the lines of a file from a plain viewing command."""
    read = exact_read(arguments_of(arguments))
    found = None if profile.envelope is None else profile.envelope.match(text)
    if read is None or (found is None) != (profile.envelope is None):
        return None
    shown = raw_text(read, text, found.end() if found is not None else 0)
    return None if shown is None or (profile.trims and not _is_certain(read, shown)) else shown


def _is_certain(read: ExactRead, shown: ShownText) -> bool:
    """Return whether no line can be missing at the beginning: numbered lines, or as many as were asked for."""
    return read.numbered or (read.last is not None and len(shown.lines) == read.last - read.first + 1)


# --- the files of a call ---


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

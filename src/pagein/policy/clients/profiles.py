"""The known clients, as data, and their recognition. Texts: measured (docs/clients.md).

A tool's schema names a client better than a header does: behind one program name there are sub-agents and forks with
other tools. So only tools decide.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pagein.model.fields import object_at, objects, text
from pagein.model.messages import ToolCall
from pagein.policy.clients.line_layouts import LineLayout
from pagein.policy.clients.profile import EDITS, READS, SHELLS, WRITES, Op, Profile, arguments_of

_NOTHING: Final = re.compile(r"")
_NEVER: Final = re.compile(r"(?!)")
_REMINDERS: Final = re.compile(r"\s*(?:<system-reminder>.*</system-reminder>)?\s*", re.DOTALL)

CLAUDE_CODE: Final = Profile(
    "claude-code",
    ops={
        "Read": "read",
        "NotebookRead": "read",
        "Edit": "edit",
        "MultiEdit": "edit",
        "NotebookEdit": "edit",
        "Write": "write",
        "Bash": "exec",
        "PowerShell": "exec",
        "LS": "list",
        "Glob": "list",
        "Grep": "search",
    },
    layouts=(
        LineLayout(
            re.compile(r"(?:<system-reminder>[^\n]*</system-reminder>\n)?"),
            r"[ ]*(\d+)(?:\t|→|(?=\Z))",
            _REMINDERS,
            cuts=True,
        ),
    ),
    fails={"any": re.compile(r"\A<tool_use_error>"), "exec": re.compile(r"\AExit code [1-9]\d*(?:\n|\Z)")},
    torn=re.compile(r"\n\n?\.\.\. \[\d+ (?:lines|characters) truncated\] \.\.\.|<persisted-output>"),
    repeat=re.compile(
        r"(?:Wasted call — file unchanged since your last Read\. Refer to that earlier tool_result instead\."
        r"|File unchanged since last read\. The content from the earlier Read tool_result in this conversation is still current"
        r" — refer to that instead of re-reading\.)\s*(?:<system-reminder>.*</system-reminder>)?",
        re.DOTALL,
    ),
    empty=re.compile(r"<system-reminder>Warning: the file exists but the contents are empty\.</system-reminder>"),
    verified=re.compile(  # not the result of an edit on a file that "had been modified on disk since you last read it"
        # linear in time: the first part is atomic, and the tail begins at one place
        r"(?>The file [^\n]+? has been updated)(?:"
        r" successfully\.(?: \(file state is current in your context[^\n)]*\))?"
        r"\s*(?:<system-reminder>.*</system-reminder>\s*)?\Z"
        r"|\. All occurrences .*(?:'|were successfully replaced)\.(?: \(file state is current in your context[^\n)]{0,200}\))?\s*\Z"
        r"|\. Here's the result of running `cat -n` on a snippet)"
        r"|Applied \d+ edits? to ",
        re.DOTALL,
    ),
    altered=re.compile(r"\bThe user modified your proposed changes before accepting them\."),
)

CODEX: Final = Profile(
    "codex",
    ops={
        "exec_command": "exec",
        "shell": "exec",
        "shell_command": "exec",
        "local_shell": "exec",
        "apply_patch": "edit",
        "view_image": "other",
    },
    fails={
        "any": re.compile(
            r"\A(?:apply_patch verification failed|execution error|exec_command failed|failed to parse function arguments)"
        ),
        "exec": re.compile(r'"metadata":\{"exit_code":-?[1-9]\d*,"duration_seconds":[\d.]+\}\}\Z'),
    },
    envelope=re.compile(
        r"\A(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?(?:Process exited with code |Exit code: )(-?\d+)\n"
        r"(?:(?:Wall time|Original token count|Total output lines): [^\n]*\n)*Output:\n"
    ),
    torn=re.compile(
        r"Warning: truncated output \(|…\d+ (?:chars|tokens|lines) truncated…|\[\.\.\. omitted \d+ of \d+ "
    ),
    trims=False,
    counts_last=False,
)

OPENCODE: Final = Profile(
    "opencode",
    ops={
        "read": "read",
        "edit": "edit",
        "multiedit": "edit",
        "patch": "edit",
        "apply_patch": "edit",
        "write": "write",
        "bash": "exec",
        "list": "list",
        "glob": "list",
        "grep": "search",
    },
    layouts=(
        LineLayout(
            re.compile(r"<path>[^\n]*</path>\n<type>file</type>\n<content>\n?"),
            r"(\d+): ",
            re.compile(
                r"\n\n\((?:(?:End of file - total |Showing lines \d+-\d+ of )(?P<total>\d+)(?: lines?|\. Use offset=\d+ to continue\.)"
                r"|Output capped at [^\n]*? Showing lines \d+-\d+\. Use offset=(?P<next>\d+) to continue\.)\)\n</content>"
                r"\s*(?:<system-reminder>.*</system-reminder>)?\s*",
                re.DOTALL,
            ),
        ),
        LineLayout(  # its versions before 1.1
            re.compile(r"<file>\n"),
            r"(\d{5,})\| ",
            re.compile(
                r"\n\n\((?:End of file - total (?P<total>\d+) lines?|(?:File has more lines|Output truncated at [^\n]*?)\."
                r" Use 'offset' parameter to read beyond line (?P<next>\d+))\)\n</file>\s*(?:<system-reminder>.*</system-reminder>)?\s*",
                re.DOTALL,
            ),
        ),
    ),
    fails={
        "any": re.compile(r"\AError: |\AThe [^\n]* tool was called with invalid arguments|\ATool execution aborted\Z"),
        "read": re.compile(
            r"\A(?:File not found: |Offset \d+ is out of range for this file|Cannot read binary file: )"
        ),
        "edit": re.compile(
            r"\A(?:oldString not found in content|Found multiple matches for oldString|apply_patch verification failed"
            r"|oldString and newString must be different|Could not find oldString|File [^\n]* not found)"
        ),
        "exec": re.compile(r"<bash_metadata>\n(?:bash tool terminated|User aborted)"),
    },
    torn=re.compile(r"\.\.\.output truncated\.\.\.|\nFull output saved to: "),
    counts_last=False,
)

PI: Final = Profile(
    "pi",
    ops={
        "read": "read",
        "edit": "edit",
        "write": "write",
        "bash": "exec",
        "ls": "list",
        "find": "list",
        "grep": "search",
    },
    layouts=(
        LineLayout(
            _NOTHING,
            "",
            re.compile(
                r"\n\n\[(?:(?P<more>\d+) more lines in file"
                r"|Showing lines \d+-\d+ of (?P<total>\d+)(?: \([\d.]+[KM]?B limit\))?)\. Use offset=(?P<next>\d+) to continue\.?\]\Z"
            ),
        ),
    ),
    fails={
        "any": re.compile(r'\ATool [^\n]* not found\Z|\AValidation failed for tool "'),
        "read": re.compile(
            r"\A(?:(?:ENOENT|EISDIR|EACCES|ENOTDIR): [^\n]*|Offset \S+ is beyond end of file \(\d+ lines total\)|Operation aborted)\Z"
        ),
        "write": re.compile(r"\A(?:ENOENT|EISDIR|EACCES|ENOTDIR): [^\n]*\Z|\AOperation aborted\Z"),
        "edit": re.compile(
            r"\A(?:Could not find |Found \d+ occurrences of |No changes made to |File not found: |Operation aborted|(?:ENOENT|EISDIR|EACCES): )"
        ),
        "exec": re.compile(
            r"(?:\A|\n\n)(?:Command exited with code -?[1-9]\d*|Command timed out after [^\n]*|Command aborted)\Z"
        ),
    },
    torn=re.compile(
        r"\[Showing [^\n]{0,200}Full output: [^\n]{0,1000}\]\Z"
        r"|\A\(see attached image\)\Z"  # in place of an empty text, for APIs of OpenAI
        r"|\A\[Line \d+ is [\d.]+[KMG]?B, exceeds"
    ),
    trims=False,
)

GEMINI_CLI: Final = Profile(
    "gemini-cli",
    ops={  # read_many_files is plain output: it names patterns, and shows several files in one text
        "read_file": "read",
        "replace": "edit",
        "write_file": "write",
        "run_shell_command": "exec",
        "list_directory": "list",
        "glob": "list",
        "grep_search": "search",
        "search_file_content": "search",
    },
    layouts=(
        LineLayout(  # a part of a file, or a file with lines that were cut
            re.compile(
                r"\nIMPORTANT: The file content has been truncated\.\n"
                r"Status: Showing lines (?P<first>\d{1,9})-(?P<last>\d{1,9}) of (?P<total>\d{1,9}) total lines\.\n"
                r"Action: (?:[^\n]*\n){1,8}?\n--- FILE CONTENT \(truncated\) ---\n"
            ),
            "",
            _NEVER,
        ),
        LineLayout(
            re.compile(
                r"(?!\nIMPORTANT: The file content has been truncated|\[File content truncated|Showing lines \d)"
            ),
            "",
            _NEVER,
            whole=True,
        ),
    ),
    fails={
        "any": re.compile(r"\A\[Operation Cancelled\] "),
        "read": re.compile(r"\ACannot display content of (?:binary file|SVG file larger than 1MB): [^\n]*\Z"),
        "exec": re.compile(
            r"\ACommand was (?:cancelled by user before|automatically cancelled because) "
            r"|\nExit Code: -?[1-9]\d*(?:\n(?:Signal|Background PIDs|Process Group PGID): [^\n]*)*\Z"
        ),
    },
    envelope=_NEVER,  # its shell's output went through a terminal: wrapped and trimmed, it proves nothing
    torn=re.compile(  # what it appends is told apart from the file by its words alone, and so proves nothing
        r"\.\.\. \[truncated\](?:\n|\Z)|\n--- Newly Discovered Project Context ---\n|<hook_context>"
        r"|\n\[System\] Tool input parameters [^\n]*modified by a hook|\n\.\.\. \[[\d,.]+ characters omitted\] \.\.\.\n"
        r'|\AOutput too large\. Showing |\A\{"(?:output|error)":'
    ),
    altered=re.compile(r"\b(?:User|The confirmation step) modified the `(?:content|new_string)` "),
)


def _by_names() -> Iterator[tuple[str, Op]]:
    table: tuple[tuple[frozenset[str], Op], ...] = (
        (READS, "read"),
        (EDITS, "edit"),
        (WRITES, "write"),
        (SHELLS, "exec"),
    )
    for names, op in table:
        for name in names:
            yield name, op
            yield name.capitalize(), op


OTHER: Final = Profile("other", ops=dict(_by_names()), torn=_NOTHING, proves=False)
"""Any other client: tools of a known name touch the files that they name, and results prove nothing."""

PROFILES: Final[Mapping[str, Profile]] = {
    one.name: one for one in (CLAUDE_CODE, CODEX, OPENCODE, PI, GEMINI_CLI, OTHER)
}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool in a request.

    arguments: names of the arguments in its schema.
    """

    name: str
    arguments: frozenset[str] = frozenset()


_TELLING: Final[tuple[tuple[Profile, str, frozenset[str]], ...]] = (
    (CLAUDE_CODE, "Read", frozenset({"file_path"})),
    (CODEX, "exec_command", frozenset({"cmd"})),
    (CODEX, "shell_command", frozenset({"command"})),
    (CODEX, "local_shell", frozenset()),
    (OPENCODE, "read", frozenset({"filePath"})),
    (OPENCODE, "edit", frozenset({"filePath"})),
    (PI, "read", frozenset({"path"})),
    (PI, "edit", frozenset({"path"})),
    (CLAUDE_CODE, "Edit", frozenset({"file_path"})),
    (CLAUDE_CODE, "Bash", frozenset({"command"})),
    (CODEX, "apply_patch", frozenset()),
    (GEMINI_CLI, "replace", frozenset({"file_path", "instruction"})),
    (GEMINI_CLI, "run_shell_command", frozenset({"command", "dir_path"})),
)
"""Tools with their required arguments, each typical of one client; the first offered tool decides."""


def profile_of(tools: Iterable[ToolSpec]) -> Profile:
    """Return a client's profile by the tools that it offers, `OTHER` for an unknown client."""
    offered = {one.name: one.arguments for one in tools}
    found = (one for one, name, arguments in _TELLING if name in offered and arguments <= offered[name])
    return next(found, OTHER)


def profile_by_calls(calls: Iterable[ToolCall]) -> Profile:
    """Return the profile of the client behind these calls, for conversations without recorded tools.

    A tool counts as having every argument that it was ever given.
    """
    given: dict[str, set[str]] = {}
    for call in calls:
        given.setdefault(call.name, set()).update(arguments_of(call.arguments))
    return profile_of(ToolSpec(name, frozenset(arguments)) for name, arguments in given.items())


def tools_of(value: object) -> tuple[ToolSpec, ...]:
    """Return the tools of a request from its decoded field `tools`, in any of the three wire formats."""
    return tuple(_specs(value))


def _specs(value: object) -> Iterator[ToolSpec]:
    for row in objects(value):
        inner = object_at(row, "function") or row
        name = text(inner, "name") or text(row, "type")
        schema = object_at(inner, "input_schema") or object_at(inner, "parameters")
        if name:
            yield ToolSpec(name, frozenset(object_at(schema, "properties")))
        if text(row, "type") == "namespace":
            yield from _specs(row.get("tools"))

"""What the tools of each client mean, and what their results show: the exact texts of each."""

import json
from typing import Any

import pytest
from tests.policy.clients.working_clients import GEMINI_HEAD

from pagein.model.messages import Image, Message, Text, ToolCall, ToolResult
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import (
    CLAUDE_CODE,
    CODEX,
    GEMINI_CLI,
    OPENCODE,
    OTHER,
    PI,
    PROFILES,
    ToolSpec,
    profile_of,
    tools_of,
)

CODEX_HEAD = (
    "Chunk ID: 2a1733\nWall time: 0.0000 seconds\nProcess exited with code {}\nOriginal token count: 58\nOutput:\n"
)


def call(name: str, **arguments: Any) -> ToolCall:  # noqa: ANN401 -- arguments of tools are anything
    return ToolCall("c1", name, json.dumps(arguments))


def result(text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult("c1", text, is_error=is_error)


READ = call("Read", file_path="/shop/a.py")
OPEN_READ = call("read", filePath="/shop/a.py")
PI_READ = call("read", path="a.py")
GEMINI_READ = call("read_file", file_path="a.py")
GEMINI_PART = call("read_file", file_path="a.py", start_line=2, end_line=3)
GEMINI_3_HEAD = (
    "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 2-3 of 9 total lines.\nAction: \n"
    "- To find specific patterns, use the 'grep_search' tool.\n- For surgical extraction of code blocks, prefer sed.\n"
    "- You can also use other Unix utilities.\n\n--- FILE CONTENT (truncated) ---\n"
)


@pytest.mark.parametrize(
    ("profile", "asked", "text", "expected"),
    [
        (CLAUDE_CODE, READ, "1\tx = 1\n2\ty = 2\n3\t", (1, ("x = 1", "y = 2", ""), 3)),
        (CLAUDE_CODE, READ, "     1→x = 1\n     2→y = 2", (1, ("x = 1", "y = 2"), 2)),
        (CLAUDE_CODE, call("Read", file_path="a", offset=7, limit=2), "7\tg\n8\th", (7, ("g", "h"), None)),
        (CLAUDE_CODE, call("Read", file_path="a", offset=7, limit=9), "7\tg\n8\th", (7, ("g", "h"), 8)),
        (CLAUDE_CODE, READ, "1\tx\n\n<system-reminder>\nmind\n</system-reminder>\n", (1, ("x",), 1)),
        (CLAUDE_CODE, READ, "1\tx\n2\n\n<system-reminder>\nmind\n</system-reminder>", (1, ("x", ""), 2)),
        (CLAUDE_CODE, READ, "<system-reminder>old</system-reminder>\n1\tx", (1, ("x",), 1)),
        (
            OPENCODE,
            OPEN_READ,
            "<path>/shop/a.py</path>\n<type>file</type>\n<content>\n1: a\n2: \n\n(End of file - total 2 lines)\n</content>",
            (1, ("a", ""), 2),
        ),
        (
            OPENCODE,
            call("read", filePath="a", offset=5, limit=3),
            "<path>a</path>\n<type>file</type>\n<content>5: a\n6: b\n7: c\n\n(Showing lines 5-7 of 30. Use offset=8 to continue.)\n</content>",
            (5, ("a", "b", "c"), 30),
        ),
        (
            OPENCODE,
            OPEN_READ,
            "<path>a</path>\n<type>file</type>\n<content>\n1: a\n\n(Output capped at 50 KB. Showing lines 1-1. Use offset=2 to continue.)\n</content>",
            (1, ("a",), None),
        ),
        (
            OPENCODE,
            OPEN_READ,
            "<file>\n00001| a\n00002| b\n\n(End of file - total 2 lines)\n</file>",
            (1, ("a", "b"), 2),
        ),
        (
            OPENCODE,
            OPEN_READ,
            "<file>\n00001| a\n\n(File has more lines. Use 'offset' parameter to read beyond line 1)\n</file>",
            (1, ("a",), None),
        ),
        (PI, PI_READ, "one\ntwo\n", (1, ("one", "two", ""), 3)),
        (PI, PI_READ, "one\n\n[Showing lines 1-1 of 2501. Use offset=2 to continue.]", (1, ("one",), 2501)),
        (
            PI,
            PI_READ,
            "one\ntwo\n\n[Showing lines 1-2 of 9 (50.0KB limit). Use offset=3 to continue.]",
            (1, ("one", "two"), 9),
        ),
        (
            PI,
            call("read", path="a", offset=2, limit=1),
            "two\n\n[3 more lines in file. Use offset=3 to continue.]",
            (2, ("two",), 5),
        ),
        (
            CODEX,
            call("exec_command", cmd="sed -n '3,4p' a.py", workdir="/shop"),
            CODEX_HEAD.format(0) + "c\nd\n",
            (3, ("c", "d"), None),
        ),
        (
            CODEX,
            call("shell", command=["bash", "-lc", "cat a.py"]),
            "Exit code: 0\nWall time: 0 seconds\nOutput:\na\nb\n",
            (1, ("a", "b"), None),
        ),
        (
            CODEX,
            call("exec_command", cmd="nl -ba a.py | sed -n '2,3p'"),
            CODEX_HEAD.format(0) + "     2\tb\n     3\tc\n",
            (2, ("b", "c"), None),
        ),
        (CLAUDE_CODE, call("Bash", command="cat -n a.py"), "     1\ta\n     2\tb", (1, ("a", "b"), None)),
        (CLAUDE_CODE, call("Bash", command="sed -n '2,3p' a.py"), "b\nc", (2, ("b", "c"), None)),
        (PI, call("bash", command="head -n 2 a.py"), "a\nb\n", (1, ("a", "b"), None)),
        (GEMINI_CLI, GEMINI_READ, "one\ntwo\n", (1, ("one", "two", ""), 3)),
        (GEMINI_CLI, call("read_file", absolute_path="/shop/a.py"), "one\ntwo", (1, ("one", "two"), 2)),
        (GEMINI_CLI, call("read_file", file_path="a.py", start_line=1, end_line=9), "one\ntwo", (1, ("one", "two"), 2)),
        (GEMINI_CLI, GEMINI_READ, GEMINI_HEAD.format(1, 2, 2001) + "one\ntwo", (1, ("one", "two"), 2001)),
        (GEMINI_CLI, GEMINI_PART, GEMINI_HEAD.format(2, 3, 9) + "two\nthree", (2, ("two", "three"), 9)),
        (GEMINI_CLI, GEMINI_PART, GEMINI_3_HEAD + "two\n", (2, ("two", ""), 9)),
    ],
)
def test_a_result_shows_the_lines_that_its_text_and_its_call_tell(
    profile: Profile, asked: ToolCall, text: str, expected: tuple[int, tuple[str, ...], int | None]
) -> None:
    shown = profile.lines_shown(asked, result(text))
    assert shown is not None
    assert (shown.first, shown.lines, shown.total) == expected
    assert shown.with_text(text, "\n".join(shown.rows(text))) == text


@pytest.mark.parametrize(
    ("profile", "asked", "text"),
    [
        (CLAUDE_CODE, READ, "2\tx\n3\ty"),  # not what was asked for
        (CLAUDE_CODE, READ, "1\tx\n2\ty\nand more"),
        (CLAUDE_CODE, call("Read", file_path="a", offset=0, limit=2), "0\tx\n1\ty"),
        (CLAUDE_CODE, call("Read", file_path="a", offset=1.5), "1\tx"),
        (CLAUDE_CODE, READ, "1\t" + "x" * 2000),  # cut there, so not the line
        (CLAUDE_CODE, READ, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"),
        (
            CLAUDE_CODE,
            call("Bash", command="cat a.py"),
            "a\nb",
        ),  # blank lines at the beginning are lost in its output
        (CLAUDE_CODE, call("Bash", command="sed -n '2,9p' a.py"), "b\nc"),
        (OPENCODE, OPEN_READ, "<path>/shop</path>\n<type>directory</type>\n<entries>\na\n\n(1 entries)\n</entries>"),
        (
            OPENCODE,
            OPEN_READ,
            "<path>a</path>\n<type>file</type>\n<content>\n1: a\n3: b\n\n(End of file - total 3 lines)\n</content>",
        ),
        (
            OPENCODE,
            OPEN_READ,
            "<path>a</path>\n<type>file</type>\n<content>\n1: a\n2: b\n\n(End of file - total 1 lines)\n</content>",
        ),
        (PI, PI_READ, "(see attached image)"),
        (PI, PI_READ, ""),
        (PI, PI_READ, "[Line 1 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '1p' a | head -c 51200]"),
        (PI, PI_READ, "ENOENT: no such file or directory, access '/shop/a.py'"),
        (PI, PI_READ, "one\n\n[3 more lines in file. Use offset=9 to continue.]"),
        (CODEX, call("exec_command", cmd="cat a.py"), CODEX_HEAD.format(1) + "cat: a.py: no such file\n"),
        (CODEX, call("exec_command", cmd="cat a.py"), "Process running with session ID 4\nOutput:\na\n"),
        (
            CODEX,
            call("exec_command", cmd="cat a.py"),
            CODEX_HEAD.format(0)
            + "Warning: truncated output (original token count: 27224)\nTotal output lines: 20000\n\na\n",
        ),
        (CODEX, call("exec_command", cmd="cat a.py; cat b.py"), CODEX_HEAD.format(0) + "a\nb\n"),
        (CODEX, call("exec_command", cmd="sed -n '3,4p' a.py"), CODEX_HEAD.format(0) + "a\nb\nc\n"),
        (GEMINI_CLI, GEMINI_READ, ""),
        (GEMINI_CLI, GEMINI_PART, "<svg>\n</svg>"),  # shown whole, whatever lines were asked for
        (GEMINI_CLI, call("read_file", file_path="a.svg", end_line=2), "<svg>\n<g/>\n</svg>"),
        (GEMINI_CLI, GEMINI_PART, GEMINI_HEAD.format(3, 4, 9) + "three\nfour"),  # not what was asked for
        (GEMINI_CLI, GEMINI_PART, GEMINI_HEAD.format(2, 3, 9) + "two"),
        (GEMINI_CLI, GEMINI_PART, GEMINI_HEAD.format(2, 3, "9" * 5000) + "two\nthree"),
        (GEMINI_CLI, GEMINI_PART, GEMINI_HEAD.format(2, 3, 2) + "two\nthree"),
        (GEMINI_CLI, call("read_file", absolute_path="a", offset=5, limit=1), GEMINI_HEAD.format(6, 6, 9) + "six"),
        (GEMINI_CLI, call("read_file", file_path="a", start_line=0), "one"),
        (GEMINI_CLI, GEMINI_READ, GEMINI_HEAD.format(1, 2, 2) + "x" * 1000 + "... [truncated]\ntwo"),
        (GEMINI_CLI, GEMINI_READ, "one\n\n--- Newly Discovered Project Context ---\nmind\n--- End Project Context ---"),
        (GEMINI_CLI, GEMINI_READ, "one\n\n[System] Tool input parameters were modified by a hook before execution."),
        (GEMINI_CLI, GEMINI_READ, "one\n\n<hook_context>mind</hook_context>"),
        (GEMINI_CLI, GEMINI_READ, "[File content truncated: showing lines 1-2 of 9 total lines.]\none\ntwo"),
        (
            GEMINI_CLI,
            GEMINI_READ,
            "Showing lines 1-2 of 9 total lines.\n\n---\n\none\ntwo",
        ),  # as its fork Qwen Code says it
        (GEMINI_CLI, GEMINI_READ, '{"output":"one"}'),  # as a proxy may translate it
        (GEMINI_CLI, GEMINI_READ, "Cannot display content of binary file: a.py"),
        (GEMINI_CLI, call("read_many_files", include=["a.py"]), "--- a.py ---\n\none\n\n--- End of content ---"),
        (
            GEMINI_CLI,
            call("run_shell_command", command="sed -n '1,3p' a.py"),
            "Output: one\ntwo\nProcess Group PGID: 7",
        ),  # of its shell nothing is certain
        (OTHER, call("read", path="a.py"), "1\tx"),
        (PI, call("mcp_read", path="a.py"), "x"),
    ],
)
def test_what_cannot_be_told_exactly_is_not_told(profile: Profile, asked: ToolCall, text: str) -> None:
    assert profile.lines_shown(asked, result(text)) is None


def test_a_result_with_an_image_or_an_error_shows_no_lines() -> None:
    assert CLAUDE_CODE.lines_shown(READ, ToolResult("c1", "1\tx", images=(Image("image/png", 9),))) is None
    assert CLAUDE_CODE.lines_shown(READ, result("1\tx", is_error=True)) is None


@pytest.mark.parametrize(
    ("profile", "asked", "text", "failed"),
    [
        (CODEX, call("exec_command", cmd="make"), CODEX_HEAD.format(2) + "no rule\n", True),
        (CODEX, call("exec_command", cmd="make"), CODEX_HEAD.format(0) + "Process exited with code 1\n", False),
        (CODEX, call("shell", command=["make"]), "Exit code: 1\nWall time: 0 seconds\nOutput:\n", True),
        (
            CODEX,
            call("shell", command=["make"]),
            '{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}',
            True,
        ),
        (
            CODEX,
            call("apply_patch", input="*** Begin Patch"),
            "apply_patch verification failed: Failed to find expected lines in a.py",
            True,
        ),
        (PI, call("bash", command="make"), "no rule\n\nCommand exited with code 2", True),
        (PI, call("bash", command="make"), "Command exited with code 2 was what it said\n", False),
        (
            PI,
            call("edit", path="a"),
            "Could not find the exact text in a. The old text must match exactly including all whitespace and newlines.",
            True,
        ),
        (
            PI,
            call("edit", path="a"),
            "Found 11 occurrences of the text in a. The text must be unique. Please provide more context to make it unique.",
            True,
        ),
        (PI, call("edit", path="a"), "Successfully replaced 2 block(s) in a.txt.", False),
        (PI, PI_READ, "Offset 99 is beyond end of file (31 lines total)", True),
        (PI, call("read"), 'Validation failed for tool "read":\n  - path: must have', True),
        (
            CLAUDE_CODE,
            call("Edit", file_path="a"),
            "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
            True,
        ),
        (CLAUDE_CODE, call("Bash", command="make"), "Exit code 1\nno rule", True),
        (OPENCODE, OPEN_READ, "File not found: /shop/a.py", True),
        (OPENCODE, OPEN_READ, "Offset 99 is out of range for this file (30 lines)", True),
        (OPENCODE, call("edit", filePath="a"), "Edit applied successfully.", False),
        (GEMINI_CLI, GEMINI_READ, "Cannot display content of binary file: a.bin", True),
        (GEMINI_CLI, GEMINI_READ, "[Operation Cancelled] User cancelled tool execution.", True),
        (
            GEMINI_CLI,
            call("run_shell_command", command="make"),
            "Output: no rule\nExit Code: 2\nProcess Group PGID: 7",
            True,
        ),
        (GEMINI_CLI, call("run_shell_command", command="make"), "Output: Exit Code: 2\nProcess Group PGID: 7", False),
        (
            GEMINI_CLI,
            call("run_shell_command", command="make"),
            "Output: x\nError: (none)\nExit Code: 0\nSignal: (none)",
            False,
        ),
        (OTHER, call("bash", command="make"), "Exit code 1\nno rule", False),
    ],
)
def test_a_failure_is_told_by_the_text_where_the_wire_has_no_word_for_it(
    profile: Profile, asked: ToolCall, text: str, *, failed: bool
) -> None:
    assert profile.is_failure(asked, result(text)) is failed


@pytest.mark.parametrize(
    ("profile", "asked", "op", "accesses"),
    [
        (CLAUDE_CODE, call("Read", file_path="a", offset=5, limit=2), "read", [("read", "a", 5, 6)]),
        (CLAUDE_CODE, call("Write", file_path="a", content="x"), "write", [("write", "a", None, None)]),
        (
            CLAUDE_CODE,
            call("Edit", file_path="a", old_string="x", new_string="y"),
            "edit",
            [("edit", "a", None, None)],
        ),
        (CLAUDE_CODE, call("Grep", pattern="x", path="a"), "search", []),
        (CLAUDE_CODE, call("Glob", pattern="*.py"), "list", []),
        (CLAUDE_CODE, call("mcp__files__Read", file_path="a"), "other", []),
        (CODEX, call("exec_command", cmd="sed -n '1,9p' a | grep x"), "exec", []),
        (CODEX, call("exec_command", cmd="sed -n '1,9p' a"), "exec", [("read", "a", 1, 9)]),
        (
            CODEX,
            call("shell", command=["apply_patch", "*** Begin Patch\n*** Update File: a\n*** End Patch"]),
            "edit",
            [("edit", "a", None, None)],
        ),
        (OPENCODE, call("apply_patch", patchText="*** Begin Patch\n*** Add File: a\n+x"), "edit", [("write", "a", None, None)]),
        (PI, call("edit", path="a", edits=[{"oldText": "x", "newText": "y"}]), "edit", [("edit", "a", None, None)]),
        (PI, call("nosuch", path="a"), "other", []),
        (GEMINI_CLI, GEMINI_PART, "read", [("read", "a.py", 2, 3)]),
        (GEMINI_CLI, call("replace", file_path="a", old_string="x", new_string="y"), "edit", [("edit", "a", None, None)]),
        (GEMINI_CLI, call("write_file", file_path="a", content="x"), "write", [("write", "a", None, None)]),
        (GEMINI_CLI, call("run_shell_command", command="cat a", dir_path="/shop"), "exec", [("read", "/shop/a", None, None)]),
        (GEMINI_CLI, call("grep_search", pattern="x", dir_path="a"), "search", []),
        (GEMINI_CLI, call("read_many_files", include=["a"]), "other", []),
    ],
)  # fmt: skip
def test_a_call_means_what_the_profile_says(
    profile: Profile, asked: ToolCall, op: str, accesses: list[tuple[str, str, int | None, int | None]]
) -> None:
    meaning = profile.effect_of(asked)
    assert meaning.op == op
    assert [(one.op, one.path, one.start, one.end) for one in meaning.accesses] == accesses


def _spec(name: str, *arguments: str) -> ToolSpec:
    return ToolSpec(name, frozenset(arguments))


@pytest.mark.parametrize(
    ("tools", "name"),
    [
        ([_spec("Bash", "command"), _spec("Read", "file_path", "offset", "limit")], "claude-code"),
        ([_spec("exec_command", "cmd", "workdir"), _spec("apply_patch")], "codex"),
        ([_spec("read", "filePath"), _spec("apply_patch", "patchText")], "opencode"),
        ([_spec("read", "path", "offset", "limit"), _spec("bash", "command")], "pi"),
        (
            [_spec("read_file", "file_path", "start_line"), _spec("run_shell_command", "command", "dir_path")],
            "gemini-cli",
        ),
        ([_spec("read_file", "absolute_path", "offset", "limit")], "other"),  # Qwen Code has it too
        ([_spec("run_shell_command", "command", "directory")], "other"),
        ([_spec("lookup", "query")], "other"),
        ([], "other"),
    ],
)
def test_a_client_is_known_by_its_tools(tools: list[ToolSpec], name: str) -> None:
    assert profile_of(tools) is PROFILES[name]


def test_tools_are_read_off_all_three_wire_formats() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    expected = (ToolSpec("read", frozenset({"path"})),)
    assert tools_of([{"name": "read", "input_schema": schema}]) == expected
    assert tools_of([{"type": "function", "function": {"name": "read", "parameters": schema}}]) == expected
    assert tools_of([{"type": "function", "name": "read", "parameters": schema}]) == expected
    assert tools_of([{"type": "local_shell"}]) == (ToolSpec("local_shell"),)
    assert tools_of([{"type": "namespace", "name": "x", "tools": [{"name": "read", "parameters": schema}]}])[1:] == (
        expected
    )
    assert tools_of(None) == tools_of("x") == tools_of([3, {}]) == ()


def test_a_message_off_the_wire_is_annotated_and_what_stands_there_stays() -> None:
    asked = Message("assistant", (Text("let me see"), call("exec_command", cmd="cat a.py")))
    told = CODEX.annotate(asked)
    found = told.blocks[1]
    assert isinstance(found, ToolCall)
    assert [one.path for one in found.accesses] == ["a.py"]
    answered = Message("tool", (result(CODEX_HEAD.format(1) + "no\n"),))
    block = CODEX.annotate(answered, {"c1": found}).blocks[0]
    assert isinstance(block, ToolResult)
    assert (block.name, block.is_error, block.shown) == ("exec_command", True, None)
    assert CODEX.annotate(told) is told
    assert CODEX.annotate(answered) is answered


def test_the_client_s_own_repeat_marker_is_known_with_a_reminder_behind_it() -> None:
    said = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
    assert CLAUDE_CODE.is_repeat(READ, result(said))
    assert CLAUDE_CODE.is_repeat(READ, result(f"{said}\n\n<system-reminder>\nmind\n</system-reminder>\n"))
    assert not CLAUDE_CODE.is_repeat(READ, result(f"1\t{said}"))
    assert not CLAUDE_CODE.is_repeat(call("Bash", command="x"), result(said))
    assert not PI.is_repeat(PI_READ, result(said))

"""How a model says to each agent: read this, edit that, run it. Values are items of the simulated provider's scripts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

Item: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Speech:
    """An agent's tools as its model calls them.

    read: a file, whole, given its path in the workspace. lines: so many lines of it, from one on (from 1). edit: one exact text in
    a file. run: a shell command. All take the workspace first: some agents ask for absolute paths.
    """

    read: Callable[[Path, str], Item]
    lines: Callable[[Path, str, int, int], Item]
    edit: Callable[[Path, str, str, str], Item]
    run: Callable[[Path, str], Item]


def patch(path: str, old: str, new: str) -> str:
    """One replacement of whole lines in the patch language of OpenAI's agents."""
    gone = "".join(f"-{line}\n" for line in old.split("\n"))
    come = "".join(f"+{line}\n" for line in new.split("\n"))
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{gone}{come}*** End Patch\n"


def call(tool: str, /, **args: object) -> Item:
    """A call of a tool."""
    return {"tool": tool, "args": args}


CLAUDE_CODE: Final = Speech(
    read=lambda root, path: call("Read", file_path=str(root / path)),
    lines=lambda root, path, first, count: call("Read", file_path=str(root / path), offset=first, limit=count),
    edit=lambda root, path, old, new: call("Edit", file_path=str(root / path), old_string=old, new_string=new),
    run=lambda _, command: call("Bash", command=command, description="Do what the job says"),
)
OPENCODE: Final = Speech(
    read=lambda root, path: call("read", filePath=str(root / path)),
    lines=lambda root, path, first, count: call("read", filePath=str(root / path), offset=first, limit=count),
    edit=lambda root, path, old, new: call("edit", filePath=str(root / path), oldString=old, newString=new),
    run=lambda _, command: call("bash", command=command, description="Do what the job says"),
)
# for models of OpenAI it offers their patch tool instead
OPENCODE_PATCHING: Final = Speech(
    read=OPENCODE.read,
    lines=OPENCODE.lines,
    edit=lambda root, path, old, new: call("apply_patch", patchText=patch(str(root / path), old, new)),
    run=OPENCODE.run,
)
PI: Final = Speech(
    read=lambda _, path: call("read", path=path),
    lines=lambda _, path, first, count: call("read", path=path, offset=first, limit=count),
    edit=lambda _, path, old, new: call("edit", path=path, edits=[{"oldText": old, "newText": new}]),
    run=lambda _, command: call("bash", command=command),
)
GEMINI: Final = Speech(
    read=lambda _, path: call("read_file", file_path=path),
    lines=lambda _, path, first, count: call("read_file", file_path=path, start_line=first, end_line=first + count - 1),
    edit=lambda _, path, old, new: call(
        "replace", file_path=path, instruction="Do what the job says", old_string=old, new_string=new
    ),
    run=lambda _, command: call("run_shell_command", command=command, description="Do what the job says"),
)
CODEX: Final = Speech(
    read=lambda _, path: call("exec_command", cmd=f"cat {path}"),
    lines=lambda _, path, first, count: call("exec_command", cmd=f"sed -n '{first},{first + count - 1}p' {path}"),
    edit=lambda _, path, old, new: {"tool": "apply_patch", "args": patch(path, old, new)},
    run=lambda _, command: call("exec_command", cmd=command),
)


def _code(source: str) -> Item:
    return {"tool": "exec", "args": source, "ns": "functions"}


def _command(command: str) -> Item:
    return _code(f"text((await tools.exec_command({json.dumps({'cmd': command})})).output);")


# from GPT-5.6 on its model writes programs that call the tools
CODEX_PROGRAMS: Final = Speech(
    read=lambda _, path: _command(f"cat {path}"),
    lines=lambda _, path, first, count: _command(f"sed -n '{first},{first + count - 1}p' {path}"),
    edit=lambda _, path, old, new: _code(f"text(await tools.apply_patch({json.dumps(patch(path, old, new))}));"),
    run=lambda _, command: _command(command),
)

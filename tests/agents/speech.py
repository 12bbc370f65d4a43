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
    a file. run: a shell command. write: a new file with a text. All take the workspace first: some agents ask for absolute paths.
    move, delete: of a file, where the agent has a tool for it; else a command does it.
    """

    read: Callable[[Path, str], Item]
    lines: Callable[[Path, str, int, int], Item]
    edit: Callable[[Path, str, str, str], Item]
    run: Callable[[Path, str], Item]
    write: Callable[[Path, str, str], Item]
    move: Callable[[Path, str, str], Item] | None = None
    delete: Callable[[Path, str], Item] | None = None


def patch(path: str, old: str, new: str) -> str:
    """One replacement of whole lines in the patch language of OpenAI's agents."""
    gone = "".join(f"-{line}\n" for line in old.split("\n"))
    come = "".join(f"+{line}\n" for line in new.split("\n"))
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{gone}{come}*** End Patch\n"


def added(path: str, text: str) -> str:
    """A new file in the patch language."""
    lines = "".join(f"+{line}\n" for line in text.removesuffix("\n").split("\n"))
    return f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"


def moved(path: str, to: str) -> str:
    """A renamed file in the patch language, which wants a change in it: its first line gets a mark."""
    return f"*** Begin Patch\n*** Update File: {path}\n*** Move to: {to}\n@@\n-NAMES = 1\n+NAMES = 2\n*** End Patch\n"


def deleted(path: str) -> str:
    """A deleted file in the patch language."""
    return f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"


def call(tool: str, /, **args: object) -> Item:
    """A call of a tool."""
    return {"tool": tool, "args": args}


CLAUDE_CODE: Final = Speech(
    read=lambda root, path: call("Read", file_path=str(root / path)),
    lines=lambda root, path, first, count: call("Read", file_path=str(root / path), offset=first, limit=count),
    edit=lambda root, path, old, new: call("Edit", file_path=str(root / path), old_string=old, new_string=new),
    run=lambda _, command: call("Bash", command=command, description="Do what the job says"),
    write=lambda root, path, text: call("Write", file_path=str(root / path), content=text),
)
OPENCODE: Final = Speech(
    read=lambda root, path: call("read", filePath=str(root / path)),
    lines=lambda root, path, first, count: call("read", filePath=str(root / path), offset=first, limit=count),
    edit=lambda root, path, old, new: call("edit", filePath=str(root / path), oldString=old, newString=new),
    run=lambda _, command: call("bash", command=command, description="Do what the job says"),
    write=lambda root, path, text: call("write", filePath=str(root / path), content=text),
)
# for models of OpenAI it offers their patch tool instead
OPENCODE_PATCHING: Final = Speech(
    read=OPENCODE.read,
    lines=OPENCODE.lines,
    edit=lambda root, path, old, new: call("apply_patch", patchText=patch(str(root / path), old, new)),
    run=OPENCODE.run,
    write=lambda root, path, text: call("apply_patch", patchText=added(str(root / path), text)),
    move=lambda root, path, to: call("apply_patch", patchText=moved(str(root / path), str(root / to))),
    delete=lambda root, path: call("apply_patch", patchText=deleted(str(root / path))),
)
PI: Final = Speech(
    read=lambda _, path: call("read", path=path),
    lines=lambda _, path, first, count: call("read", path=path, offset=first, limit=count),
    edit=lambda _, path, old, new: call("edit", path=path, edits=[{"oldText": old, "newText": new}]),
    run=lambda _, command: call("bash", command=command),
    write=lambda _, path, text: call("write", path=path, content=text),
)
GEMINI: Final = Speech(
    read=lambda _, path: call("read_file", file_path=path),
    lines=lambda _, path, first, count: call("read_file", file_path=path, start_line=first, end_line=first + count - 1),
    edit=lambda _, path, old, new: call(
        "replace", file_path=path, instruction="Do what the job says", old_string=old, new_string=new
    ),
    run=lambda _, command: call("run_shell_command", command=command, description="Do what the job says"),
    write=lambda _, path, text: call("write_file", file_path=path, content=text),
)
CODEX: Final = Speech(
    read=lambda _, path: call("exec_command", cmd=f"cat {path}"),
    lines=lambda _, path, first, count: call("exec_command", cmd=f"sed -n '{first},{first + count - 1}p' {path}"),
    edit=lambda _, path, old, new: {"tool": "apply_patch", "args": patch(path, old, new)},
    run=lambda _, command: call("exec_command", cmd=command),
    write=lambda _, path, text: {"tool": "apply_patch", "args": added(path, text)},
    move=lambda _, path, to: {"tool": "apply_patch", "args": moved(path, to)},
    delete=lambda _, path: {"tool": "apply_patch", "args": deleted(path)},
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
    write=lambda _, path, text: _code(f"text(await tools.apply_patch({json.dumps(added(path, text))}));"),
)

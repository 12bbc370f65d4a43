"""The command `blame`, registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

import json
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pagein.cli.archive_access import GivenWorkspace, in_archive, print_answer
from pagein.cli.options import AsJson, Store
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from pagein.ports import ObjectStore

_LINES: Final = re.compile(r"([0-9]{1,9})(?:[-,]([0-9]{1,9}))?")
_OF_A_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_LARGEST: Final = 16 * 1024 * 1024


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\npagein blame src/app.py\n\npagein blame src/app.py --line 10-40 --json\n\n"
        "pagein blame src/app.py --agent-trace >> traces.jsonl"
    )(blame)


def blame(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file, as it is on the disk now.")],
    *,
    line: Annotated[
        str | None, typer.Option("--line", "-L", metavar="A-B", help="Only these lines, from 1.", show_default="all")
    ] = None,
    agent_trace: Annotated[
        bool, typer.Option("--agent-trace", help="Print an Agent Trace record (0.1.0) instead.")
    ] = False,
    git_ai: Annotated[
        bool,
        typer.Option("--git-ai", help="Print the text of a git-ai note (authorship/3.0.0) for each commit instead."),
    ] = False,
    workspace: GivenWorkspace = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show which session, turn and request wrote each line of a file last: agent, person, mixed or unknown.

    A line whose writer the store cannot prove is `unknown`. Nothing is written, neither to git nor elsewhere.
    """
    if agent_trace + git_ai + as_json > 1:
        raise BadSetting("--json, --agent-trace and --git-ai are three forms of one answer; give one of them")
    lines = _range(line)
    answer = in_archive(store, workspace, lambda archive: _answer(archive.objects, file, lines))
    if agent_trace:
        _print_trace(answer)
    elif git_ai:
        _print_notes(answer)
    else:
        from pagein.ui.blame_views import show_blame

        print_answer(answer, show_blame, as_json=as_json)


def _answer(store: "ObjectStore", file: Path, lines: tuple[int, int] | None) -> dict[str, Any]:
    from pagein.tools.blame_commands import blame as answer_blame
    from pagein.tools.file_history import knows_path
    from pagein.workspace.git_blame import GitAbsence, git_blame
    from pagein.workspace.machine import machine

    if os.name != "nt" and _OF_A_DRIVE.match(str(file)):
        path = posixpath.normpath(str(file).replace("\\", "/"))  # as memory names it
        return answer_blame(store, path, None, GitAbsence("the file is on another machine"), lines=lines)
    given, real = os.path.abspath(file), os.path.realpath(file)  # noqa: PTH100 - agents name files either way
    path = real if given != real and not knows_path(store, given) else given
    if not Path(path).exists():
        return answer_blame(store, path, None, GitAbsence("the file is gone"), lines=lines, machine=machine())
    content = _content(Path(path))
    text = content.decode("utf-8", "surrogateescape")
    return answer_blame(store, path, text, git_blame(path, content), lines=lines, machine=machine())


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise BadInput(f"{path} is no file; give a file")
    if path.stat().st_size > _LARGEST:
        raise BadInput(f"{path} is larger than 16 MiB; such files are not kept")
    content = path.read_bytes()
    if b"\0" in content:
        raise BadInput(f"{path} is binary; only texts have lines")
    return content


def _range(line: str | None) -> tuple[int, int] | None:
    if line is None:
        return None
    found = _LINES.fullmatch(line)
    first = int(found[1]) if found else 0
    last = int(found[2]) if found and found[2] else first
    if not 1 <= first <= last:
        raise BadInput(f"not a range of lines: {line[:40]!r}; expected A-B with 1 <= A <= B")
    return first, last


def _print_trace(answer: dict[str, Any]) -> None:
    import time

    from pagein import __version__
    from pagein.tools.blame_exports import agent_trace

    record = agent_trace(answer, __version__, time.time())  # noqa: TID251 - the rim reads the clock
    sys.stdout.write(json.dumps(record, separators=(",", ":")) + "\n")


def _print_notes(answer: dict[str, Any]) -> None:
    from pagein.tools.blame_exports import git_ai_notes

    notes = git_ai_notes(answer)
    if not notes:
        sys.stderr.write("pagein: no line of a commit is proven to be an agent's\n")
    sys.stdout.write("\n".join(f"commit {commit}\n{text}" for commit, text in notes.items()))

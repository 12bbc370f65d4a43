"""The command `forget`, which erases a text from every store, index and log of pagein. Registered by `cli`.

Exit status: 0; 1 if a part may be left, each named in the output; 2 as in `cli`.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.errors import BadInput

if TYPE_CHECKING:
    from pagein.erasure import ErasureReport

_LEFT = 1
_COPIES = (
    "not touched: exports and other copies of the store, backups, the agent's own transcripts, what the provider keeps, and the sectors "
    "of the disk"
)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples:\n\npagein forget pg-9b0e51c7-3d2f8a64\n\npagein forget - < the-secret.txt\n\npagein forget --session fix-login"
    )(forget)


def forget(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|TEXT]",
            help="An object, by id or nickname: all its text; or a text, wherever it stands. - reads it from standard input, "
            "so that it stands in no history of a shell.",
        ),
    ] = None,
    *,
    session: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Everything said in this session so far, and all its evicted results."),
    ] = None,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Erase a text from the store, its indexes and logs, for good.

    A keyed digest remains, so that the text is not stored when it comes again. Sessions continue. Nobody can recall the text.
    """
    from pagein import erasure, wiring

    if (target is None) == (session is None):
        raise BadInput("name what to forget: either an id or a text, or a session with --session")
    file = wiring.store_file(store, workspace=workspace)
    log = wiring.log_of(store, workspace=workspace)
    with contextlib.closing(wiring.open_for_forgetting(store, workspace=workspace)) as opened, _steps() as tell:
        if session is not None:
            done = erasure.forget_session(opened, session, file, log, tell)
        else:
            wanted = (
                _text(sys.stdin.buffer.read()).removesuffix("\n").removesuffix("\r")
                if target == "-"
                else _text(os.fsencode(target or ""))
            )
            done = erasure.forget_texts(opened, erasure.texts_of(opened, wanted), file, log, tell)
    beside = _beside(file)
    if as_json:
        answer = {
            "texts": done.texts,
            "found": done.found,
            "left": done.left,
            "searched": done.searched,
            "beside": beside,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        sys.stdout.write("\n".join(_report_lines(done, beside)) + "\n")
    if done.left:
        raise typer.Exit(_LEFT)


@contextlib.contextmanager
def _steps() -> Iterator[Callable[[str], object]]:
    """Show on stderr what is done now, to a person at a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _doing: None
        return
    from rich.console import Console

    with Console(stderr=True).status("forgetting") as status:
        yield status.update


def _text(raw: bytes) -> str:
    """Decode a text as the store has it, with half surrogate pairs, independent of the locale. Raises BadInput for
    other bytes.
    """
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise BadInput(
            "the text is not UTF-8, so the store cannot contain it; give it in UTF-8, or name its object by id"
        ) from None


def _report_lines(done: "ErasureReport", beside: list[str]) -> list[str]:
    found = ", ".join(f"{count:,} {name}" for name, count in done.found.items() if count)
    lines = [f"rewritten: {found}" if found else "not found: the store holds no such text"]
    if done.searched and not done.left:
        lines.append(
            f"searched afterwards, byte for byte, and found nowhere: {', '.join(done.searched)}, and all that is packed in them"
        )
    lines += [f"left: {one}" for one in done.left]
    lines += [f"beside the store, not touched: {one}" for one in beside]
    return [*lines, _COPIES]


def _beside(file: Path | None) -> list[str]:
    """Return files beside the store, possibly copies of it."""
    if file is None:
        return []
    ours = {file.name + end for end in ("", "-wal", "-shm", "-search", "-search-wal", "-search-shm")}
    there = (one for one in sorted(file.parent.glob(f"{file.stem}*")) if one.is_file())
    return [one.name for one in there if one.name not in ours and ".trajectory.jsonl" not in one.name]

"""Hits in the files of a workspace, for people. Takes plain values, as printed by `--json`."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import plain, plural

Answer = Mapping[str, Any]


def show_code_hits(console: Console, answer: Answer) -> None:
    """Print hits under their file, with line numbers, as grep does."""
    counts = {one["path"]: one["hits"] for one in answer["files"]}
    last = None
    for hit in answer["hits"]:
        if hit["path"] != last:
            if last is not None:
                console.print()
            last = hit["path"]
            console.print(Text.assemble((plain(last), "bold"), (f"  {counts[last]}", "dim")), soft_wrap=True)
        console.print(Text.assemble((f"{hit['line']:>6}: ", "green"), plain(hit["text"].rstrip("\r"))), soft_wrap=True)
    for note in _notes(answer):
        console.print(Text(plain(note), style="dim"))


def _notes(answer: Answer) -> Iterator[str]:
    shown, total = len(answer["hits"]), answer["total"]
    looked_at = f"{plural(answer['searched'], 'file')} searched by {answer['engine']}"
    yield f"no matches; {looked_at}" if not total else f"{plural(total, 'hit')}, {shown} shown; {looked_at}"
    if answer["named"]:
        yield f"files with this in their path: {', '.join(answer['named'])}"
    if answer["not_text"]:
        yield f"not searched: {answer['not_text']} files that are no text in UTF-8"
    for one in answer["unsearched"]:
        yield f"not searched: {one['path']}: {one['why']}"
    if not answer["searched"] and answer["ignored"]:
        yield f"git ignores all {answer['ignored']} files and folders here; a file named by --path is searched"
    if answer["partial"]:
        yield "the time or the bytes of a search ran out; narrow it by --path"

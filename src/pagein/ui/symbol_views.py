"""Symbols for people: a definition, the definitions that a name may mean, a table, a tree. Takes plain values, as printed by `--json`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import plain

Answer = Mapping[str, Any]
_MOST_NAMED: Final = 5


def show_symbol(console: Console, answer: Answer) -> None:
    """Print a definition with the numbers of its lines, or the definitions that a name may mean."""
    if answer["kind"] == "ambiguous":
        _show_candidates(console, answer)
        return
    head = f"{answer['path']}:{answer['first']}-{answer['last']} {answer['symbol']} {answer['qualified']}"
    _print(console, f"{head}, {answer['references']} references (by name)", "bold")
    for line in answer["context"]:
        _print(console, f"{line['line']:6}  {line['text']}", "dim")
    for number, text in enumerate(answer["text"].split("\n"), answer["shown_from"]):
        _print(console, f"{number:6}  {text}")
    _show_notes(console, answer["scan"])


def _show_candidates(console: Console, answer: Answer) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("lines", "kind", "id", "signature"):
        table.add_column(head, overflow="fold" if head == "id" else "ellipsis", no_wrap=head != "id")
    for one in answer["candidates"]:
        table.add_row(f"{one['first']}-{one['last']}", one["symbol"], _text(one["id"]), _text(one["signature"]))
    shown = len(answer["candidates"])
    more = f", the first {shown} of them" if shown < answer["total"] else ""
    _print(console, f"{answer['name']} may mean {answer['total']} definitions{more}; give an id, or --path", "bold")
    console.print(table)
    _show_notes(console, answer["scan"])


def show_symbol_table(console: Console, answer: Answer) -> None:
    """Print one line per definition of a single file, else one line per file."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    if len(answer["files"]) == 1 and answer["path"] == answer["files"][0]["path"]:
        _fill_file(table, answer["files"][0])
    else:
        _fill_files(table, answer)
    console.print(table)
    if not answer["is_whole"]:
        _print(console, f"the first {len(answer['files'])} of {answer['total']} files", "dim")
    _show_left_out(console, answer)
    _show_notes(console, answer["scan"])
    _print(console, answer["note"], "dim")


def _fill_file(table: Table, file: Answer) -> None:
    for head in ("lines", "kind", "refs"):
        table.add_column(head, justify="right" if head == "refs" else "left", no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("signature", no_wrap=True, overflow="ellipsis")
    for one in file["definitions"]:
        lines = f"{one['first']}-{one['last']}"
        table.add_row(lines, one["symbol"], str(one["references"]), _text(one["qualified"]), _text(one["signature"]))


def _fill_files(table: Table, answer: Answer) -> None:
    table.add_column("file", overflow="fold")
    table.add_column("language")
    for head in ("definitions", "refs in", "refs out"):
        table.add_column(head, justify="right")
    for one in answer["files"]:
        counts = (len(one["definitions"]), one["references_in"], one["references_out"])
        table.add_row(_text(one["path"]), one["language"], *map(str, counts))


def show_symbol_tree(console: Console, answer: Answer) -> None:
    """Print the map as a model would see it: a block per file."""
    _print(console, answer["legend"], "dim")
    for one in answer["files"]:
        for line in one["block"].split("\n"):
            _print(console, line)
    if not answer["is_whole"]:
        _print(console, f"# cut: {len(answer['files'])} of {answer['total']} files", "dim")
    _show_left_out(console, answer)
    _show_notes(console, answer["scan"])


def _show_left_out(console: Console, answer: Answer) -> None:
    if answer["left_out"]:
        said = f"# {answer['left_out']} files in vendor, node_modules or dist left out; name such a folder to list it"
        _print(console, said, "dim")


def _show_notes(console: Console, scan: Answer) -> None:
    for note in _notes(scan):
        _print(console, note, "dim")


def _notes(scan: Answer) -> Iterator[str]:
    yield (
        f"# {scan['files']} files with symbols ({scan['parsed']} parsed now), {len(scan['failed'])} failed, "
        f"{scan['other_languages']} in other languages, {scan['excluded']} excluded, {scan['ignored']} ignored"
    )
    for one in scan["failed"][:_MOST_NAMED]:
        yield f"# no symbols of {one['path']}: {one['reason']}"
    if scan["partial"]:
        more = ", ..." if len(scan["partial"]) > _MOST_NAMED else ""
        yield f"# {len(scan['partial'])} parsed in part: {', '.join(scan['partial'][:_MOST_NAMED])}{more}"


def _print(console: Console, line: str, style: str = "") -> None:
    text = _text(line, style)
    if console.is_terminal:
        console.print(text, no_wrap=True, overflow="ellipsis")
    else:
        console.print(text, soft_wrap=True)  # a pipe gets whole lines


def _text(line: str, style: str = "") -> Text:
    return Text(plain(line.expandtabs(4)), style=style)

"""The lines of a file with who wrote them, for people. Takes plain values, as printed by `--json`."""

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import plain, share
from pagein.ui.store_views import when

Answer = Mapping[str, Any]
_SESSION: Final = 8
_COMMIT: Final = 8
_WORDS: Final = 28
_MINUTES: Final = 16  # characters of a time without seconds
_STYLES: Final = {"agent": "cyan", "person": "green", "mixed": "yellow", "unknown": "dim"}
_MARKS: Final = {"exact": "", "moved": "moved", "reformatted": "laid out", "none": ""}


def show_blame(console: Console, answer: Answer) -> None:
    """Print one line per line of the file, and the shares of the answers."""
    columns = [
        ("answer", 7),
        ("session", _SESSION),
        ("turn", 4),
        ("when (UTC)", _MINUTES),
        ("request", 7),
        ("match", 8),
    ]
    columns += [("commit", _COMMIT)] if answer["git"] else []
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for title, width in columns:
        table.add_column(title, no_wrap=True, min_width=width)
    table.add_column("line", justify="right", no_wrap=True, min_width=4)
    table.add_column("text", no_wrap=True, overflow="ellipsis")
    last = -1
    for line in answer["lines"]:
        source = None if line["source"] is None else answer["sources"][line["source"]]
        is_first = source is not None and line["source"] != last
        last = -1 if source is None else line["source"]
        cells = [line["answer"], *_source_cells(source, is_first=is_first), _MARKS[line["match"]]]
        cells += [(line["commit"] or "-" * _COMMIT)[:_COMMIT]] if answer["git"] else []
        cells += [str(line["line"]), line["text"].expandtabs(4)]
        table.add_row(*(Text(plain(cell)) for cell in cells), style=_STYLES[line["answer"]])
    console.print(table)
    for note in _notes(answer):
        console.print(Text(plain(note), style="dim"))


def _source_cells(source: Answer | None, *, is_first: bool) -> list[str]:
    if source is None:
        return ["", "", "", ""]
    words = " ".join((source["request"] or "").split()) if is_first else ""
    shortened = words if len(words) <= _WORDS else words[: _WORDS - 3] + "..."
    turn = "" if source["turn"] is None else str(source["turn"])
    return [(source["session"] or "")[:_SESSION], turn, when(source["at"])[:_MINUTES], shortened]


def _notes(answer: Answer) -> list[str]:
    total = sum(answer["counts"].values())
    shares = ", ".join(f"{name} {count} ({share(count, total)})" for name, count in answer["counts"].items())
    notes = [f"{total} lines: {shares}; {answer['versions']} known versions"]
    if answer["from"] == "store":
        notes.append("the file is gone; these are the lines of the newest whole text in the store")
    if answer["no_git"] is not None:
        notes.append(f"without git: {answer['no_git']}")
    return notes

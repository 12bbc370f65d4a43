"""The lines of a file with who wrote them, for people. Takes plain values, as printed by `--json`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import plain, plural, share
from pagein.ui.store_views import when

Answer = Mapping[str, Any]
_SESSION: Final = 8
_COMMIT: Final = 8
_WORDS: Final = 28
_MINUTES: Final = 16  # characters of a time without seconds
_HEAD: Final = ("answer", "session", "turn", "when (UTC)", "request", "match", "commit", "line", "text")
_COMMIT_PLACE: Final = _HEAD.index("commit")
_LINE: Final = _HEAD.index("line")
_TEXT: Final = _HEAD.index("text")
_STYLES: Final = {"agent": "cyan", "person": "green", "mixed": "yellow", "unknown": "dim"}
_MARKS: Final = {"exact": "", "moved": "moved", "reformatted": "laid out", "none": ""}


def show_blame(console: Console, answer: Answer) -> None:
    """Print one line per line of the file, cut on a terminal, and the shares of the answers."""
    rows = [_HEAD, *_rows(answer)]
    used = [place for place in range(_TEXT) if answer["git"] or place != _COMMIT_PLACE]
    widths = {place: max(len(row[place]) for row in rows) for place in used}
    styles = ["dim", *(_STYLES[line["answer"]] for line in answer["lines"])]
    shown = []
    for row, style in zip(rows, styles, strict=True):
        cells = [
            row[place].rjust(widths[place]) if place == _LINE else row[place].ljust(widths[place]) for place in used
        ]
        shown.append(Text(" ".join((*cells, row[_TEXT])).rstrip(), style=style))
    table = Text("\n").join(shown)  # printed at once: each print looks at the environment again
    if console.is_terminal:
        console.print(table, no_wrap=True, overflow="ellipsis")
    else:
        console.print(table, soft_wrap=True)  # a pipe gets whole lines
    for note in _notes(answer):
        console.print(Text(plain(note), style="dim"), soft_wrap=True)


def _rows(answer: Answer) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each line; the request only where it begins."""
    last = -1
    for line in answer["lines"]:
        source = None if line["source"] is None else answer["sources"][line["source"]]
        is_first = source is not None and line["source"] != last
        last = -1 if source is None else line["source"]
        writer = None if line["answer"] == "unknown" else source  # who was seen with the line did not write it
        cells = [line["answer"], *_source_cells(writer, is_first=is_first), _MARKS[line["match"]]]
        cells += [(line["commit"] or "-" * _COMMIT)[:_COMMIT], str(line["line"]), line["text"].expandtabs(4)]
        yield tuple(map(plain, cells))


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
    notes = [f"{plural(total, 'line')}: {shares}; {plural(answer['versions'], 'known version')}"]
    if answer["from"] == "store":
        notes.append("the file is gone; these are the lines of the newest whole text in the store")
    if answer["no_git"] is not None:
        notes.append(f"without git: {answer['no_git']}")
    return notes

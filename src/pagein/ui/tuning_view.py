"""The result of `pagein tune` in a terminal: a bar and a row for each choice of settings, then the advice."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import change, count, dollars, plural
from pagein.ui.frame import titled_table

_BAR = 24
_ALL_FIGURES, _ONE_LINE, _BARS = 78, 92, 120
"""Columns of a terminal that has room for every figure, for the settings in one line, and beyond which there is room for bars."""


@dataclass(frozen=True, slots=True)
class TriedSettings:
    """A row of the table.

    words: the settings.
    cost, median, worst: shares of the bill without pagein.
    usd: dollars, if the prices have a currency.
    note: `in force` or `advised`, "" for the others.
    """

    words: str
    cost: float
    median: float
    worst: float
    usd: float | None
    recalls: int
    quotes_lost: int
    quotes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class TuningPage:
    """Everything that is shown.

    lines: the advice and its reasons, a sentence each.
    """

    sessions: int
    rows: Sequence[TriedSettings]
    lines: Sequence[str]


def show_tuning(console: Console, page: TuningPage) -> None:
    """Print the table of the choices, and the advice."""
    table = titled_table(f"What each choice would have cost ({plural(page.sessions, 'session')}, against no pagein)")
    has_dollars = any(row.usd is not None for row in page.rows)
    is_narrow, has_bars = console.width < _ALL_FIGURES, console.width > _BARS
    some = ("median", "worst", *(("dollars",) if has_dollars else ()), "recalls")
    table.add_column("settings", no_wrap=True)
    for title in ("cost", *(() if is_narrow else some), "quotes lost"):
        table.add_column(title, justify="right", no_wrap=True)
    if has_bars:
        table.add_column("", no_wrap=True)
    for row in page.rows:
        words = row.words.replace(", ", ",\n") if console.width < _ONE_LINE else row.words
        cells = [words if has_bars or not row.note else f"{words}\n  ({row.note})", change(row.cost)]
        if not is_narrow:
            cells += [change(row.median), change(row.worst), *([dollars(row.usd)] if has_dollars else [])]
            cells += [count(row.recalls)]
        cells += [f"{count(row.quotes_lost)} of {count(row.quotes)}"]
        cells += [f"{_bar(row.cost)} {row.note}".rstrip()] if has_bars else []
        table.add_row(*map(Text, cells), style="bold" if row.note else "")
    console.print(table)
    console.print()
    for line in page.lines:
        console.print(Text(line))


def _bar(share: float) -> str:
    """Return a bar for a share of the bill without pagein, at most as long as that bill."""
    filled = round(_BAR * max(0.0, min(1.0, share)))
    return "#" * filled + "." * (_BAR - filled)

"""The result of `pagein tune` in a terminal: a bar and a row for each choice of settings, then the advice."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import change, count, dollars, plural
from pagein.ui.frame import titled_table

_BAR = 24


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
    table.add_column("settings", no_wrap=True)
    for title in ("cost", "median", "worst", *(("dollars",) if has_dollars else ()), "recalls", "quotes lost"):
        table.add_column(title, justify="right", no_wrap=True)
    if console.width > 100:  # noqa: PLR2004 -- below it, the figures need the room
        table.add_column("", no_wrap=True)
    for row in page.rows:
        cells = [row.words, change(row.cost), change(row.median), change(row.worst)]
        cells += [dollars(row.usd)] if has_dollars else []
        cells += [count(row.recalls), f"{count(row.quotes_lost)} of {count(row.quotes)}"]
        cells += [f"{_bar(row.cost)} {row.note}".rstrip()] if console.width > 100 else []  # noqa: PLR2004 -- as above
        table.add_row(*map(Text, cells), style="bold" if row.note else "")
    console.print(table)
    console.print()
    for line in page.lines:
        console.print(Text(line))


def _bar(share: float) -> str:
    """Return a bar for a share of the bill without pagein, at most as long as that bill."""
    filled = round(_BAR * max(0.0, min(1.0, share)))
    return "#" * filled + "." * (_BAR - filled)

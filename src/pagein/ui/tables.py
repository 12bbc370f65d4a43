"""The bill in a terminal: the verdict, a summary table, one per source, one row per session, and the skipped files.

A table wider than the terminal drops its least important columns and reports this; no text is cut in the middle.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pagein.model.bill import Bill, SessionBill
from pagein.ui.billed_sessions import began_words, name_of, prices_words, project_of
from pagein.ui.columns import (
    BY_DEFAULT,
    COST,
    DEEDS,
    ENGINE,
    OPTIMUM,
    BillColumn,
    BillRow,
    columns_for,
    did_something,
    rows,
    sum_columns,
)
from pagein.ui.figures import ABSENT, amount, change, count, error, plain, plural, rate, short
from pagein.ui.frame import titled_table
from pagein.ui.row_tables import fit_columns
from pagein.ui.verdict import Tone, Verdict, money, verdict

# Up to this number, each session gets its row by default.
FEW = 12
# The number of skipped files named; the rest is only counted.
SKIPPED_SHOWN = 20
# Maximum letters of a source name in the table of the simulator's errors.
_SOURCE = 30
_INDENT = 1
# Columns with words, which stand left; figures stand right.
WORDS = ("policy", "that is", "layout")
# Titles of columns that a newcomer cannot know.
_OWN_WORDS = ("left", "batches", "needed/100", "assumed", "quotes seen/lost/all")
# Columns of a terminal that has room for project and time of a session, and for what was done in it.
_WITH_PLACES, _WITH_DEEDS = 100, 140
_TONES: dict[Tone, str] = {
    "saves": "bold green",
    "same": "bold",
    "costs": "bold yellow",
    "broken": "bold red",
    "plain": "bold",
}


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The parts of a bill to show: a row per session (None: only for few sessions), or the verdict alone."""

    sessions: bool | None = None
    quiet: bool = False


def show(console: Console, bill: Bill, shown: TableOptions) -> None:
    """Print a bill."""
    said = verdict(bill)
    for line in _verdict(said):
        console.print(line)
    if shown.quiet:
        return
    for part in _parts(bill, shown, console.width):
        console.print()
        console.print(part)


def show_skipped(console: Console, bill: Bill) -> None:
    """Print the files not replayed, with the reasons."""
    if bill["skipped"]:
        console.print(skipped_table(bill))


def _parts(bill: Bill, shown: TableOptions, width: int) -> Iterator[RenderableType]:
    all_rows = rows(bill["policies"], bill["baseline"])
    head = f"{plural(bill['sessions'], 'session')}, {plural(_calls(bill), 'model call')}"
    yield _table(f"Cost  ({head})", sum_columns(bill), all_rows, width)
    yield Text(f"Prices: {prices_words(bill)}.", style="dim")
    if acting := did_something(all_rows):
        yield _table("What was done, and what it did", DEEDS, acting, width)
        yield Text(_legend(DEEDS, acting), style="dim")
    if len(bill["groups"]) > 1:
        for source, group in bill["groups"].items():
            yield _table(f"Cost: {short(source)}", COST, rows(group["policies"], bill["baseline"]), width)
    if shown.sessions or (shown.sessions is None and 1 < bill["sessions"] <= FEW):
        yield sessions(bill, width)
    if bill["prediction"]:
        yield prediction(bill)
    if beyond := _beyond_window(bill):
        yield beyond
    if bill["skipped"]:
        yield skipped_table(bill)


def _beyond_window(bill: Bill) -> Text | None:
    """Return a note on sessions with prompts beyond the requested window."""
    largest = [prompt for one in bill["per_session"] if isinstance(prompt := one["flags"].get("beyond_window"), int)]
    if not largest or "compact" not in bill["policies"]:
        return None
    said = (
        f"{plural(len(largest), 'session')} had prompts of up to {amount(max(largest))} tokens, beyond the window of "
        "these prices: append could not have been sent there, and compact stays within the window."
    )
    return Text(said, style="dim")


def _calls(bill: Bill) -> int:
    return max((figures["calls"] for figures in bill["policies"].values()), default=0)


def _legend(columns: Sequence[BillColumn], all_rows: Sequence[BillRow]) -> str:
    """Return the meanings of those columns whose titles are words of pagein's own."""
    return " ".join(f"{one.title}: {one.meaning}" for one in columns_for(columns, all_rows) if one.title in _OWN_WORDS)


def _verdict(said: Verdict) -> Iterator[Text]:
    yield Text(said.headline, style=_TONES[said.tone])
    if said.spread:
        yield Text(said.spread)
    if said.loss:
        yield Text(said.loss, style=_TONES["broken"] if said.tone == "broken" else "")
    if said.host:
        yield Text(said.host)
    if said.rival:
        yield Text(said.rival)
    if said.floor:
        yield Text(said.floor, style="dim")
    if said.doubt:
        yield Text(said.doubt)


def _table(title: str, columns: Sequence[BillColumn], all_rows: Sequence[BillRow], width: int) -> RenderableType:
    columns = columns_for(columns, all_rows)
    cells = {column.title: [column.cell(row) for row in all_rows] for column in columns}
    widths = {title: _width(title, column) for title, column in cells.items()}
    kept = fit_columns(columns, widths, width - _INDENT)
    table = titled_table(title)
    for column in kept:
        table.add_column(column.title, justify="left" if column.title in WORDS else "right", no_wrap=True)
    for index, row in enumerate(all_rows):
        table.add_row(*(Text(cells[column.title][index]) for column in kept), style=_row_style(row))
    dropped = [column.title for column in columns if column not in kept]
    if dropped:
        table.caption = Text(f"not shown, for want of width: {', '.join(dropped)}")
    return table


def _width(title: str, cells: Sequence[str]) -> int:
    return max(map(len, (title, *cells)))


def _row_style(row: BillRow) -> str:
    if row.name == ENGINE:
        return "bold"
    return "dim" if row.baseline is None else ""


def sessions(bill: Bill, width: int) -> Table:
    """Return one row per session: the user's first words, project and time, its cost, and the results of pagein."""
    table = titled_table("Sessions")
    table.add_column("session", no_wrap=True, overflow="ellipsis", ratio=3)
    is_wide = width >= _WITH_PLACES
    if is_wide:
        table.add_column("project", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column("began", no_wrap=True)
    cells = {
        title: [cell(one, bill["baseline"]) for one in bill["per_session"]] for title, cell in _SESSION_CELLS.items()
    }
    known = [title for title, column in cells.items() if any(cell != ABSENT for cell in column)]
    if not any(one["policies"][ENGINE]["keep_alives"] for one in bill["per_session"] if ENGINE in one["policies"]):
        known = [title for title in known if title != "keep-alive" or "by default" not in known]
    if width < _WITH_DEEDS:
        known = [title for title in known if title in _NARROW_CELLS]
    for title in known:
        table.add_column(title, justify="right", no_wrap=True)
    for place, session in enumerate(bill["per_session"]):
        where = (Text(project_of(session)), began_words(session)) if is_wide else ()
        table.add_row(Text(_label(session)), *where, *(cells[title][place] for title in known))
    table.width = width
    return table


def _label(session: SessionBill) -> str:
    return short(name_of(session)) + (" (sub-agent)" if session["parent"] else "")


def _row(session: SessionBill, name: str, baseline: str) -> BillRow | None:
    found = {row.name: row for row in rows(session["policies"], baseline)}
    return found.get(name)


def _cell(read: Callable[[BillRow], str], of: str | None = ENGINE) -> Callable[[SessionBill, str], str]:
    def cell(session: SessionBill, baseline: str) -> str:
        row = _row(session, of or baseline, baseline)
        return "-" if row is None else read(row)

    return cell


_SESSION_CELLS: dict[str, Callable[[SessionBill, str], str]] = {
    "calls": _cell(lambda row: count(row.figures["calls"]), None),
    "cost": _cell(lambda row: money(row.figures), None),
    "by default": _cell(lambda row: change(row.ratio), BY_DEFAULT),
    "keep-alive": _cell(lambda row: change(row.ratio)),
    "hindsight": _cell(lambda row: change(row.ratio), OPTIMUM),
    "left": _cell(lambda row: count(row.figures["stubs"])),
    "needed/100": _cell(lambda row: rate(row.faults_per_hundred)),
}
_NARROW_CELLS = ("cost", "by default", "keep-alive", "hindsight")


def prediction(bill: Bill) -> Table:
    """Return the errors of the simulator against the provider's own usage: read these before you trust the other
    tables.
    """
    table = titled_table("The simulator against the provider's own usage")
    for title in ("source", "calls", "read", "written", "read*", "written*"):
        table.add_column(title, justify="left" if title == "source" else "right", no_wrap=True)
    for source, found in bill["prediction"].items():
        errors = (found["read_error"], found["written_error"], found["pure_read_error"], found["pure_written_error"])
        table.add_row(Text(short(source, _SOURCE)), count(found["calls"]), *map(error, errors))
    table.caption = Text("* recorded cache misses not given")
    return table


def skipped_table(bill: Bill) -> Table:
    """Return the files not replayed, with the reasons."""
    table = titled_table(f"Skipped: {plural(len(bill['skipped']), 'file')}")
    table.add_column("file", overflow="fold")
    table.add_column("reason", overflow="fold")
    for skip in bill["skipped"][:SKIPPED_SHOWN]:
        table.add_row(Text(plain(skip["file"])), Text(plain(skip["reason"])))
    rest = len(bill["skipped"]) - SKIPPED_SHOWN
    if rest > 0:
        table.caption = Text(f"and {count(rest)} more; --json lists all")
    return table

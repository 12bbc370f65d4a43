"""The report of the cache doctor on recordings, in a terminal: the cost of each cause, by source, and the dearest
misses.
"""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pagein.model.bill import Doctor
from pagein.ui.choice import age
from pagein.ui.figures import amount, count, plural, short
from pagein.ui.frame import titled_table

# The number of dearest misses shown; the rest is only counted.
SHOWN = 12


def show_doctor(console: Console, found: Doctor) -> None:
    """Print the misses of the provider's cache, and their causes."""
    for part in _parts(found):
        console.print()
        console.print(part)


def _parts(found: Doctor) -> Iterator[RenderableType]:
    calls = sum(checkup["calls"] for checkup in found["sources"].values())
    if not calls:
        yield Text("Cache doctor: no recorded call reports its cache reads.", style="bold")
        return
    if not found["misses"]:
        yield Text(f"Cache doctor: all {count(calls)} calls read everything that the cache held.", style="bold")
        return
    yield _causes(found, calls)
    yield _misses(found)


def _causes(found: Doctor, calls: int) -> Table:
    missed = len(found["misses"])
    table = titled_table(
        f"Cache doctor: {plural(missed, 'call')} of {count(calls)} read less than was there to be read"
    )
    for title in ("source", "why"):
        table.add_column(title, overflow="fold")
    for title in ("calls", "tokens", "BIT", "of the bill"):
        table.add_column(title, justify="right", no_wrap=True)
    for source, checkup in found["sources"].items():
        for number, one in enumerate(checkup["ailments"]):
            cells = (count(one["calls"]), amount(one["missed"]), amount(one["cost"]), f"{100 * one['share']:.1f} %")
            table.add_row(Text("" if number else short(source)), Text(f"{one['cause']}: {one['words']}"), *cells)
    table.caption = Text("tokens: cached, but paid again; BIT: their cost above the price of reading")
    return table


def _misses(found: Doctor) -> Table:
    dearest = sorted(found["misses"], key=lambda one: -one["cost"])[:SHOWN]
    table = titled_table("The dearest of them")
    table.add_column("session", overflow="fold")
    for title in ("call", "after a pause of", "prompt", "read", "expected", "BIT"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in dearest:
        table.add_row(
            Text(f"{short(one['source'])}/{short(one['id'] or one['file'])}"),
            count(one["call"] + 1),
            age(one["idle"]),
            amount(one["prompt"]),
            amount(one["read"]),
            amount(one["expected"]),
            amount(one["cost"]),
            Text(one["cause"]),
        )
    left = len(found["misses"]) - len(dearest)
    if left:
        table.caption = Text(f"and {count(left)} more; --json lists all")
    return table

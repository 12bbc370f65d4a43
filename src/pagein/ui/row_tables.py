"""Tables that keep their words on a narrow terminal: columns of figures are dropped first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import plain
from pagein.ui.frame import GAP

_FEWEST: Final = 28
"""Characters of words, if there are as many, for which columns of a rank leave."""


_SLIMMEST: Final = 12
"""Characters of words, if there are as many, for which columns of rank 0 leave, the last first. The first column stays."""


class _RowColumnOrder(Protocol):
    @property
    def title(self) -> str: ...
    @property
    def rank(self) -> int: ...


_Column = TypeVar("_Column", bound=_RowColumnOrder)


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column beside the words.

    title: heading.
    rank: columns of higher rank are left out first on a narrow terminal; 0 only if they leave no room for words.
    """

    title: str
    rank: int = 0
    justify: Literal["left", "right"] = "left"


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: the cells, then the words, which are cut at the end of the line."""

    cells: Sequence[str]
    words: str
    style: str = ""


def print_rows(console: Console, columns: Sequence[RowColumn], words: str, rows: Sequence[TableRow]) -> None:
    """Print a table whose last column holds words, and is named so. Foreign text cannot steer the terminal."""
    cells = [[plain(cell) for cell in row.cells] for row in rows]
    widths = {column.title: max(map(len, (column.title, *told))) for column, *told in zip(columns, *cells, strict=True)}
    longest = max(map(len, (words, *(plain(row.words) for row in rows))))
    kept = fit_columns(columns, widths, console.width - min(_FEWEST, longest))
    while len(kept) > 1 and _width(kept, widths) + min(_SLIMMEST, longest) > console.width:
        kept.pop()
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for column in kept:
        width = widths[column.title]
        table.add_column(column.title, justify=column.justify, no_wrap=True, overflow="fold", min_width=width)
    room = console.width - _width(kept, widths)
    table.add_column(words, no_wrap=True, overflow="ellipsis", max_width=max(_SLIMMEST, room))
    for row, told in zip(rows, cells, strict=True):
        shown = [Text(cell) for column, cell in zip(columns, told, strict=True) if column in kept]
        table.add_row(*shown, Text(plain(row.words), no_wrap=True, overflow="ellipsis"), style=row.style)
    console.print(table)


def fit_columns(columns: Sequence[_Column], widths: Mapping[str, int], width: int) -> list[_Column]:
    """Return the columns that fit into `width`: the last of the highest rank is dropped first, rank 0 always stays."""
    kept = list(columns)
    while _width(kept, widths) > width:
        leaving = max(kept, key=lambda column: (column.rank, kept.index(column)))
        if leaving.rank == 0:
            break
        kept.remove(leaving)
    return kept


def _width(columns: Sequence[_RowColumnOrder], widths: Mapping[str, int]) -> int:
    return sum(widths[column.title] + GAP for column in columns)

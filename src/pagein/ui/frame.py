"""The look that the tables of a replay share in a terminal."""

from typing import Final

from rich.table import Table
from rich.text import Text

GAP: Final = 2
"""Columns of a terminal between two of a table."""


def titled_table(title: str) -> Table:
    """An empty table under this title."""
    return Table(
        title=Text(title),
        box=None,
        padding=(0, GAP, 0, 0),
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        caption_style="dim",
        header_style="dim",
        collapse_padding=True,
    )

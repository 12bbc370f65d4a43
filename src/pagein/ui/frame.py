"""The common style of the terminal tables of a replay."""

from typing import Final

from rich.table import Table
from rich.text import Text

GAP: Final = 2
"""Terminal columns between two columns of a table."""


def titled_table(title: str) -> Table:
    """Return an empty table under this title."""
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

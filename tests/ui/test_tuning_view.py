"""The table of `pagein tune`: no terminal from 42 columns on cuts a figure or hides what is in force."""

import io

import pytest
from rich.console import Console

from pagein.ui.tuning_view import TriedSettings, TuningPage, show_tuning

ROWS = [
    TriedSettings("careful, keep-alive off", 0.899, 0.912, 1.021, 1234.5, 12_345, 12, 12_345, "in force"),
    TriedSettings("balanced, keep-alive on", 0.8, 0.9, 1.0, 1034.5, 2, 1, 12_345, "advised"),
]


@pytest.mark.parametrize("width", [42, 60, 77, 78, 80, 91, 92, 120, 121, 130])
def test_every_width_shows_whole_words(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_tuning(console, TuningPage(12, ROWS, ["Advice: balanced."]))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\u2026" not in shown
    assert all(word in shown for word in ("in force", "advised", "keep-alive off", "-10.1 %", "12 of 12,345"))
    assert max(map(len, shown.splitlines())) <= width

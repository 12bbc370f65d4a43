"""The list of sessions found on this machine, and the parser of a person's choice among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.errors import BadInput
from pagein.ui.figures import ABSENT, amount, plain, plural

_PROJECT = 20
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class ReplayableSession:
    """A recorded session available for a replay.

    age: seconds. size: bytes (0: unknown). title: the user's first words. project: the folder worked in; "" if unknown.
    """

    agent: str
    path: Path
    age: float
    size: int
    title: str
    project: str = ""


def show_candidates(console: Console, candidates: Sequence[ReplayableSession], limit: int) -> None:
    """Print the newest `limit` candidates with their numbers."""
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
        title="Sessions on this machine, newest first",
        title_justify="left",
        expand=True,
    )
    for title in ("#", "age", "size"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("agent", no_wrap=True)
    table.add_column("project", no_wrap=True, overflow="ellipsis", max_width=_PROJECT)
    table.add_column("title", no_wrap=True, overflow="ellipsis", ratio=1)
    for number, candidate in enumerate(candidates[:limit], start=1):
        size = f"{amount(candidate.size)}B" if candidate.size else ABSENT
        label = Text(plain(candidate.title or candidate.path.name))
        project = Text(plain(candidate.project.replace("\\", "/").rstrip("/").rpartition("/")[2]))
        table.add_row(str(number), age(candidate.age), size, Text(plain(candidate.agent)), project, label)
    console.print(table)
    if len(candidates) > limit:
        console.print(Text(f"and {plural(len(candidates) - limit, 'older one', 'older ones')}", style="dim"))


def parse_choice(answer: str, of: int) -> list[int]:
    """Parse an answer such as `2`, `1,3-5` or `all` to indices from 0. Raises BadInput for unknown answers."""
    if answer.strip().lower() == "all":
        return list(range(of))
    picked: dict[int, None] = {}
    for part in answer.replace(" ", ",").split(","):
        if part:
            picked.update(dict.fromkeys(_range(part, of)))
    if not picked:
        raise BadInput(f"no session chosen; answer with a number from 1 to {of}, a range such as 1-3, or all")
    return list(picked)


def _range(part: str, of: int) -> range:
    first, dash, last = part.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)):
        raise BadInput(f"{part!r} is not a choice; answer with a number from 1 to {of}, a range such as 1-3, or all")
    low, high = int(first), int(last or first)
    if not 1 <= low <= high <= of:
        raise BadInput(f"{part!r} is outside the list; it has the numbers 1 to {of}")
    return range(low - 1, high)


def age(seconds: float) -> str:
    """Return a time span in one unit: 40 s, 12 min, 5 h, 3 d."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"

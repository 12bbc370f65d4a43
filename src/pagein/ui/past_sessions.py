"""Tables and lines about found and remembered recordings, for a terminal. Takes plain values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import ABSENT, amount, plain, plural

Answer = Mapping[str, Any]
_SHOWN: Final = 20


def show_found(console: Console, found: Sequence[tuple[str, int, int]]) -> None:
    """Print one line per agent: its name, number of files and bytes (0: unknown)."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", title="New on this machine", title_justify="left")
    table.add_column("agent", no_wrap=True)
    for title in ("sessions", "size"):
        table.add_column(title, justify="right", no_wrap=True)
    for agent, count, size in found:
        table.add_row(Text(plain(agent)), f"{count:,}", f"{amount(size)}B" if size else ABSENT)
    console.print(table)


def show_remembered(console: Console, answer: Answer) -> None:
    """Print the counts of an intake."""
    for line in _taken(answer):
        console.print(Text(plain(line)))


def show_remarks(console: Console, answer: Answer) -> None:
    """Print skipped and failed files."""
    reasons: dict[str, int] = {}
    for one in answer["skipped"]:
        reasons[one["reason"]] = reasons.get(one["reason"], 0) + 1
    for reason, count in list(reasons.items())[:_SHOWN]:
        console.print(Text(plain(f"left out: {plural(count, 'file')}: {reason}"), style="dim"))
    for one in answer["failed"][:_SHOWN]:
        console.print(Text(plain(f"failed: {one['file']}: {one['reason']}"), style="red"))
    if len(answer["failed"]) > _SHOWN:
        console.print(
            Text(f"and {len(answer['failed']) - _SHOWN:,} more failed; --json lists all of them", style="red")
        )


def _taken(answer: Answer) -> Iterator[str]:
    is_trial = answer["dry_run"]
    if not answer["new"] and not answer["grown"]:
        yield f"nothing new; {plural(answer['known_files'], 'file')} known already"
        return
    parts = [plural(answer["new"], "session")]
    if answer["grown"]:
        parts.append(f"{answer['grown']:,} that grew")
    verb = "would remember" if is_trial else "remembered"
    yield f"{verb} {' and '.join(parts)}, {plural(answer['messages'], 'message')}: {_agents(answer)}"
    speed = f", {amount(answer['bytes'] / answer['seconds'])}B/s" if answer["seconds"] else ""
    yield f"{plural(answer['files'], 'file')} read, {amount(answer['bytes'])}B in {answer['seconds']:.1f} s{speed}; {answer['known_files']:,} known already"
    if answer["object_seconds"] is not None:
        yield f"objects made in {answer['object_seconds']:.1f} s"
    if answer["unknown_lines"]:
        yield f"{plural(answer['unknown_lines'], 'line')} of kinds that this version does not know; a newer pagein may"
    if not is_trial:
        yield f"in {answer['store']}"


def _agents(answer: Answer) -> str:
    return ", ".join(f"{agent} {count:,}" for agent, count in answer["agents"].items())

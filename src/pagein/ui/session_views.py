"""Sessions and chats, for people. Takes plain values, as printed by `--json`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import count, plain, plural, short
from pagein.ui.store_views import columns, session_label, when
from pagein.ui.version_views import terminal_text

Answer = Mapping[str, Any]
_TITLE: Final = 80
_ARGUMENTS: Final = 100


def show_sessions(console: Console, answer: Answer) -> None:
    """Print one line per session, the latest first."""
    rows = answer["sessions"]
    if not rows:
        told = (
            "no sessions; `pagein serve` records those of agents from now on, `pagein remember` takes in recorded ones"
        )
        console.print(Text(told), soft_wrap=True)
        return
    table = columns(
        ("session", "left"), ("agent", "left"), ("last active (UTC)", "left"), ("turns", "right"), ("steps", "right"),
        ("title", "left"), ("models", "left"), ("folder", "left"),
    )  # fmt: skip
    for row in rows:
        cells = (
            row["short"],
            row["agent"] or "-",
            when(row["at"]),
            count(row["turns"]),
            count(row["steps"]),
            short(row["title"], _TITLE) + (" (sub-agent)" if row["parent"] else ""),
            ", ".join(row["models"]),
            row["cwd"] or "",
        )
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console.print(table)
    if answer["more"]:
        console.print(Text(f"more: --limit {2 * len(rows)}, or --until {when(rows[-1]['began'])}Z", style="dim"))


def show_chat_head(console: Console, answer: Answer) -> None:
    """Print what a chat is, and the other conversations of its session."""
    name = session_label(answer["agent"], answer["session"] or None)
    console.print(Text(plain(f"{name}  {short(answer['title'], _TITLE)}"), style="bold"), soft_wrap=True)
    about = f"chat {answer['id']}@{answer['version']}, {plural(answer['turn_count'], 'turn')}, {when(answer['at'])} UTC"
    console.print(Text(plain(about), style="dim"), soft_wrap=True)
    if len(answer["threads"]) > 1:
        for one in answer["threads"]:
            shown = "  (shown)" if one["thread"] == answer["thread"] else ""
            sizes = f"{plural(one['turns'], 'turn')}, {plural(one['steps'], 'step')}"
            line = f"--thread {one['thread']}: {sizes}, {short(one['title'], _TITLE)}{shown}"
            console.print(Text(plain(line), style="dim"), soft_wrap=True)


def show_turn(console: Console, answer: Answer) -> None:
    """Print a turn: the words of the user, then the steps in order. With `thinking`, also what the model thought."""
    at = "" if answer["at"] is None else f"  {when(answer['at'])} UTC"
    console.print()
    console.print(Text(f"--- turn {answer['turn']}{at}", style="bold cyan"), soft_wrap=True)
    for part in answer["said"]:
        for line in _lines(part, thinking=answer["thinking"]):
            console.print(line, soft_wrap=True)
    for part in answer["steps"]:
        for line in _lines(part, thinking=answer["thinking"]):
            console.print(line, soft_wrap=True)


def _lines(part: Answer, *, thinking: bool) -> Iterator[Text]:
    match part["kind"]:
        case "text" if part["by_client"]:
            yield Text(f"  ({plural(len(part['text']), 'character')} by the client)", style="dim")
        case "text" if part["role"] == "assistant":
            yield Text(terminal_text(part["text"]))
        case "text":
            yield from (Text(f"> {terminal_text(line)}", style="green") for line in part["text"].split("\n"))
        case "thinking":
            if thinking:
                yield Text(terminal_text(part["text"]), style="dim italic")
        case "call":
            style = "" if part["status"] == "ok" else "red"
            call = f"  * {part['tool']} {short(part['args'], _ARGUMENTS)}  "
            yield Text.assemble(plain(call), (plain(part["status"]), style), (f"  {plain(part['object'])}", "dim"))
        case other:
            yield Text(f"  ({plain(other)})", style="dim")

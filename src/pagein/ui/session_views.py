"""Sessions and chats, for people. Takes plain values, as printed by `--json`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import count, plain, plural, short
from pagein.ui.row_tables import RowColumn, TableRow, print_rows
from pagein.ui.store_views import call_label, session_label, when
from pagein.ui.version_views import terminal_text

Answer = Mapping[str, Any]
_TITLE: Final = 80
_SHORTEST_TITLE: Final = 12
_FOLDER: Final = 20
_SESSIONS: Final = (
    RowColumn("session"), RowColumn("agent", 2), RowColumn("last active (UTC)", 1), RowColumn("turns", 3, "right"),
    RowColumn("steps", 4, "right"), RowColumn("models", 6), RowColumn("folder", 5),
)  # fmt: skip


def show_sessions(console: Console, answer: Answer) -> None:
    """Print one line per session, the latest first."""
    rows = answer["sessions"]
    if not rows:
        console.print(Text(plain(_no_sessions(answer["agents"]))), soft_wrap=True)
        return
    cells = [
        TableRow(
            (
                row["short"],
                row["agent"] or "-",
                when(row["at"]),
                count(row["turns"]),
                count(row["steps"]),
                _models(row["models"]),
                short(_folder(row["cwd"] or ""), _FOLDER),
            ),
            ("(sub-agent) " if row["parent"] else "") + row["title"],
        )
        for row in rows
    ]
    print_rows(console, _SESSIONS, "title", cells)
    if answer["more"]:
        console.print(Text(f"more: --limit {2 * len(rows)}, or --until {when(rows[-1]['began'])}Z", style="dim"))


def _no_sessions(agents: Sequence[str]) -> str:
    if agents:
        return f"no session fits; there are sessions of {', '.join(agents)}"
    return "no sessions; `pagein run AGENT` records those of an agent from now on, `pagein remember` takes in recorded ones"


def _folder(path: str) -> str:
    """Return the last part of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _models(names: Sequence[str]) -> str:
    return "" if not names else names[-1] + (f" +{len(names) - 1}" if len(names) > 1 else "")


def show_chat_head(console: Console, answer: Answer) -> None:
    """Print a chat's metadata, and the other conversations of the session."""
    name = session_label(answer["agent"], answer["session"] or None)
    console.print(Text(_titled(console, f"{name}  ", answer["title"]), style="bold"), soft_wrap=True)
    about = f"chat {answer['id']}@{answer['version']}, {plural(answer['turn_count'], 'turn')}, {when(answer['at'])} UTC"
    console.print(Text(plain(about), style="dim"), soft_wrap=True)
    if len(answer["threads"]) > 1:
        for one in answer["threads"]:
            shown = "  (shown)" if one["thread"] == answer["thread"] else ""
            sizes = f"{plural(one['turns'], 'turn')}, {plural(one['steps'], 'step')}"
            line = _titled(console, f"--thread {one['thread']}: {sizes}{shown}, ", one["title"])
            console.print(Text(line, style="dim"), soft_wrap=True)


def _titled(console: Console, before: str, title: str) -> str:
    """Return a line that ends with a title, which is cut at the width of the terminal, but not to less than some words."""
    room = console.width - len(plain(before))
    return plain(before + short(title, max(_SHORTEST_TITLE, min(_TITLE, room))))


def show_thread(console: Console, answer: Answer) -> None:
    """Print that the conversation goes on in the thread of a turn."""
    console.print()
    console.print(Text(f"=== thread {answer['thread']}, after a compaction", style="bold"), soft_wrap=True)


def show_turn(console: Console, answer: Answer) -> None:
    """Print a turn: the words of the user, then the steps in order. With `thinking`, also what the model thought."""
    at = "" if answer["at"] is None else f"  {when(answer['at'])} UTC"
    console.print()
    console.print(Text(f"--- turn {answer['turn']}{at}", style="bold cyan"), soft_wrap=True)
    added = 0
    for part in (*answer["said"], *answer["steps"]):
        if part["kind"] == "text" and part["role"] != "assistant":
            added += max(0, len(part["text"]) - len(part["words"]))
            if not part["words"]:
                continue
        if part["kind"] == "thinking" and not answer["thinking"]:
            continue
        for line in _lines(part):
            console.print(line, soft_wrap=True)
    if added:
        console.print(Text(f"  ({plural(added, 'character')} added by the client)", style="dim"), soft_wrap=True)


def _lines(part: Answer) -> Iterator[Text]:
    match part["kind"]:
        case "text" if part["role"] == "assistant":
            yield Text(terminal_text(part["text"]))
            if part.get("cut_short"):
                yield Text("  (cut short)", style="dim")
        case "text":
            yield from (Text(f"> {terminal_text(line)}", style="green") for line in part["words"].split("\n"))
        case "thinking":
            yield Text(terminal_text(part["text"]), style="dim italic")
        case "call":
            style = "" if part["status"] == "ok" else "red"
            call = f"  * {part['tool']} {call_label(part['args'])}".rstrip()
            yield Text.assemble(
                plain(call), "  ", (plain(part["status"]), style), (f"  {plain(part['object'] or '')}", "dim")
            )
        case other:
            yield Text(f"  ({plain(other)})", style="dim")

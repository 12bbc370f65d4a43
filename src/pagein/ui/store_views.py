"""The content of a store, as tables and lines for people. Takes plain values, as printed by `--json`."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import ABSENT, amount, plain, short

Answer = Mapping[str, Any]
_WRAPPED: Final = frozenset({"what", "title", "the user said"})
_SHORT_NAME: Final = 20
_BEGINNING: Final = 13
_WORDS: Final = 60
_ARGUMENTS: Final = 100
# Arguments that tell what a call is about, by their names in the tools of agents.
_TELLING: Final = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "skill")
_TEXTS: Final = re.compile(r'"(\w+)":\s*"((?:[^"\\]|\\.)*)')


def show_objects(console: Console, answer: Answer) -> None:
    """Print one line per object, newest first."""
    rows = answer["objects"]
    if not rows:
        told = (
            "no objects; `pagein search` finds what left a window or was ingested, `pagein window` lists a session's; "
            "`pagein serve` and `pagein remember` take in sessions"
        )
        console.print(Text(told))
        return
    table = columns(
        ("id", "left"), ("type", "left"), ("v", "right"), ("chars", "right"), ("when (UTC)", "left"), ("what", "left")
    )
    for row in rows:
        cells = (row["id"], row["type"], str(row["version"]), amount(row["chars"]), when(row["at"]), object_label(row))
        table.add_row(*(Text(plain(cell)) for cell in cells), style="dim" if row["deleted"] else "")
    console.print(table)
    if answer["next"] is not None:
        console.print(Text(f"more: --before {answer['next']}", style="dim"))


def show_hits(console: Console, answer: Answer) -> None:
    """Print hits under their version, with line numbers, as grep does."""
    last = None
    for hit in answer["hits"]:
        head = (hit["id"], hit["sequence"], hit["field"], hit["step"], hit["speaker"])
        if head != last:
            if last is not None:
                console.print()
            console.print(_head(hit), soft_wrap=True)
            last = head
        for text in _lines(hit):
            console.print(text, soft_wrap=True)
    for note in _notes(answer):
        console.print(Text(note, style="dim"))


def _head(hit: Answer) -> Text:
    about = [f"v{hit['version']}" + ("" if hit["current"] else " (not the newest)"), hit["type"], when(hit["at"])]
    if hit["turn"] is not None:
        about.append(f"turn {hit['turn']}" + ("" if hit["step"] is None else f" step {hit['step']}"))
    if hit["speaker"] is not None:
        about.append(hit["speaker"])
    elif hit["field"] != "content":
        about.append(f"in {hit['field']}")
    if hit["session"] is not None:
        about.append(f"session {hit['session']}")
    name = hit["path"] or hit["nickname"]
    return Text.assemble(
        (plain(hit["id"]), "bold"), "  ", (plain(name) + "  " if name else ""), (plain(", ".join(about)), "dim")
    )


def _lines(hit: Answer) -> Iterator[Text]:
    first = hit["line"] - len(hit["before"])
    for number, line in enumerate(hit["before"], start=first):
        yield Text(f"{number:>6}- {_one_line(line)}", style="dim")
    yield Text.assemble((f"{hit['line']:>6}: ", "green"), _highlight(hit))
    for number, line in enumerate(hit["after"], start=hit["line"] + 1):
        yield Text(f"{number:>6}- {_one_line(line)}", style="dim")


def _highlight(hit: Answer) -> Text:
    text, matched = _one_line(hit["text"]), _one_line(hit["matched"].split("\n")[0])
    line = Text(text)
    column = hit["column"] - 1
    at = column if text[column : column + len(matched)] == matched else text.find(matched)
    if matched and at >= 0:
        line.stylize("bold red", at, at + len(matched))
    return line


def _one_line(text: str) -> str:
    return plain(text.rstrip("\r"))


def _notes(answer: Answer) -> Iterator[str]:
    if not answer["hits"]:
        yield "no matches" if not answer["timed_out"] else "no matches so far"
    for one in answer["unsearched"]:
        yield plain(f"not searched: {one['id']} v{one['version']}: {one['why']}")
    if answer["timed_out"]:
        yield f"the time was up; go on with --next {answer['next']}"
    elif answer["next"] is not None:
        yield f"more: --next {answer['next']}"


def show_backlinks(console: Console, answer: Answer) -> None:
    """Print one line per reference to the target: what touched it, in which turn of which session."""
    rows = answer["backlinks"]
    if not rows:
        console.print(Text(plain(f"nothing refers to {answer['target']}")))
        return
    table = columns(
        ("when (UTC)", "left"),
        ("session", "left"),
        ("turn", "right"),
        ("op", "left"),
        ("version", "left"),
        ("from", "left"),
        ("what", "left"),
    )
    for row in rows:
        reference = row["reference"]
        cells = (
            when(row["at"]),
            session_label(row["agent"], row["session"]),
            "" if row["turn"] is None else str(row["turn"]),
            reference.get("relation", "link"),
            "pinned" if "pin" in reference else "newest",
            row["id"],
        )
        table.add_row(*map(plain, cells), one_line(f"{_source(row)}{_asked(row)}"))
    console.print(table)
    if answer["more"]:
        console.print(Text(f"more: --limit {2 * len(rows)}", style="dim"))


def _source(row: Answer) -> str:
    if row["type"] != "toolcall":
        return f"{row['type']} {row['title']}"
    tool, _, args = row["title"].partition(" ")
    return f"{tool} {call_label(args)} {row['status'] or ''}".rstrip()


def _asked(row: Answer) -> str:
    return f" ({short(row['said'], _WORDS)})" if row["said"] else ""


def when(at: float) -> str:
    """Format a time to the second. The clocks of writers may give any number."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return ABSENT


def session_label(agent: str | None, session: str | None) -> str:
    """Return the client and the beginning of the session's name, which mostly means this session alone."""
    if session is None:
        return ABSENT
    name = session if len(session) <= _SHORT_NAME else f"{session[:_BEGINNING]}"
    return f"{agent} {name}" if agent else name


def one_line(text: str) -> Text:
    """Return words as a cell of one line, cut at the end of the line."""
    return Text(plain(text), no_wrap=True, overflow="ellipsis")


def call_label(args: str) -> str:
    """Return what a call is about, from its arguments, which may be cut off: the command, the path, or all of them."""
    told: dict[str, str] = dict(_TEXTS.findall(args))
    for name in _TELLING:
        if told.get(name):
            return short(told[name].replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\"), _ARGUMENTS)
    return "" if args == "{}" else short(args, _ARGUMENTS)


def object_label(row: Answer) -> str:
    """Return a short label of an object: its path, nickname or title, else facts from its view, or "deleted"."""
    view = row["view"]
    if row["deleted"]:
        return "deleted"
    if row["path"] or row["nickname"]:
        return str(row["path"] or row["nickname"])
    said = [str(view[name]) for name in ("tool", "args_display", "status") if view.get(name) is not None]
    return " ".join(said) or row["title"]


def columns(*titles: tuple[str, Any]) -> Table:
    """Return an empty table with these columns. Only those for words may be wrapped."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title, justify in titles:
        table.add_column(title, justify=justify, no_wrap=title not in _WRAPPED, overflow="fold")
    return table

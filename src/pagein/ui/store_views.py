"""The content of a store, as tables and lines for people. Takes plain values, as printed by `--json`."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import ABSENT, amount, plain, short, short_path
from pagein.ui.row_tables import RowColumn, TableRow, print_rows

Answer = Mapping[str, Any]
_OBJECTS: Final = (
    RowColumn("id"), RowColumn("type"), RowColumn("v", 1, "right"), RowColumn("chars", 3, "right"), RowColumn("when (UTC)", 2),
)  # fmt: skip
_BACKLINKS: Final = (
    RowColumn("when (UTC)"), RowColumn("session"), RowColumn("turn", 1, "right"), RowColumn("op"), RowColumn("version", 3),
    RowColumn("from", 2),
)  # fmt: skip
_SHORT_NAME: Final = 20
_BEGINNING: Final = 13
_WORDS: Final = 60
_ARGUMENTS: Final = 100
# Arguments that tell what a call is about, by their names in the tools of agents.
_TELLING: Final = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "skill")
_PATHS: Final = frozenset({"file_path", "filePath", "path"})
_TEXTS: Final = re.compile(r'"(\w+)":\s*"((?:[^"\\]|\\.)*)')


def show_objects(console: Console, answer: Answer) -> None:
    """Print one line per object, newest first."""
    rows = answer["objects"]
    if not rows:
        told = (
            "no objects; `pagein search` finds what left a window or was ingested, `pagein window` lists a session's; "
            "`pagein run AGENT` and `pagein remember` take in sessions"
        )
        console.print(Text(told))
        return
    cells = [
        TableRow(
            (row["id"], row["type"], str(row["version"]), amount(row["chars"]), when(row["at"])),
            short_path(object_label(row)),
            "dim" if row["deleted"] else "",
        )
        for row in rows
    ]
    print_rows(console, _OBJECTS, "what", cells)
    if answer["next"] is not None:
        console.print(Text(f"more: --before {answer['next']}", style="dim"))


def show_hits(console: Console, answer: Answer) -> None:
    """Print hits under their version, with line numbers, as grep does: each line of the context once."""
    last, shown = None, 0
    hits = answer["hits"]
    for hit, following in zip(hits, [*hits[1:], None], strict=False):
        head = _place(hit)
        if head != last:
            if last is not None:
                console.print()
            console.print(_head(hit), soft_wrap=True)
            last, shown = head, 0
        end = following["line"] if following is not None and _place(following) == head else None
        for number, text in _lines(hit):
            if (shown < number or number == hit["line"]) and (end is None or number < end or number == hit["line"]):
                console.print(text, soft_wrap=True)
                shown = number
    for note in _notes(answer):
        console.print(Text(note, style="dim"))


def _place(hit: Answer) -> tuple[object, ...]:
    """Return the text that a hit is in."""
    return hit["id"], hit["sequence"], hit["field"], hit["step"], hit["speaker"]


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


def _lines(hit: Answer) -> Iterator[tuple[int, Text]]:
    """Yield the lines of a hit with their numbers."""
    first = hit["line"] - len(hit["before"])
    for number, line in enumerate(hit["before"], start=first):
        yield number, Text(f"{number:>6}- {_one_line(line)}", style="dim")
    yield hit["line"], Text.assemble((f"{hit['line']:>6}: ", "green"), _highlight(hit))
    for number, line in enumerate(hit["after"], start=hit["line"] + 1):
        yield number, Text(f"{number:>6}- {_one_line(line)}", style="dim")


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
        yield f"the time limit was reached; continue with --next {answer['next']}"
    elif answer["next"] is not None:
        yield f"more: --next {answer['next']}"


def show_backlinks(console: Console, answer: Answer) -> None:
    """Print one line per reference to an object: the call or note, its session and its turn."""
    rows = answer["backlinks"]
    if not rows:
        console.print(Text(plain(f"nothing refers to {answer['target']}")))
        return
    cells = [
        TableRow(
            (
                when(row["at"]),
                session_label(row["agent"], row["session"]),
                "" if row["turn"] is None else str(row["turn"]),
                row["reference"].get("relation", "link"),
                "pinned" if "pin" in row["reference"] else "newest",
                row["id"],
            ),
            f"{_source(row)}{_asked(row)}",
        )
        for row in rows
    ]
    print_rows(console, _BACKLINKS, "what", cells)
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
    """Format a time to the second, 0 as an unknown time. The clocks of writers may give any number."""
    if not at:
        return ABSENT
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


def call_label(args: str) -> str:
    """Return the subject of a call from its arguments, which may be cut off: the command, the path, or the whole text.

    A long absolute path is shortened to its last parts.
    """
    told: dict[str, str] = dict(_TEXTS.findall(args))
    for name in _TELLING:
        if told.get(name):
            text = told[name].replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")
            return short(short_path(text) if name in _PATHS else text, _ARGUMENTS)
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

"""The content of a store, as tables and lines for people. Takes plain values, as printed by `--json`."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import ABSENT, amount, plain

Answer = Mapping[str, Any]
_DIGEST: Final = 12


def show_objects(console: Console, answer: Answer) -> None:
    """Print one line per object, newest first."""
    rows = answer["objects"]
    if not rows:
        told = "no objects; `pagein search` finds what left a window or was ingested, `pagein window` lists a session's"
        console.print(Text(told))
        return
    table = _table(
        ("id", "left"), ("type", "left"), ("v", "right"), ("chars", "right"), ("when (UTC)", "left"), ("what", "left")
    )
    for row in rows:
        cells = (row["id"], row["type"], str(row["version"]), amount(row["chars"]), when(row["at"]), object_label(row))
        table.add_row(*(Text(plain(cell)) for cell in cells), style="dim" if row["deleted"] else "")
    console.print(table)
    if answer["next"] is not None:
        console.print(Text(f"more: --before {answer['next']}", style="dim"))


def show_history(console: Console, answer: Answer) -> None:
    """Print one line per version, newest first."""
    versions = answer["versions"]
    first = versions[0]
    console.print(Text(plain(f"{first['type']} {answer['id']}  {object_label(first)}"), style="bold"))
    table = _table(
        ("v", "right"), ("sequence", "right"), ("when (UTC)", "left"), ("chars", "right"), ("writer", "left"), ("object hash", "left"), ("changed", "left")
    )  # fmt: skip
    for version, before in zip(versions, [*versions[1:], None], strict=True):
        cells = (
            str(version["version"]),
            str(version["sequence"]),
            when(version["at"]),
            amount(version["chars"]),
            version["writer"],
            version["object_hash"][:_DIGEST],
            ", ".join(_change_lines(version, before)),
        )
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console.print(table)


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
    """Print one line per reference to the target."""
    rows = answer["backlinks"]
    if not rows:
        console.print(Text(plain(f"nothing refers to {answer['target']}")))
        return
    table = _table(
        ("from", "left"), ("type", "left"), ("v", "right"), ("what", "left"), ("place", "left"), ("means", "left")
    )
    for row in rows:
        reference = row["reference"]
        means = ("pinned" if "pin" in reference else "newest") + (
            f", {reference['field']}" if "field" in reference else ""
        )
        cells = (row["id"], row["type"], str(row["version"]), row["path"] or row["nickname"] or "", row["place"], means)
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console.print(table)


def show_metadata(console: Console, answer: Answer) -> None:
    """Print the facts about a version, one per line."""
    facts = {
        "id": answer["id"],
        "type": answer["type"]
        + (" (deleted)" if answer["deleted"] else "")
        + (" (locked)" if answer["locked"] else ""),
        "nickname": answer["nickname"],
        "version": f"{answer['version']}"
        + (f" (sequence {answer['sequence']})" if answer["sequence"] is not None else ""),
        "when": None if answer["at"] is None else when(answer["at"]) + " UTC",
        "session": answer["session"],
        "chars": f"{answer['chars']:,}",
        "content hash": answer["content_hash"],
        "object hash": answer["object_hash"],
        "origin": f"{answer['provenance']['origin']} ({answer['provenance']['generator']})",
        "fields": ", ".join(answer["additional"]) or None,
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        if fact is not None:
            table.add_row(name, Text(plain(fact)))
    for name, value in answer["metadata"].items():
        table.add_row(Text(plain(name)), Text(plain(value if isinstance(value, str) else _compact(value))))
    for link in answer["references"]:
        arrow = "->" if link["resolved"] else "-/->"
        table.add_row(
            "reference", Text(plain(f"{link['path']} {arrow} {link['id']}{' (pinned)' if 'pin' in link else ''}"))
        )
    console.print(table)


def _compact(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def when(at: float) -> str:
    """Format a time to the second. The clocks of writers may give any number."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return ABSENT


def object_label(row: Answer) -> str:
    """Return a short label of an object: its path or nickname, else facts from its view, or "deleted"."""
    view = row["view"]
    if row["deleted"]:
        return "deleted"
    if row["path"] or row["nickname"]:
        return str(row["path"] or row["nickname"])
    said = [str(view[name]) for name in ("tool", "args_display", "status", "turn_count") if view.get(name) is not None]
    return " ".join(said)


def _change_lines(version: Answer, before: Answer | None) -> list[str]:
    if before is None:
        return ["created"]
    named = ("content_hash", "content"), ("path", "path"), ("nickname", "nickname"), ("deleted", "deleted")
    found = [label for field, label in named if version[field] != before[field]]
    return found or ["metadata"]


def _table(*columns: tuple[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title, justify in columns:
        last = title in {"what", "changed", "means"}
        table.add_column(title, justify=justify, no_wrap=not last, overflow="fold")
    return table


def terminal_text(text: str) -> str:
    """Return content safe for a terminal: line ends and tabs stay, other control characters become question marks."""
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "?" for letter in text)

"""Versions of objects, as tables and lines for people. Takes plain values, as printed by `--json`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagein.ui.figures import amount, plain
from pagein.ui.row_tables import RowColumn, TableRow, print_rows
from pagein.ui.store_views import object_label, session_label, when

Answer = Mapping[str, Any]
_MOST_SPANS: Final = 6
_VERSIONS: Final = (
    RowColumn("v", justify="right"), RowColumn("when (UTC)"), RowColumn("op"), RowColumn("known"),
    RowColumn("chars", 2, "right"), RowColumn("session"), RowColumn("turn", 1, "right"),
)  # fmt: skip
_LIKELY: Final = "is likely: an edit on a text that something else may have changed in between"
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def show_history(console: Console, answer: Answer) -> None:
    """Print one line per version, the latest first."""
    versions = answer["versions"]
    first = versions[0]
    console.print(Text(plain(f"{first['type']} {answer['id']}  {object_label(first)}"), style="bold"), soft_wrap=True)
    before = [*versions[1:], {} if answer["more"] else None]
    rows = [
        TableRow(
            (
                str(version["version"]),
                when(version["at"]),
                version["op"] or ", ".join(_change_lines(version, earlier)),
                known_part(version),
                amount(version["chars"]),
                session_label(version["agent"], version["session"]),
                "" if version["turn"] is None else str(version["turn"]),
            ),
            version["said"] or "",
            "dim" if version["deleted"] else "",
        )
        for version, earlier in zip(versions, before, strict=True)
    ]
    print_rows(console, _VERSIONS, "the user said", rows)
    if answer["more"]:
        console.print(Text(f"more: --limit {2 * len(versions)}", style="dim"))


def _change_lines(version: Answer, before: Answer | None) -> list[str]:
    if before is None:
        return ["created"]
    named = ("content_hash", "content"), ("path", "path"), ("nickname", "nickname"), ("deleted", "deleted")
    found = [label for field, label in named if field in before and version[field] != before[field]]
    return found or ["metadata"]


def known_part(version: Answer) -> str:
    """Return how much of a file is known: whole, likely, name, or the lines."""
    if version["known"] != "part":
        return version["known"] or ""
    spans = version["spans"]
    more = ", ..." if len(spans) > _MOST_SPANS else ""
    return "lines " + ", ".join(_span(span) for span in spans[:_MOST_SPANS]) + more if spans else "part"


def _span(span: Sequence[int]) -> str:
    first, last = span
    return str(first) if first == last else f"{first}-{last}"


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
    for quote in answer.get("evidence", ()):
        table.add_row("evidence", Text(plain(f"{quote['quote']} ({quote['place']})")))
    for link in answer["references"]:
        table.add_row("reference", Text(plain(f"{link['path']} {_target(link)}")))
    console.print(table)


def _target(link: Answer) -> str:
    """Return the target of a reference."""
    target = link["target"]
    if target is None:
        return f"-/-> {link['id']}: {link['why']}"
    name = f"{target['type']} {target['title'] or target['id']}"
    return f"-> {name}, version {target['version']} ({'pinned, verified' if 'pin' in link else 'newest'})"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def missing_text(answer: Answer) -> str:
    """Return the missing part of a version's printed content, in words; "" for a whole content."""
    name = f"version {answer['version']} of {answer['title'] or answer['id']}"
    if answer["field"] == "content" and answer["content"] is None:
        if answer["type"] in ("chat", "session"):
            return (
                f"`pagein chat {answer['id']}` prints the conversation, --metadata the metadata of the {answer['type']}"
            )
        if answer["deleted"]:
            return f"{name} is a deletion; `pagein history {answer['id']}` lists the versions before it"
        return f"{name} has no content; --metadata shows its metadata"
    if answer["known"] == "part" and answer["field"] == "content":
        return f"{name} is known in part: {known_part(answer)} of the file"
    if answer["known"] == "likely" and answer["field"] == "content":
        return f"{name} {_LIKELY}"
    return ""


def partial_sides(answer: Answer) -> Iterator[str]:
    """Yield a warning for each side of a difference with partly known content."""
    sides = [answer["old"], answer["new"]]
    for side in sides[: 1 if sides[0] == sides[1] else 2]:
        if side["known"] == "part":
            yield f"version {side['version']} is known in part: {known_part(side)} of the file; the rest counts as absent"
        if side["known"] == "likely":
            yield f"version {side['version']} {_LIKELY}"


def show_diff(console: Console, answer: Answer) -> None:
    """Print a unified diff below a line with both versions, in colour on a terminal."""
    console.print(Text(diff_title(answer), style="bold"), soft_wrap=True)
    lines = [_line_of_diff(line) for line in answer["diff"].splitlines()]
    if lines:
        console.print(Text("\n").join(lines), soft_wrap=True)  # at once: each print looks at the environment again


def _line_of_diff(line: str) -> Text:
    is_head = line.startswith(("--- a/", "+++ b/"))
    return Text(terminal_text(line), style="bold" if is_head else _STYLES.get(line[:1], ""))


def diff_title(answer: Answer) -> str:
    """Return the line with both versions of a difference."""
    sides = f"{_side(answer['old'])} to {_side(answer['new'])}"
    return plain(f"{answer['path']}: {'' if answer['diff'] else 'no difference from '}{sides}")


def _side(side: Answer) -> str:
    return "the file on disk" if side["version"] is None else f"version {side['version']} ({when(side['at'])})"


def show_naming(console: Console, answer: Answer) -> None:
    """Print the nickname that an object has now."""
    what = f"{answer['type']} {answer['path'] or answer['id']}"
    was = f", until now {answer['was']!r}" if answer["was"] and answer["was"] != answer["nickname"] else ""
    told = "has no nickname" if answer["nickname"] is None else f"is named {answer['nickname']!r}"
    console.print(Text(plain(f"{what} {told}{was}")), soft_wrap=True)


def show_view(console: Console, answer: Answer) -> None:
    """Print the fields of an object's view, one per line."""
    if not answer["view"]:
        console.print(Text(plain(f"the view of {answer['type']} {answer['id']} has no fields")), soft_wrap=True)
    for name, value in answer["view"].items():
        shown = value if isinstance(value, str) else _compact(value)
        console.print(Text.assemble((f"{plain(name)}  ", "dim"), plain(shown)), soft_wrap=True)


def terminal_text(text: str) -> str:
    """Return content safe for a terminal: line ends and tabs stay, other control characters become question marks."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "?" for letter in text)

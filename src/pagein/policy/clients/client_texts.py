"""Word the answer to a read as the client's own tool does: with its line numbers, and no file length that it does not state."""

import re
from dataclasses import dataclass
from typing import Final

from pagein.model.read_events import FileRead
from pagein.model.spans import NO_LINES
from pagein.policy.clients.client_reads import UNSEEN
from pagein.policy.clients.line_layouts import ShownText
from pagein.policy.reads import markers
from pagein.policy.reads.read_request import ReadDecision

_RUN: Final = re.compile(
    r"\[readcache: (?:unchanged in )?lines (\d+)-(\d+) of \d+(?: unchanged, shown (earlier|before this answer) as lines (\d+)-\d+)?\]"
)
_CHANGED: Final = re.compile(r"\[readcache: (\d+) lines changed in lines ")


@dataclass(frozen=True, slots=True)
class ClientText:
    """A text in place of the lines.

    markers: pagein's lines in it.
    """

    text: str
    markers: tuple[str, ...]


def client_text(decision: ReadDecision, shown: ShownText, text: str) -> ClientText | None:
    """Return the wording of a decision in place of some lines; None for plain lines or a missing wording."""
    event = decision.event
    total = event.total if shown.total is not None else None
    match event.mode:
        case "unchanged" if total is not None:
            return _marker(markers.unchanged_marker(total))
        case "unchanged_range":
            return _marker(markers.lines_unchanged_marker(event.first, event.last, total))
        case "moved":
            return _marker(markers.moved_marker(event.first, event.last, total, event.copies[0].first))
        case "diff" | "range_diff":
            return _diff(decision, total)
        case "partly_known":
            return _partly(decision.text, event, shown.rows(text), total)
        case _:
            return None


def _marker(text: str) -> ClientText:
    return ClientText(text, (text,))


def _diff(decision: ReadDecision, total: int | None) -> ClientText | None:
    head, _, body = decision.text.partition("\n")
    if UNSEEN in body or (total is None and decision.event.mode == "diff"):
        return None  # the diff would quote lines that were never shown, or state an end that was never seen
    found = _CHANGED.match(head)
    if found is not None:
        head = markers.lines_changed_marker(int(found[1]), decision.event.first, decision.event.last, total)
    return ClientText(f"{head}\n{body}", (head,))


def _partly(text: str, event: FileRead, rows: list[str], total: int | None) -> ClientText | None:
    """Return the client's own rows where lines are shown, and a marker for each known run."""
    out: list[str] = []
    ours: list[str] = []
    emitted = event.emitted or NO_LINES
    n = event.first
    for row in text.split("\n"):
        if emitted.holds(n, n):
            out.append(rows[n - event.first])
            n += 1
            continue
        found = _RUN.fullmatch(row)
        if found is None or int(found[1]) != n:
            return None
        last = int(found[2])
        marker = (
            markers.lines_unchanged_marker(n, last, total)
            if found[4] is None
            else markers.moved_marker(n, last, total, int(found[4]), over_again=found[3] != "earlier")
        )
        out.append(marker)
        ours.append(marker)
        n = last + 1
    return ClientText("\n".join(out), tuple(ours))

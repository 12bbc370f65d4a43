"""The tool results in a window of Claude Code, from the transcript.

Each row names the row before it (`parentUuid`), so a prompt that goes back to an earlier message makes a branch. The
branch of a call is the way from its row to the first row. A result hangs on the row of its call.

Rules of this file
------------------
1. Rows before a boundary in the file do not count, wherever they are in the tree: a compaction may keep some of them, but the
   file does not say which rows it kept unchanged.
2. A row that is no JSON is a boundary. So is a row of an unknown kind: it may replace content, as context collapse does. An
   answer whose provider cleared parts of the window is a boundary for its own calls, too.
3. Two different results of one call: neither counts.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pagein.client_windows.transcript_tail import Row
from pagein.engine.log.standing_receipts import StandingReceipt, standing_receipt

_KNOWN: Final = frozenset((
    "user", "assistant", "system", "attachment", "progress", "summary", "custom-title", "ai-title", "ended-by-model", "last-prompt",
    "tag", "agent-name", "agent-color", "agent-setting", "pr-link", "frame-link", "bridge-session", "file-history-snapshot",
    "attribution-snapshot", "mode", "permission-mode", "isolation-latch", "worktree-state", "queue-operation", "fork-context-ref",
))  # fmt: skip
"""Kinds of rows that take nothing out of the window."""
_BOUNDARY: Final = "_boundary"
_KEEPS_RESULTS: Final = "clear_thinking"
"""How those server-side edits of a window begin that leave the results of tools."""


class ClaudeCodeTranscript:
    """The rows of a transcript so far."""

    def __init__(self) -> None:
        self._rows = 0
        self._parents: dict[str, str | None] = {}
        self._calls_in: dict[str, list[str]] = {}
        self._row_of: dict[str, tuple[str, int]] = {}
        self._results: dict[str, tuple[int, StandingReceipt | None]] = {}
        self._boundaries: list[int] = []

    def take(self, row: Row | None) -> None:
        """Take the next row."""
        place, self._rows = self._rows, self._rows + 1
        if row is None or _is_boundary(row):
            self._boundaries.append(place)
        uuid = None if row is None else row.get("uuid")
        if row is None or not isinstance(uuid, str) or uuid in self._parents:
            return
        parent = row.get("parentUuid")
        self._parents[uuid] = parent if isinstance(parent, str) else None
        for block in _blocks(row):
            if block.get("type") == "tool_use" and isinstance(name := block.get("id"), str):
                self._calls_in.setdefault(uuid, []).append(name)
                self._row_of[name] = (uuid, place)
            elif block.get("type") == "tool_result" and isinstance(name := block.get("tool_use_id"), str):
                found = _receipt(block.get("content"))
                known = self._results.setdefault(name, (place, found))
                if known[1] != found:
                    self._results[name] = (known[0], None)

    def standing(self, call_id: str) -> Mapping[str, StandingReceipt] | None:
        """Return the receipts on the branch of a call, by the ids of their calls; None if the call is not here yet."""
        found = self._row_of.get(call_id)
        if found is None:
            return None
        uuid, place = found
        before = bisect_right(self._boundaries, place)
        last = self._boundaries[before - 1] if before else -1
        standing = {}
        for name in self._calls_above(uuid):
            row, receipt = self._results.get(name, (-1, None))
            if receipt is not None and row > last:
                standing[name] = receipt
        return standing

    def _calls_above(self, uuid: str | None) -> Iterator[str]:
        seen = set()
        while uuid is not None and uuid not in seen:
            seen.add(uuid)
            yield from self._calls_in.get(uuid, ())
            uuid = self._parents.get(uuid)


def _is_boundary(row: Row) -> bool:
    subtype, message = row.get("subtype"), row.get("message")
    edits = message.get("context_management") if isinstance(message, dict) else None
    return (
        row.get("type") not in _KNOWN
        or (isinstance(subtype, str) and subtype.endswith(_BOUNDARY))
        or row.get("isCompactSummary") is True
        or (edits is not None and _may_clear_results(edits))
    )


def _may_clear_results(edits: object) -> bool:
    """Return whether what an answer tells of edits of its window may mean results of tools."""
    applied = edits.get("applied_edits", ()) if isinstance(edits, dict) else None
    if not isinstance(applied, list | tuple):
        return True
    kinds = (one.get("type") if isinstance(one, dict) else None for one in applied)
    return not all(isinstance(kind, str) and kind.startswith(_KEEPS_RESULTS) for kind in kinds)


def _blocks(row: Row) -> Iterator[dict[str, Any]]:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return (one for one in content if isinstance(one, dict)) if isinstance(content, list) else iter(())


def _receipt(content: object) -> StandingReceipt | None:
    """Return the receipt of a result with a single text."""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return standing_receipt(content) if isinstance(content, str) else None

"""The tool results in a window of opencode, from its database.

opencode sends no call id to a server. Before it makes a call, it records the call as running, with the arguments. So the call
is identified by its tool and arguments among the calls recorded as running for a few seconds.

Rules of this file
------------------
1. If such calls run in two sessions, neither is the caller.
2. What stands before a compaction does not count, nor a result that opencode pruned, nor an answer that failed. A session of which
   messages were taken back proves nothing until it goes on.
3. A part of an unknown kind ends what stood before it.
4. A plugin may change each request, and nobody writes down how. With a plugin, nothing is proven.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from pagein.engine.log.standing_receipts import StandingReceipt, standing_receipt
from pagein.engine.sent_windows import ToolRequest

_KNOWN: Final = frozenset((
    "text", "reasoning", "tool", "step-start", "step-finish", "file", "snapshot", "patch", "agent", "subtask", "retry",
))  # fmt: skip
"""Kinds of parts that take nothing out of the window."""
_RECENT: Final = 10.0
"""Seconds for which a call may have been running."""
_SESSIONS: Final = 8
_MESSAGES: Final = 4
"""Latest sessions, and latest messages of a session, in which a call is looked for."""
_LATEST: Final = "SELECT id, revert FROM session ORDER BY time_updated DESC LIMIT ?"
_CALLS: Final = """SELECT part.data FROM part WHERE message_id IN (
    SELECT id FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT ?)
    AND json_extract(data, '$.state.status') = 'running'"""
_PARTS: Final = """SELECT json_extract(part.data, '$.type'), json_extract(part.data, '$.callID'),
    CASE WHEN json_extract(part.data, '$.tool') LIKE ? THEN json_extract(part.data, '$.state.output') END,
    json_extract(message.data, '$.error') IS NULL AND json_extract(part.data, '$.state.time.compacted') IS NULL,
    json_extract(message.data, '$.role') = 'assistant' AND json_extract(message.data, '$.summary') = 1
    FROM part JOIN message ON message.id = part.message_id WHERE message.session_id = ?
    ORDER BY message.time_created, message.id, part.id"""
_CONFIGS: Final = ("opencode.json", "opencode.jsonc", "config.json")
_CHANGING: Final = (b'"plugin"', b"context_management", b"contextManagement")
"""What a configuration has in it if requests may differ from the database."""


def database_file(environment: Mapping[str, str], home: Path) -> Path | None:
    """Return the database of the opencode that started this process; None under another agent, and for no database."""
    if not environment.get("OPENCODE"):
        return None
    folder = Path(environment.get("XDG_DATA_HOME", "").strip() or home / ".local" / "share") / "opencode"
    found = [folder / environment["OPENCODE_DB"]] if environment.get("OPENCODE_DB") else [*folder.glob("opencode*.db")]
    return found[0] if len(found) == 1 and found[0].is_file() else None


def may_change_requests(environment: Mapping[str, str], home: Path, folder: Path) -> bool:
    """Return whether a plugin or an option may change what opencode sends. Raises OSError for an unreadable file.

    folder: in which opencode works.
    """
    own = Path(environment.get("XDG_CONFIG_HOME", "").strip() or home / ".config") / "opencode"
    folders = [
        own,
        home / ".opencode",
        *(place for one in (folder, *folder.parents) for place in (one, one / ".opencode")),
    ]
    folders += [Path(environment["OPENCODE_CONFIG_DIR"])] if environment.get("OPENCODE_CONFIG_DIR") else []
    files = [one / name for one in folders for name in _CONFIGS]
    files += [Path(environment["OPENCODE_CONFIG"])] if environment.get("OPENCODE_CONFIG") else []
    texts = [environment.get("OPENCODE_CONFIG_CONTENT", "").encode()]
    texts += [one.read_bytes() for one in files if one.is_file()]
    if any(word in text for text in texts for word in _CHANGING):
        return True
    homes = [one for one in folders if one.name in ("opencode", ".opencode")]
    return any(any((one / name).glob("*")) for one in homes for name in ("plugin", "plugins"))


class OpencodeDatabase:
    """The database of opencode. Each look reads it anew."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def standing(self, asked: ToolRequest) -> Mapping[str, StandingReceipt] | None:
        """Return the receipts that stand at a call, by the ids of their calls; None if the call is not here yet.

        Raises sqlite3.Error for another database.
        """
        with self._opened() as database:
            callers = _callers(database, asked)
            if len(callers) != 1:
                return {} if callers else None
            session, revert = callers[0]
            return {} if revert else _standing(database, session, asked.name)

    def caller(self, asked: ToolRequest) -> str | None:
        """Return the id of the session that makes a call; "" if several may, None if the call is not here yet.

        Raises sqlite3.Error for another database.
        """
        with self._opened() as database:
            callers = _callers(database, asked)
        return None if not callers else callers[0][0] if len(callers) == 1 else ""

    def _opened(self) -> "closing[sqlite3.Connection]":
        return closing(sqlite3.connect(f"{self._file.resolve().as_uri()}?mode=ro", uri=True, timeout=0.1))


def _callers(database: sqlite3.Connection, asked: ToolRequest) -> list[tuple[str, str | None]]:
    """Return the sessions in which a call runs, each with what was taken back."""
    latest = database.execute(_LATEST, (_SESSIONS,)).fetchall()
    return [(name, revert) for name, revert in latest if _calls(database, name, asked)]


def _calls(database: sqlite3.Connection, session: str, asked: ToolRequest) -> bool:
    """Return whether a call runs in a session."""
    return any(_is_call(json.loads(data), asked) for (data,) in database.execute(_CALLS, (session, _MESSAGES)))


def _is_call(part: dict[str, Any], asked: ToolRequest) -> bool:
    state = part["state"]
    began = state["time"]["start"] / 1000
    is_named = str(part["tool"]).endswith(f"_{asked.name}")
    return is_named and state["input"] == dict(asked.arguments) and abs(asked.at - began) <= _RECENT


def _standing(database: sqlite3.Connection, session: str, name: str) -> dict[str, StandingReceipt]:
    standing: dict[str, StandingReceipt] = {}
    for kind, call, output, counts, is_summary in _rows(database, session, name):
        if is_summary or kind not in _KNOWN:
            standing.clear()
        elif isinstance(output, str) and counts and (receipt := standing_receipt(output)) is not None:
            standing[call] = receipt
    return standing


def _rows(database: sqlite3.Connection, session: str, name: str) -> Iterator[tuple[str, str, object, bool, bool]]:
    """Yield the parts of a session in order: kind, call id, output of the tool, whether it counts, whether it sums up."""
    return database.execute(_PARTS, (f"%_{name}", session))

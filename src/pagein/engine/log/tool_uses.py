"""The tools that the sessions of a store were offered and used, read from their journals.

Rules of this file
------------------
1. The newest sessions are read, and of each only what is new since it was last read.
2. The work of one look is bounded: sessions that do not fit are left out, the oldest first.
3. A failure of the store, or an unreadable entry, is no evidence and no error: the caller decides with what was read.
"""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Final

from pagein.errors import StoreError
from pagein.model.entries import Entry, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import DeferredToolsNote, UsageNote
from pagein.model.messages import ToolCall
from pagein.model.note_forms import kind_of
from pagein.policy.economics.tool_deferral import SessionTools
from pagein.ports import JournalStore

MOST_SESSIONS: Final = 20
_MOST_ENTRIES: Final = 3_000
_KINDS: Final = frozenset(map(kind_of, (DeferredToolsNote, UsageNote)))


class ToolUses:
    """The use of tools by the sessions of a store. Thread-safe."""

    def __init__(self, journals: JournalStore) -> None:
        self._journals = journals
        self._lock = Lock()
        self._known: dict[str, tuple[int, SessionTools]] = {}

    def sessions(self, but: str) -> Sequence[SessionTools]:
        """Return what is known of the newest sessions.

        but: name of the session that asks.
        """
        with self._lock:
            try:
                names = [name for name in self._journals.latest(MOST_SESSIONS + 1) if name != but][:MOST_SESSIONS]
                self._read(names)
            except StoreError:
                names = [name for name in self._known if name != but]
            found = [self._known[name][1] for name in names if name in self._known]
            self._known = {name: self._known[name] for name in names if name in self._known}
            return [one for one in found if one.offered]

    def _read(self, names: Sequence[str]) -> None:
        left = _MOST_ENTRIES
        for name in names:
            place, tools = self._known.get(name, (0, SessionTools()))
            for at, entry in self._journals.news(name, place):
                if left <= 0:
                    self._known.pop(name, None)  # what was not read may be a use
                    return
                left -= 1
                place = at
                if isinstance(entry, Entry):
                    tools = with_entry(tools, entry)
            self._known[name] = place, tools


def with_entry(tools: SessionTools, entry: Entry) -> SessionTools:
    """Return the tools of a session after a further entry."""
    match entry.body:
        case NoteEntry(kind=kind) if kind not in _KINDS:
            return tools
        case MessageEntry(message) if message.role == "assistant":
            called = {block.name for block in message.blocks if isinstance(block, ToolCall)}
            return tools if called <= tools.used else replace(tools, used=tools.used | called)
        case NoteEntry(note=DeferredToolsNote(offered=offered, deferred=deferred)):
            first = tools.deferred if tools.offered else frozenset(deferred)  # later ones are of sub-agents
            return replace(tools, offered=tools.offered | frozenset(offered), deferred=first)
        case NoteEntry(note=UsageNote(usage=usage)):
            mean = (tools.prompt * tools.calls + usage.prompt) / (tools.calls + 1)
            return replace(tools, calls=tools.calls + 1, prompt=mean, front=tools.front or usage.prompt)
        case RequestSent(moment=moment):
            return replace(tools, sent=moment)
        case _:
            return tools

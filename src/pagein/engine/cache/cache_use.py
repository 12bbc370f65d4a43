"""Track whether a breakpoint-based cache takes part in a conversation, by the client's breakpoints on the branch.

Rules of this file
------------------
1. For Messages the cache holds only the prompt before a breakpoint. A request without breakpoints neither reads nor
   writes the cache; with breakpoints in tools or system prompt alone, only these are cached, and nothing of the
   conversation. Other formats and other caches need no breakpoints.
2. A change is journaled before the request: the client stops setting breakpoints, or starts again. So the same branch
   has the same prices in every process. For a client that always sets breakpoints nothing is journaled.
3. A provider that reports tokens read or written is believed: then a proxy after pagein sets breakpoints, and the cache
   takes part. If the client sets breakpoints on the prompt prefix, these are reported too; then the report counts only
   if next to nothing was paid in full.
4. A client that stopped setting breakpoints may return to an entry in the cache. Its TTL is unknown, so the longest is
   assumed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from pagein.engine.intake.message_chain import Transcript
from pagein.model.entries import Body, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import CacheMarksNote, UsageNote
from pagein.model.messages import Message, Usage

_FEW: Final = 64
"""Most tokens paid in full if a breakpoint is at the prompt's end."""
_MARK: Final = re.compile(rb'"cache_control"\s*:\s*\{')  # null sets no breakpoint


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The cache use of a branch.

    marks: True if the client set breakpoints in the last request's conversation.
    latest: time of the last request that the cache may hold, in seconds since 1970; infinite if unknown.
    told: True if the provider reported cached tokens without a breakpoint of the client.
    front: True if the client set breakpoints on the prompt prefix alone.
    """

    marks: bool = True
    latest: float = -inf
    told: bool = False
    front: bool = False

    def holds(self, at: float | None, lifetime: float) -> bool:
        """Return whether the cache may hold anything of the branch at this time."""
        return self.latest > -inf and (at is None or at - self.latest <= lifetime)


FROM_THE_START: Final = CacheUse()


def has_marks(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the conversation of a request may be cached: False only for Messages without a breakpoint."""
    if not script.format.cache.needs_breakpoints or bytes(fields.get("cache_control", b"")).lstrip().startswith(b"{"):
        return True
    # a client's last breakpoint is usually near the end
    return any(_MARK.search(item.raw) for item in reversed(script.items[script.head :]))


def marks_front(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the prompt prefix of a request has a breakpoint."""
    front = (*(fields[name] for name in ("system", "tools") if name in fields), *script.raws[: script.head])
    return any(_MARK.search(part) for part in front)


def note_before_request(caching: CacheUse, *, marks: bool, front: bool) -> CacheMarksNote | None:
    """Return the note to journal before a request.

    None if nothing changed.

    marks: True if the conversation has breakpoints.
    front: True if only the prompt prefix has breakpoints.
    """
    if (marks, front) == (caching.marks, caching.front):
        return None
    return CacheMarksNote("front" if front else "marked" if marks else "unmarked")


def step(caching: CacheUse, body: Body) -> CacheUse:
    """Return the cache use after a further entry."""
    match body:
        case NoteEntry(note=CacheMarksNote(marks="front")):
            return replace(caching, marks=False, front=True)
        case NoteEntry(note=CacheMarksNote(marks=marks)):
            return replace(caching, marks=marks == "marked", front=False, told=caching.told and not caching.front)
        case RequestSent() if caching.marks:
            return replace(caching, latest=inf if body.moment is None else max(caching.latest, body.moment))
        case _ if caching.marks or (caching.told and not caching.front):
            return caching
        case MessageEntry(message=Message(usage=Usage() as usage)) | NoteEntry(note=UsageNote(usage=usage)):
            is_cached = usage.read + usage.written > 0
            return replace(caching, told=not caching.front or usage.fresh <= _FEW) if is_cached else caching
        case _:
            return caching

"""Recently recalled objects, kept in the window for a few calls.

Both the recalled object and the call with its text count as recently recalled. Without the second, the recalled text
would be evicted at the next epoch and be asked for again. Recalling again restarts the time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.entries import Body, NoteEntry, RecallEntry, RequestSent
from pagein.model.journal_notes import RecallNote

WARM_CALLS: Final = 3
"""Default number of model calls that count as recent."""


@dataclass(frozen=True, slots=True)
class Warmth:
    """Recently recalled objects and tool calls after `calls` model calls.

    objects, tool_calls: ids, each with the number of the call from which it no longer counts.
    """

    calls: int = 0
    objects: Mapping[str, int] = field(default_factory=dict)
    tool_calls: Mapping[str, int] = field(default_factory=dict)

    def with_recalls(self, objects: Iterable[str], tool_call: str = "", *, lasts: int = WARM_CALLS) -> "Warmth":
        """Record a recall of objects, by a tool call if known."""
        until = self.calls + lasts
        calls = {**self.tool_calls, tool_call: until} if tool_call else self.tool_calls
        return replace(self, objects={**self.objects, **dict.fromkeys(objects, until)}, tool_calls=calls)

    def after_call(self) -> "Warmth":
        """Advance by one model call, and drop expired ids."""
        now = self.calls + 1
        return Warmth(now, _still(self.objects, now), _still(self.tool_calls, now))

    def is_warm(self, object_id: str) -> bool:
        """Return whether this object was recalled recently."""
        return object_id in self.objects

    def is_call_warm(self, call_id: str) -> bool:
        """Return whether the result of this call shows a recently recalled object."""
        return call_id in self.tool_calls


COLD: Final = Warmth()


def step(warmth: Warmth, body: Body, *, lasts: int = WARM_CALLS) -> Warmth:
    """Return the recent recalls after another journal entry."""
    match body:
        case RequestSent():
            return warmth.after_call()
        case RecallEntry(object_id=object_id):
            return warmth.with_recalls((object_id,), lasts=lasts)
        case NoteEntry(note=RecallNote() as recall):
            return warmth.with_recalls(recall.objects, recall.call_id, lasts=lasts)
        case _:
            return warmth


def _still(warm: Mapping[str, int], now: int) -> Mapping[str, int]:
    return {name: until for name, until in warm.items() if until > now} if warm else warm

"""What was recalled lately, and is not paged out again yet (pi-rlm spec 5.2.2).

Both are warm: the object that was recalled, and the call whose result shows it. Without the second, what was brought back
would leave at the next edge and be asked for again. Warm lasts a number of model calls; recalling again begins it anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.entries import Body, RecallEntry, RequestSent
from pagein.model.recall_entries import recall_of

WARM_CALLS: Final = 3
"""Model calls that something stays warm for, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Warmth:
    """What is warm after `calls` model calls. objects, tool_calls: ids, each with the number of the call at which it is warm no more."""

    calls: int = 0
    objects: Mapping[str, int] = field(default_factory=dict)
    tool_calls: Mapping[str, int] = field(default_factory=dict)

    def with_recalls(self, objects: Iterable[str], tool_call: str = "", *, lasts: int = WARM_CALLS) -> "Warmth":
        """These objects were recalled, by this tool call if it has an id."""
        until = self.calls + lasts
        calls = {**self.tool_calls, tool_call: until} if tool_call else self.tool_calls
        return replace(self, objects={**self.objects, **dict.fromkeys(objects, until)}, tool_calls=calls)

    def after_call(self) -> "Warmth":
        """One model call later. What is not warm any more is forgotten."""
        now = self.calls + 1
        return Warmth(now, _still(self.objects, now), _still(self.tool_calls, now))

    def is_warm(self, object_id: str) -> bool:
        """Whether this object was recalled lately."""
        return object_id in self.objects

    def is_call_warm(self, call_id: str) -> bool:
        """Whether the result of this call shows something that was recalled lately."""
        return call_id in self.tool_calls


COLD: Final = Warmth()


def step(warmth: Warmth, body: Body, *, lasts: int = WARM_CALLS) -> Warmth:
    """What is warm after one more entry."""
    match body:
        case RequestSent():
            return warmth.after_call()
        case RecallEntry(object_id=object_id):
            return warmth.with_recalls((object_id,), lasts=lasts)
    recall = recall_of(body)
    return warmth if recall is None else warmth.with_recalls(recall.objects, recall.call_id, lasts=lasts)


def _still(warm: Mapping[str, int], now: int) -> Mapping[str, int]:
    return {name: until for name, until in warm.items() if until > now} if warm else warm

"""The baselines: what a host without pagein does, as small as they are.

Parameters: DESIGN section 9, notes on real sessions, 2, notes on cache economics, 5.3.
"""

from dataclasses import dataclass
from itertools import takewhile

from pagein.replay.policies.ledger import Ledger, Recall
from pagein.replay.prompt.prompt_changes import NOTHING, Hide, Removable
from pagein.replay.prompt.prompt_sizes import FIVE_MINUTES, ONE_HOUR, SizedCall

STUB_TOKENS = 40.0
REMOVABLE_FROM = 200.0
DEFAULT_WINDOW = 200_000


@dataclass(frozen=True, slots=True)
class AppendOnly:
    """Nothing ever leaves. The marks: system, previous end, end."""

    name: str = "append"
    ttl: int | None = None
    caches: bool = True
    recall: Recall = "full"

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        return NOTHING

    def frontier(self, ledger: Ledger) -> int:
        return 0

    def note_recall(self, copy: Removable, ledger: Ledger) -> None:
        return


@dataclass(frozen=True, slots=True)
class RollingStubs(AppendOnly):
    """Every result older than `keep` calls becomes a stub, decided anew at every call, without a frontier mark."""

    name: str = "rolling"
    ttl: int | None = FIVE_MINUTES
    keep: int = 10

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        last = sized.call.index - self.keep
        old = takewhile(lambda one: one.born <= last, ledger.resident)
        stubs = [(one, STUB_TOKENS) for one in old if one.tokens > REMOVABLE_FROM]
        return Hide(stubs, reason="rolling") if stubs else NOTHING


@dataclass(frozen=True, slots=True)
class Clear(AppendOnly):
    """The vendor's clearing of tool uses: above `trigger` tokens all but the newest `keep` results are cleared.

    The provider looks at the request as the client sent it, which never shrinks: once above the trigger, every new
    result pushes an old one out. Stubs only ever replace results, so what is cleared stays cleared.
    """

    name: str = "clear"
    trigger: float = 100_000
    keep: int = 3

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        if sized.prompt <= self.trigger:
            return NOTHING
        old = list(ledger.resident)[: max(0, len(ledger.resident) - self.keep)]
        stubs = [(one, STUB_TOKENS) for one in old if one.tokens > STUB_TOKENS]
        return Hide(stubs, reason="trigger") if stubs else NOTHING


@dataclass(frozen=True, slots=True)
class Compact(AppendOnly):
    """At `share` of the window one more request writes a summary and everything before it is gone."""

    name: str = "compact"
    window: int = DEFAULT_WINDOW
    share: float = 0.8

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        return Hide(compact=True, reason="window") if ledger.window.size > self.share * self.window else NOTHING


NONE = AppendOnly("none", caches=False)
APPEND = AppendOnly()
APPEND_5M = AppendOnly("append-5m", FIVE_MINUTES)
APPEND_1H = AppendOnly("append-1h", ONE_HOUR)

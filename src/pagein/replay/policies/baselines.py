"""The baseline policies: hosts without pagein, modelled as simply as possible."""

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
    """Append-only: nothing leaves the window. Cache breakpoints: system prompt, previous end, end."""

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
    """A rolling window: every result older than `keep` calls becomes a stub, decided anew at every call, without a
    frontier breakpoint.
    """

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
    """The vendor's clearing of tool uses: above `trigger` tokens, all results except the newest `keep` are cleared.

    The provider sees the request as the client sent it, and this request never shrinks: once above the trigger, every
    new result pushes an old one out. A stub always replaces a result, so a cleared result stays cleared.
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
    """Compaction at `share` of the window: one extra request writes a summary, and everything before the summary is
    dropped.
    """

    name: str = "compact"
    window: int = DEFAULT_WINDOW
    share: float = 0.8

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        return Hide(compact=True, reason="window") if ledger.window.size > self.share * self.window else NOTHING


NONE = AppendOnly("none", caches=False)
APPEND = AppendOnly()
APPEND_5M = AppendOnly("append-5m", FIVE_MINUTES)
APPEND_1H = AppendOnly("append-1h", ONE_HOUR)

"""The eviction decision, made before each model call: does the eviction of old enough results pay?

Results grow old by the rows of `residency_rules`; `resident_set` keeps them by age. Evictions go in one batch, when the
prices say that the batch is worth it (`policy.economics.rewrite_cost`). One batch is one rewrite of the window, which
voids the provider's cache after the frontier, so batches must be rare.

A group (an assistant message with its results) stays together in the request. Only the content of results is ever
replaced.

The kind of a result is resolved once, when it enters the window: the rows of the residency table hold by kind. Kinds are
listed most specific first. The first of them that has a row in the table counts, so a kind without a row of its own
falls under the more general one. Results of tools that the provider runs itself have kinds of their own, but a web search
is a web search, whoever made it.
"""

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Literal, TypeAlias

from pagein.errors import BadSetting
from pagein.model.entries import CHANGED_FRONT, COLD_CACHE, UNCACHED
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import (
    CAUTION,
    Account,
    Economics,
    Moment,
    account_after_rewrite,
    call_outlook,
    calls_below,
    cliff_savings,
    falls_short,
    is_cold,
    is_user_turn,
    pays,
    readable_tokens,
    rewrite_cost,
)
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRules, ResidentKind
from pagein.policy.eviction.resident_set import EMPTY, ResidentSet
from pagein.policy.eviction.residents import STUB_TOKENS, WHOLE, Resident
from pagein.policy.reads.receipt_lines import LONGEST_RECEIPT_LINE, RECEIPT_LINE
from pagein.policy.stubs.previews import Previews
from pagein.policy.stubs.result_stubs import LONGEST

__all__ = [
    "EMPTY",
    "PRICED",
    "STUB_TOKENS",
    "Epoch",
    "EpochPlan",
    "Residency",
    "Resident",
    "ResidentSet",
    "Thinking",
    "is_removable",
    "kinds_of_result",
    "lines_read",
    "plan",
    "resident_kind",
]


WEB_SEARCHES: Final = frozenset(("websearch", "web_search", "google_web_search"))
"""Tools that search the web, in lower case."""

Thinking: TypeAlias = Literal["kept", "leaves"]
"""Fate of thinking after the frontier of an epoch, on models that do not bind thinking to the messages before it."""


@dataclass(frozen=True, slots=True)
class Residency:
    """Settings of eviction.

    rules: which kinds of residents may leave, and when.
    min_tokens: results with fewer tokens never leave.
    economics: prices; None evicts all that may leave as soon as it has `batch_tokens`, whatever that costs.
    previews: None lets every output enter whole (*lossless only*).
    arguments: which texts in the arguments of calls may be masked; None: none, as where the echo guard cannot hold a
        call back.
    shown_once: outputs of at least this many tokens may be shown by one request only (`policy.eviction.results_shown_once`); None:
        none.
    thinking: whether an epoch also removes the thinking of finished turns behind its frontier where the model could
        keep it.
    """

    rules: ResidencyRules = USUAL
    min_tokens: int = 200
    economics: Economics | None = field(default_factory=Economics)
    previews: Previews | None = field(default_factory=Previews)
    arguments: ArgumentRules | None = None
    thinking: Thinking = "kept"
    batch_tokens: int = 1
    shown_once: int | None = 1000

    def __post_init__(self) -> None:
        for name, least in (("min_tokens", 0), ("batch_tokens", 1)):
            if getattr(self, name) < least:
                raise BadSetting(f"{name} must be {least} or more, not {getattr(self, name)}")

    def with_prices_of(self, other: "Residency") -> "Residency":
        """Return these settings at the prices of another value."""
        return replace(self, economics=other.economics)

    @property
    def reads_wait(self) -> int:
        """Minimum calls that a read of an unknown file stays."""
        return max((row.wait or 1 for row in self.rules.of("read")), default=1)


PRICED: Final = Residency()
"""Default settings. The figures are from replays of recorded sessions (docs/reference/residency.md)."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A decision to rewrite the window.

    frontier: index of the first message that changes. page_out: evicted residents, oldest first.
    shown_once: calls with results that only the request before showed. entering: places of arguments that no request
        has shown, by message and block.
    """

    frontier: int
    page_out: tuple[Resident, ...] = field(default=())
    reason: str = "batch"
    shown_once: frozenset[str] = frozenset()
    entering: frozenset[tuple[int, int]] = frozenset()

    @property
    def gain(self) -> int:
        """Tokens saved by its evictions."""
        return sum(one.gain for one in self.page_out)

    @property
    def uncached(self) -> bool:
        """Whether nothing changes in front of the last cache breakpoint of the request before."""
        return self.reason in UNCACHED

    def is_free(self, call: str, place: tuple[int, int]) -> bool:
        """Return whether the part of a call at a place is evicted without a rewrite."""
        return call in self.shown_once or place in self.entering


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The decision before a call: an epoch or None, with the account of the call.

    account: the account with the epoch. alone: the account without the epoch.
    is_short: whether the rewrite is priced for a shorter TTL than the client's.
    """

    epoch: Epoch | None
    account: Account
    alone: Account
    is_short: bool = False


def is_removable(result: ToolResult, tokens: int, settings: Residency) -> bool:
    """Return whether this result may ever be evicted.

    Images and redacted results stay, and a small result is not worth a stub. Failures stay unless a row names them. A read
    with a receipt stays: a later answer of the MCP server may rest on it, and no request tells on which.
    """
    text = result.text
    big = tokens >= settings.min_tokens and tokens > 0 and len(text) > LONGEST and result.withheld is None
    if not big or result.images or (result.is_error and not settings.rules.lets_go("failure")):
        return False
    # asked of each result that enters, so the pattern is used here and no other module is entered
    return RECEIPT_LINE.search(text, max(len(text) - LONGEST_RECEIPT_LINE, 0)) is None


def resident_kind(
    call: ToolCall, result: ToolResult, tokens: int, settings: Residency
) -> tuple[ResidentKind, str] | None:
    """Return the kind of a removable result, and the first file in its call, for kinds with a row by file.

    The path is "" if no file counts. None for a result that is not removable, or for which no row holds.
    """
    if not is_removable(result, tokens, settings):
        return None
    kind = next((one for one in kinds_of_result(call, result) if one in settings.rules.by_kind), None)
    return None if kind is None else (kind, _path_read(call) if kind == "file read" else "")


def kinds_of_server_result(tool: str, *, is_error: bool) -> tuple[ResidentKind, ...]:
    """Return the kinds of the result of a tool that the provider ran, most specific first."""
    if is_error:
        return ("failure",)
    return ("web search", "server result") if tool in WEB_SEARCHES else ("server result",)


def kinds_of_result(call: ToolCall, result: ToolResult) -> tuple[ResidentKind, ...]:
    """Return the kinds of a tool's result, most specific first."""
    if result.is_error:
        return ("failure",)
    if any(access.op == "read" for access in call.accesses):
        return ("file read", "read", "result") if _path_read(call) else ("read", "result")
    if call.name.lower() in WEB_SEARCHES:
        return ("web search", "result")
    return ("result",)


def lines_read(call: ToolCall) -> tuple[int, int]:
    """Return the first and last line of the first file that a call read."""
    access = next((access for access in call.accesses if access.op == "read"), None)
    return WHOLE if access is None else (access.start or WHOLE[0], access.end or WHOLE[1])


def _path_read(call: ToolCall) -> str:
    return next((access.path for access in call.accesses if access.op == "read"), "")


def plan(standing: ResidentSet, settings: Residency, moment: Moment, account: Account) -> EpochPlan:
    """Decide on evictions before this call; O(1) if nothing is evicted, else linear in the evicted results."""
    economics = settings.economics
    if economics is None:
        if standing.old_tokens < settings.batch_tokens:
            return EpochPlan(None, account, account)
        return EpochPlan(_epoch(tuple(sorted(standing.old(), key=_place)), "batch"), account, account)
    outlook = call_outlook(account, moment, economics)
    alone, cold = outlook.alone, outlook.is_cold
    if economics.uncached is not None:  # this call leaves no entry in the cache
        alone = replace(alone, anew=moment.size, found=0)
    elif cold or moment.last is None:
        alone = replace(alone, anew=moment.size, found=standing.first_of_all(moment.size))
    easy = cold or outlook.is_user_turn
    gain = standing.old_gain + (standing.ripe_gain if easy else 0)
    if gain <= economics.entrance:
        return EpochPlan(None, alone, alone)
    before = readable_tokens(account, economics, standing.first_before(ripe_too=easy))
    cost, below = rewrite_cost(moment, economics, before, gain), cliff_savings(moment, economics, gain)
    # a client that goes back finds no breakpoint in front of the change: of its old prompt it reads the prefix alone
    risked = rewrite_cost(moment, replace(economics, void=False), 0, gain) if economics.void else cost
    richer = replace(alone, saved=alone.saved + below / CAUTION)
    rent = moment.scale * standing.rent(economics.read) + below * calls_below(moment, economics, gain)
    if not pays(rent, risked, moment, economics, richer) or falls_short(moment, economics, gain):
        return EpochPlan(None, alone, alone)
    going = tuple(sorted(chain(standing.old(), standing.ripe() if easy else ()), key=_place))
    epoch = _epoch(going, _reason(moment, economics, below))
    return EpochPlan(epoch, account_after_rewrite(alone, moment, economics, risked - below, epoch.gain), alone)


def _reason(moment: Moment, economics: Economics, below: float) -> str:
    if is_cold(moment, economics):
        return CHANGED_FRONT if economics.void else COLD_CACHE
    if is_user_turn(moment, economics):
        return "user turn"
    return "price cliff" if below > 0.0 else "rent paid"


def _epoch(going: tuple[Resident, ...], reason: str) -> Epoch:
    return Epoch(min(one.message for one in going), going, reason)


def _place(resident: Resident) -> tuple[int, int]:
    return resident.place

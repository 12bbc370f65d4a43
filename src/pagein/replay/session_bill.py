"""Replay one session under every requested policy."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pagein.engine.engine import Settings
from pagein.errors import BadSetting
from pagein.model.bill import Detail, Figures, SessionBill, Why
from pagein.policy.layouts.pooled_window import PRESETS as POOLED_PRESETS
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.ablation import FULL, PRESET_POLICIES, QUIET, VARIANTS, chooses_lifetimes, layers_missing
from pagein.replay.policies.baselines import APPEND, APPEND_1H, APPEND_5M, NONE, Clear, Compact, RollingStubs
from pagein.replay.policies.keepalive_bill import KeptLedger
from pagein.replay.policies.keepalive_policy import KeepAlivePagein
from pagein.replay.policies.laid_ledger import LaidLedger
from pagein.replay.policies.laid_sessions import LaidSession, PooledSession
from pagein.replay.policies.laid_tiers import TieredSession
from pagein.replay.policies.ledger import Ledger, Policy
from pagein.replay.policies.optimum import bound, optimum
from pagein.replay.policies.pagein_policy import USUAL, OpenEngine, PageinPolicy
from pagein.replay.policies.tally import Tally, Trace
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.context_limit import beyond, model_window
from pagein.replay.results.bill_figures import figures
from pagein.replay.results.session_pictures import detail, first_words

_BASELINES = ("none", "append", "append-5m", "append-1h", "rolling", "clear", "compact")
_LIMITS: Final[Mapping[str, Callable[[BillableSession, Prices], Tally]]] = {
    "optimum": optimum,
    "optimum-results": partial(optimum, arguments=False),
    "bound": bound,
}
POLICIES = (*_BASELINES, FULL, QUIET, *PRESET_POLICIES, "optimum", "bound")
"""Names of the policies replayed by default, in the order of the tables."""
LAYOUT_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "inline": (FULL, QUIET),
    "pooled": ("pooled", "pooled-spec"),
    "tiered": ("tiered",),
}
"""The policies of each layout. All policies that are not named here are inline, too."""
_LAID = (*LAYOUT_POLICIES["pooled"], *LAYOUT_POLICIES["tiered"])
EVERY_POLICY = (*_BASELINES, FULL, *VARIANTS, *_LAID, *_LIMITS)
"""Names of all policies."""


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """The terms of a replay.

    usual: the engine's settings, except the prices.
    stress: whether the stress model draws recalls beyond the textual needs.
    detail: whether to keep the pictures.
    why: whether to compute the worth of each decision of pagein.
    """

    prices: Prices
    open_engine: OpenEngine
    policies: tuple[str, ...] = POLICIES
    stress: bool = True
    detail: bool = False
    why: bool = False
    usual: Settings = USUAL


@dataclass(frozen=True, slots=True)
class BilledSession:
    """A session's bill, with its pictures and the reasons for pagein's decisions if requested."""

    bill: SessionBill
    detail: Detail | None
    why: Why | None = None


@dataclass(slots=True)
class _PolicyTraces:
    """The traces of the policies, and the reasons for pagein's decisions."""

    traces: dict[str, Trace] = field(default_factory=dict)
    why: Why | None = None
    borrowing: list[str] = field(default_factory=list)


def policies_of_layouts(names: Iterable[str]) -> tuple[str, ...]:
    """Return the policies of layouts, each item a comma-separated list. Raise BadSetting for an unknown layout."""
    layouts = [name.strip() for item in names for name in item.split(",")]
    for name in layouts:
        if name not in LAYOUT_POLICIES:
            raise BadSetting(f"there is no layout {name!r}; the layouts are {', '.join(LAYOUT_POLICIES)}")
    return tuple(policy for name in dict.fromkeys(layouts) for policy in LAYOUT_POLICIES[name])


def layout_of(policy: str) -> str:
    """Return the layout of a policy."""
    return next((layout for layout, policies in LAYOUT_POLICIES.items() if policy in policies), "inline")


def bill_session(recording: BillableSession, terms: ReplayTerms) -> BilledSession:
    """Replay one session under each policy."""
    rows: dict[str, Figures] = {}
    kept = _PolicyTraces()
    for name in terms.policies:
        if name in _LIMITS:
            rows[name] = figures(_LIMITS[name](recording, terms.prices), terms.prices, counted=False)
        elif name in _LAID:
            rows[name] = _play_layout(name, recording, terms, kept)
        else:
            rows[name] = _play_policy(name, recording, terms, kept)
    for name, row in rows.items():
        row["layout"] = layout_of(name)
    head = recording.head
    bill = SessionBill(
        file=head.file,
        id=head.id,
        title=first_words(recording),
        project=head.cwd,
        began=recording.calls.calls[0].at if recording.calls.timed else None,
        source=head.source,
        agent=head.agent,
        parent=head.parent,
        prices=terms.prices.name,
        flags={
            **recording.flags,
            **beyond(recording, terms.prices),
            **({"reserve": kept.borrowing} if kept.borrowing else {}),
        },
        policies=rows,
    )
    return BilledSession(bill, detail(recording, kept.traces, kept.why) if terms.detail else None, kept.why)


def _play_policy(name: str, recording: BillableSession, terms: ReplayTerms, kept: _PolicyTraces) -> Figures:
    if layers_missing(name) is not None:
        engine = KeepAlivePagein if chooses_lifetimes(name) else PageinPolicy
        with engine(recording, terms.open_engine, terms.prices, name, terms.usual) as paging:
            ledger = _run(recording, paging, terms, kept)
            if terms.why and name == FULL:
                kept.why = paging.why(ledger, stress=terms.stress)
            paging.prove(ledger.tally)
        if isinstance(paging, KeepAlivePagein) and paging.borrows:
            kept.borrowing.append(name)
        return figures(ledger.tally, terms.prices, proved=True)
    baselines: Mapping[str, Policy] = {
        "none": NONE,
        "append": APPEND,
        "append-5m": APPEND_5M,
        "append-1h": APPEND_1H,
        "rolling": RollingStubs(),
        "clear": Clear(),
        "compact": Compact(window=model_window(recording, terms.prices)),
    }
    return figures(_run(recording, baselines[name], terms, kept).tally, terms.prices)


def _play_layout(name: str, recording: BillableSession, terms: ReplayTerms, kept: _PolicyTraces) -> Figures:
    session: LaidSession
    if name == "tiered":
        session = TieredSession(recording, terms.prices)
    else:
        rules = POOLED_PRESETS["spec" if name == "pooled-spec" else "pagein"]
        session = PooledSession(recording, terms.prices, rules, name=name)
    ledger = LaidLedger(recording, session, terms.prices, stress=terms.stress, trace=terms.detail)
    ledger.run()
    if ledger.trace is not None:
        kept.traces[name] = ledger.trace
    return figures(ledger.tally, terms.prices)


def _run(recording: BillableSession, policy: Policy, terms: ReplayTerms, kept: _PolicyTraces) -> Ledger:
    keeping = {"stress": terms.stress, "trace": terms.detail}
    if isinstance(policy, KeepAlivePagein):
        ledger: Ledger = KeptLedger(recording, policy, terms.prices, **keeping)
    else:
        ledger = Ledger(recording, policy, terms.prices, **keeping)
    ledger.run()
    if ledger.trace is not None:
        kept.traces[policy.name] = ledger.trace
    return ledger

"""Replay many sessions: find them, learn facts from each source, bill each session, sum up.

Two passes over the files. The first learns, per source and agent, facts missing from a single session (prompt prefixes,
tokens kept warm across a pause, characters per token); the second bills. Both run on all cores with one session in
memory per worker.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pagein.engine.engine import Settings
from pagein.errors import BadSetting, PageinError
from pagein.model.bill import Bill, Detail, GroupBill, Ratio, SessionBill, SkippedFile
from pagein.policy.eviction.presets import DEFAULT, Preset
from pagein.providers.prices.price_lookup import Prices
from pagein.providers.prices.price_lookup import prices as prices_of
from pagein.replay.policies.ablation import FULL, ablation, layers_missing
from pagein.replay.policies.pagein_policy import USUAL, OpenEngine
from pagein.replay.prompt.billable_session import on_own_cache, record
from pagein.replay.prompt.model_calls import RecordedCalls, gather
from pagein.replay.prompt.prompt_sizes import SessionFacts, SourceFacts, session_facts, source_facts
from pagein.replay.prompt.recorded_needs import NOTHING as NO_NEEDS
from pagein.replay.prompt.token_calibration import Sample, accesses_files, chars_per_token, samples
from pagein.replay.readers import SkippedSource as Unfit
from pagein.replay.readers import Source, find, read_source
from pagein.replay.record.recorded_session import RecordedSession, SessionHead
from pagein.replay.results.bill_figures import by_policy, mean_ratios
from pagein.replay.results.cache_misses import SessionMisses, examine_session, report
from pagein.replay.results.prediction import Comparison, compare, own_prices, prediction
from pagein.replay.results.spread import spreads
from pagein.replay.session_bill import EVERY_POLICY, POLICIES, BilledSession, ReplayTerms, bill_session
from pagein.replay.workers import workers

__all__ = ["OWN", "POLICIES", "STAND_IN", "Progress", "ReplayRequest", "ReplayResult", "replay"]

Result = TypeVar("Result")

OWN = "own"
STAND_IN = "claude-sonnet-5-5"
"""The model whose prices stand in for a model without known prices, with `OWN`."""
_DEAREST = 1e6  # sums beyond it would end as infinities


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The input and the options of a replay.

    prices: see `providers.prices.price_lookup.prices`; `OWN`: each session by the prices of its own model.
    policies: names of policies; those of pagein without layers are names that `ablation` gives.
    without: layers of pagein's policy; each item, a comma-separated list, adds one policy: pagein without these layers.
    preset: the preset of pagein's settings from which these layers are left out.
    stress: whether the stress model draws additional recalls.
    recalls: whether texts needed by a later step are recalled; False: the model recalls nothing.
    jobs: number of worker processes; 0: one per core.
    detail: whether to return the pictures of each session.
    why: whether to compute the worth of each decision of pagein.
    doctor: whether to explain the cache misses of the recorded calls.
    usual: the engine's settings, except the prices.
    """

    paths: tuple[Path, ...]
    prices: str = "generic:r=.1,w=1.25"
    policies: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    preset: Preset = DEFAULT
    baseline: str = "append"
    stress: bool = True
    recalls: bool = True
    jobs: int = 0
    detail: bool = False
    why: bool = False
    doctor: bool = False
    today: date | None = None
    usual: Settings = USUAL


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a replay. total and bytes_total are None until every file has been seen once."""

    done: int
    total: int | None
    file: str
    bytes_done: int
    bytes_total: int | None


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The bill, and the pictures of each session if requested."""

    bill: Bill
    details: list[Detail]


Kin: TypeAlias = tuple[str, str]
"""Related sessions, with common facts: of one source and one agent, sub-agents with their parents."""


@dataclass(frozen=True, slots=True)
class _FirstPass:
    """The facts of a session kept by the first pass."""

    source: str
    agent: str
    model: str
    coding: bool
    facts: SessionFacts
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """The facts about a source for the second pass. ratios: characters per token, by model."""

    facts: SourceFacts
    ratios: dict[str, float]


_UNTAUGHT = _Source(SourceFacts({}, None, 0.0), {})


@dataclass(frozen=True, slots=True)
class _Paid:
    """The result of the second pass for a session."""

    billed: BilledSession
    compared: Comparison
    examined: SessionMisses | None = None


def replay(
    asked: ReplayRequest, open_engine: OpenEngine, progress: Callable[[Progress], None] = lambda _: None
) -> ReplayResult:
    """Replay every session under the given paths. The bill of an empty replay gives the reasons in `skipped`.

    Raises BadSetting for unknown policies or prices and for a missing path.
    """
    terms = _terms(asked, open_engine)
    own = _OwnPrices(asked.today) if asked.prices == OWN else None
    watching = _FileProgress(progress)
    with workers(asked.jobs, _outcome_of_death) as spread:
        learned: dict[Kin, list[_FirstPass]] = defaultdict(list)
        skipped: dict[str, str] = {}
        for outcome in spread(_learn, watching.first(_sources(asked.paths, skipped))):
            _keep(outcome, skipped, lambda one: learned[one.source, one.agent].append(one))
        watching.set_total()
        sources = {kin: _taught(some) for kin, some in learned.items()}
        paid: list[_Paid] = []
        bill_one = partial(_bill, terms=terms, sources=sources, own=own, doctor=asked.doctor, recalls=asked.recalls)
        for outcome in spread(bill_one, watching.second(_sources(asked.paths, {}))):
            _keep(outcome, skipped, paid.append)
    coding = {source for (source, _), some in learned.items() if any(one.coding for one in some)}
    return _sum_up(paid, coding or {source for source, _ in learned}, skipped, asked, OWN if own else terms.prices.name)


def _terms(asked: ReplayRequest, open_engine: OpenEngine) -> ReplayTerms:
    chosen = asked.policies or POLICIES
    for name in (*chosen, asked.baseline):
        if name not in EVERY_POLICY and layers_missing(name) is None:
            raise BadSetting(f"unknown policy {name!r}; choose from {', '.join(EVERY_POLICY)}")
    always = {asked.baseline, "append", *([FULL] if asked.without or asked.why else [])}
    left_out = (ablation(names.split(","), asked.preset) for names in asked.without)
    ablated = dict.fromkeys((*(name for name in chosen if name not in EVERY_POLICY), *left_out))
    listed = [name for name in EVERY_POLICY if name in chosen or name in always]
    place = listed.index(FULL) + 1 if FULL in listed else len(listed)
    wanted = (*listed[:place], *ablated, *listed[place:])
    charged = prices_of(STAND_IN if asked.prices == OWN else asked.prices, asked.today)
    if max(charged.read, charged.write_5m, charged.write_1h, charged.output, charged.input_usd or 0.0) > _DEAREST:
        raise BadSetting(f"prices {asked.prices!r}: nothing costs {_DEAREST:,.0f} times as much as anything else")
    if charged.window < 1:
        raise BadSetting(f"prices {asked.prices!r}: the window must hold at least one token")
    return ReplayTerms(
        charged, open_engine, wanted, stress=asked.stress, detail=asked.detail, why=asked.why, usual=asked.usual
    )


@dataclass(frozen=True, slots=True)
class _OwnPrices:
    """The price tables of the recorded models, as of a day."""

    day: date | None

    def of(self, model: str) -> Prices | None:
        """Return the prices of a model; None for a model without prices."""
        try:
            return prices_of(model, self.day)
        except BadSetting:
            return None


# ── one file, in a worker ──────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a worker for a file."""

    results: tuple[object, ...] = ()
    failed: str | None = None
    label: str = ""


def _each(source: Source, act: Callable[[RecordedSession], Result | None]) -> _Outcome:
    """Act on every session of a file. A failure must not end the work on other files."""
    try:
        results = tuple(done for session in read_source(source) if (done := act(session)) is not None)
    except PageinError as error:
        return _Outcome(failed=str(error), label=source.label)
    except Exception as error:  # noqa: BLE001 a bug met by one file is reported with it, the rest of the folder goes on
        return _Outcome(failed=f"pagein failed on it: {type(error).__name__}: {error}", label=source.label)
    if not results:
        return _Outcome(failed="no model call in it", label=source.label)
    return _Outcome(results, label=source.label)


def _outcome_of_death(source: Source) -> _Outcome:
    return _Outcome(failed="the process that read it was killed; --jobs 1 takes the least memory", label=source.label)


def _learn(source: Source) -> _Outcome:
    return _each(source, _learn_session)


def _learn_session(session: RecordedSession) -> _FirstPass | None:
    calls = gather(session.entries)
    if not calls.calls:
        return None
    head = session.head
    return _FirstPass(
        source=head.source,
        agent=_host(head),
        model=_model(head.models, calls),
        coding=any(call.usage for call in calls.calls) and accesses_files(calls),
        facts=session_facts(calls, is_sub=head.parent is not None),
        samples=tuple(samples(calls)),
    )


def _host(head: SessionHead) -> str:
    """Return the agent's name, also for a sub-agent."""
    return head.agent.partition("/")[0]


def _bill(
    source: Source,
    terms: ReplayTerms,
    sources: dict[Kin, _Source],
    own: "_OwnPrices | None",
    *,
    doctor: bool,
    recalls: bool,
) -> _Outcome:
    return _each(source, partial(_bill_session, terms=terms, sources=sources, own=own, doctor=doctor, recalls=recalls))


def _bill_session(
    session: RecordedSession,
    terms: ReplayTerms,
    sources: dict[Kin, _Source],
    own: "_OwnPrices | None",
    *,
    doctor: bool,
    recalls: bool,
) -> _Paid | None:
    calls = gather(session.entries)
    if not calls.calls:
        return None
    head = session.head
    # a session may have begun, or changed its model, since the first pass
    known = sources.get((head.source, _host(head)), _UNTAUGHT)
    model = _model(head.models, calls)
    ratio = known.ratios.get(model) or chars_per_token(model, ())
    told = session.tally.totals if session.tally is not None else None
    if own is not None:
        prices = own.of(model)
        terms = replace(terms, prices=prices or terms.prices)
        flags = {} if prices else {"unknown_model": model or True}
        head = replace(head, flags={**head.flags, **flags})
    recording = record(head, calls, known.facts, ratio, terms.prices, told)
    cache = own_prices(model)
    replayed = on_own_cache(recording, cache, misses=True)
    pure = on_own_cache(recording, cache, misses=False)
    compared = compare(replayed, pure, cache)
    asked = recording if recalls else replace(recording, needs=(NO_NEEDS,) * len(recording.sized))
    examined = examine_session(pure, cache, terms.prices) if doctor else None
    return _Paid(bill_session(asked, terms), compared, examined)


def _model(models: tuple[str, ...], calls: RecordedCalls) -> str:
    return next((call.model for call in calls.calls if call.model), next(iter(models), ""))


def _taught(some: list[_FirstPass]) -> _Source:
    """Return the facts of a source: characters per token from the source's usage, by model; floors and reads from every
    session.
    """
    ratios: dict[str, float] = {}
    for model in {one.model for one in some}:
        sampled = [sample for one in some if one.model == model for sample in one.samples]
        ratios[model] = chars_per_token(model, sampled)
    return _Source(source_facts([(one.facts, ratios[one.model]) for one in some]), ratios)


# ── all files ──────────────────────────────────────────────────────────────


def _sources(paths: Iterable[Path], skipped: dict[str, str]) -> Iterator[Source]:
    for found in find(paths):
        if isinstance(found, Unfit):
            skipped[found.file] = found.reason
        else:
            yield found


def _keep(outcome: _Outcome, skipped: dict[str, str], act: Callable[[Any], object]) -> None:
    if outcome.failed is not None:
        skipped[outcome.label] = outcome.failed
    for result in outcome.results:
        act(result)


def _sum_up(
    paid: list[_Paid], coding: set[str], skipped: dict[str, str], asked: ReplayRequest, prices: str
) -> ReplayResult:
    rows: dict[str, list[SessionBill]] = defaultdict(list)
    compared: dict[str, list[Comparison]] = defaultdict(list)
    for one in paid:
        rows[one.billed.bill["source"]].append(one.billed.bill)
        if (
            one.billed.bill["flags"].get("usage") != "simulated"
        ):  # usage from the simulator proves nothing about the simulator
            compared[one.billed.bill["source"]].append(one.compared)
    groups = {name: by_policy(row["policies"] for row in some) for name, some in sorted(rows.items())}
    macro = mean_ratios({name: sums for name, sums in groups.items() if name in coding}, asked.baseline)
    bill = Bill(
        sessions=len(paid),
        skipped=[SkippedFile(file=file, reason=reason) for file, reason in skipped.items()],
        prices=prices,
        baseline=asked.baseline,
        policies=by_policy(groups.values()),
        groups={name: GroupBill(policies=sums) for name, sums in groups.items()},
        macro={name: Ratio(ratio=ratio) for name, ratio in macro.items()},
        spread=spreads((one.billed.bill["policies"] for one in paid), asked.baseline),
        prediction={name: prediction(some) for name, some in sorted(compared.items())},
        per_session=[one.billed.bill for one in paid],
        why=[one.billed.why for one in paid if one.billed.why is not None],
        doctor=report(checked) if (checked := [one.examined for one in paid if one.examined is not None]) else None,
    )
    return ReplayResult(bill, [one.billed.detail for one in paid if one.billed.detail is not None])


class _FileProgress:
    """Counts files as they are read. A file counts half after the first pass, whole after the second."""

    def __init__(self, tell: Callable[[Progress], None]) -> None:
        self._tell = tell
        self._files = self._bytes = 0
        self._total: int | None = None
        self._bytes_total: int | None = None

    def first(self, sources: Iterator[Source]) -> Iterator[Source]:
        yield from self._pass(sources)

    def set_total(self) -> None:
        self._total, self._bytes_total = 2 * self._files, 2 * self._bytes

    def second(self, sources: Iterator[Source]) -> Iterator[Source]:
        yield from self._pass(sources)

    def _pass(self, sources: Iterator[Source]) -> Iterator[Source]:
        for source in sources:
            self._tell(Progress(self._files, self._total, source.label, self._bytes, self._bytes_total))
            yield source
            self._files += 1
            self._bytes += _size(source)
        self._tell(Progress(self._files, self._total, "", self._bytes, self._bytes_total))


def _size(source: Source) -> int:
    if source.content is not None:
        return len(source.content)
    try:
        return source.path.stat().st_size if source.path is not None else 0
    except OSError:
        return 0

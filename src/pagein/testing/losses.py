"""The cost of a generated session under pagein beyond append-only, replayed as from its log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final, Literal

from pagein.engine.engine import Engine, Settings
from pagein.model.messages import Block, FileAccess, HostEvent, Message, Recorded, Text, ToolCall, ToolResult, Usage
from pagein.policy.economics.cache_trust import UNKNOWN
from pagein.policy.economics.rewrite_cost import UNREPORTED
from pagein.policy.eviction.overflow import SAFE
from pagein.ports import TokenCounter
from pagein.providers.cache_simulator import CacheSimulator, CacheUsage
from pagein.providers.prices.models.anthropic import CACHE as ANTHROPIC
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.ablation import FULL, PRESET_POLICIES, QUIET, chooses_lifetimes
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.keepalive_bill import KeptLedger
from pagein.replay.policies.keepalive_policy import KeepAlivePagein
from pagein.replay.policies.ledger import Ledger, Policy
from pagein.replay.policies.pagein_policy import PageinPolicy
from pagein.replay.prompt.billable_session import BillableSession, record
from pagein.replay.prompt.context_limit import window_of
from pagein.replay.prompt.model_calls import gather
from pagein.replay.prompt.prompt_sizes import SizedCall, SourceFacts
from pagein.replay.prompt.recorded_needs import NOTHING
from pagein.replay.record.recorded_session import SessionHead
from pagein.simulator.provider_settings import KEPT, CacheKind
from pagein.store.memory.memory_store import MemoryStore
from pagein.testing.made_sessions import MadeCall, MadeResult, MadeSession

POLICIES: Final = (QUIET, FULL, *PRESET_POLICIES)
_ASKED: Final = ("review it, says", "says", "fix it, says")
_RATIO: Final = 3.0  # characters per token
_FEARED: Final = UNREPORTED - 1
"""The share by which the overflow rule overestimates new tokens."""
_TEXT: Final = "".join(f"line {place:05d} of what a tool had to say, {place * 7919 % 10007}\n" for place in range(4000))


# ── as it would have been recorded ─────────────────────────────────────────


def recording_of(made: MadeSession) -> BillableSession:
    """Return the session as read from a log, with the usage that a provider would report to an append-only host."""
    charged = prices(made.charged)
    facts = SourceFacts({"main": float(made.front), "sub": float(made.front)}, 0.7 * made.front, made.warm * made.front)
    head = SessionHead("made", "made", "made", "made", parent="main" if made.is_sub else None)
    told = record(head, gather(_entries(made, charged)), facts, _RATIO, charged)
    return replace(told, needs=(NOTHING,) * len(told.sized))


def _entries(made: MadeSession, charged: Prices) -> Iterator[Recorded]:
    now, chars, hidden = 1_800_000_000.0, 0, 0
    lasting = 3600.0 if made.hour else 300.0
    held: dict[str, tuple[float, int]] = {}  # by model: time of the last request, and tokens in its cache since then
    name = _model(charged)
    for number, step in enumerate(made.steps):
        is_over = number == 0 or not made.steps[number - 1].results
        now += step.idle if is_over or _interrupts(step) else 0.0
        if step.compacts:
            yield HostEvent("compaction", now)
            chars = hidden = 0
            held.clear()
        if step.words or not chars or is_over:  # no client calls the model again without new content
            asked = _ASKED[(made.front + step.words) % len(_ASKED)]
            said = _text(f"{asked} the person, {number}", max(5, step.words))
            chars += len(said)
            yield Message("user", (Text(said),), at=now)
        hidden = max(0, hidden + step.hidden)
        prompt = round(made.front + chars / _RATIO) + hidden
        model = name if not step.other else name + "-other"
        before, last = held.get(model, (float("-inf"), 0))
        is_held = now - before <= lasting and last > 0
        read = min(prompt, round(last + 1 if is_held else made.warm * made.front))
        usage = Usage(0, read, prompt - read, prompt - read if made.hour else 0, step.output)
        held[model] = now, prompt
        now += step.thought
        calls = [_call(f"call-{number}-{place}", one) for place, one in enumerate(step.results)]
        blocks: tuple[Block, ...] = tuple(calls) or (Text(f"so much for that, {number}"),)
        yield Message("assistant", blocks, at=now, model=model, usage=usage)
        now += step.took
        following = made.steps[number + 1] if calls and number + 1 < len(made.steps) else None
        if following is not None and not _interrupts(following):
            now += following.idle  # a log tells of no wait after the results: it is the tools'
        answers = tuple(_answer(call, one) for call, one in zip(calls, step.results, strict=True))
        if answers:
            yield Message("tool", answers, at=now)
        chars += sum(len(one.arguments) + len(one.name) for one in calls) + sum(len(one.text) for one in answers)
        chars += 0 if calls else len(f"so much for that, {number}")


def _interrupts(step: MadeCall) -> bool:
    """Return whether something else than results comes before the call."""
    return bool(step.words) or step.compacts


def _model(charged: Prices) -> str:
    """Return a model whose recorded TTLs and misses are facts of the priced cache."""
    return {"anthropic": "claude-opus-4-6", "openai": "gpt-5.6"}.get(charged.cache.name.partition("-")[0], charged.name)


def _call(name: str, one: MadeResult) -> ToolCall:
    path = f"/project/file-{one.file}.py"
    if one.kind == "read":
        return ToolCall(name, "Read", f'{{"file_path":"{path}"}}', (FileAccess("read", path),))
    if one.kind in ("edit", "write"):
        text = _text(name, one.tokens).replace("\n", "\\n")
        op: Literal["edit", "write"] = "edit" if one.kind == "edit" else "write"
        if op == "write":
            return ToolCall(name, "Write", f'{{"file_path":"{path}","content":"{text}"}}', (FileAccess(op, path),))
        arguments = f'{{"file_path":"{path}","old_string":"{name}","new_string":"{text}"}}'
        return ToolCall(name, "Edit", arguments, (FileAccess(op, path),))
    return ToolCall(name, "Bash", f'{{"command":"make {name}"}}')


def _answer(call: ToolCall, one: MadeResult) -> ToolResult:
    text = "done" if one.kind in ("edit", "write") else _text(call.id, one.tokens)
    return ToolResult(call.id, text, call.name, is_error=one.kind == "fail")


def _text(name: str, tokens: int) -> str:
    """Return a text of this size, with a unique first line."""
    length = max(len(name) + 1, round(tokens * _RATIO))
    start = sum(map(ord, name)) * 61 % 100_000
    return f"{name}\n{_TEXT[start : start + length - len(name) - 1]}"


# ── losses ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """The extra cost of a session over append-only, as a share of append-only, at its worst end: after any of its
    calls.

    share: the largest share.
    rise: the largest loss between two calls, without earlier savings; the search maximises this figure.
    full: the largest share for ends after append-only reached the overflow limit. Law 5 does not bound this figure:
    append-only is
      then about to be refused or compacted, so it is no longer an option.
    """

    share: float
    rise: float
    full: float = field(default=0.0, compare=False)


def losses(
    made: MadeSession, policies: Sequence[str] = POLICIES, cache: CacheKind = "documented"
) -> Mapping[str, Loss]:
    """Return the loss of the session by policy.

    cache: how long the provider keeps entries, as in `ProviderSettings`. At a provider that keeps less than it
        documents, nothing is known of it at the start.
    """
    told, charged = recording_of(made), _prices_of(made.charged)
    base = _Ledger(told, APPEND, charged)
    base.cache = cache
    base.run()
    theirs = list(accumulate(base.trace.cost if base.trace is not None else ()))
    until = _first_full(told, charged)
    found: dict[str, Loss] = {}
    for name in policies:
        works = charged.cache.name == ANTHROPIC.name and charged.cache.model == "breakpoints"
        if name == FULL and not works and QUIET in found:  # this cache accepts no TTL, so both policies are the same
            found[name] = found[QUIET]
        else:
            found[name] = _loss(theirs, list(accumulate(_course(name, told, charged, cache))), until)
    return found


def _first_full(told: BillableSession, charged: Prices) -> int:
    """Return the first call whose recorded prompt may reach the overflow limit by the engine's estimate; else the
    number of calls.
    """
    most = SAFE.limit * window_of(told, charged)
    return next(
        (place for place, one in enumerate(told.sized) if one.prompt + _FEARED * sum(one.blocks) > most),
        len(told.sized),
    )


class _Ledger(Ledger):
    """A bill by a provider with one cache per model."""

    def __init__(self, recording: BillableSession, policy: Policy, prices: Prices) -> None:
        super().__init__(recording, policy, prices, stress=False, trace=True)
        self._by_model: dict[str, CacheSimulator] = {}
        self.cache: CacheKind = "documented"

    def _serve(self, sized: SizedCall, output: float, *, cap: float | None = None, counted: bool = True) -> CacheUsage:
        self._simulator = self._by_model.setdefault(sized.call.model or "", self._simulated())
        return super()._serve(sized, output, cap=cap, counted=counted)

    def _simulated(self) -> CacheSimulator:
        rules = self.prices.cache
        return CacheSimulator(KEPT[self.cache](rules) if rules.model == "breakpoints" else rules)


class _KeptLedger(_Ledger, KeptLedger):
    """The same bill, with windows kept alive through pauses."""


def _loss(theirs: Sequence[float], ours: Sequence[float], until: int) -> Loss:
    """Return the loss of one course. until: the first call with a full window."""
    worst = rise = full = 0.0
    least = 0.0
    for place, (base, paid) in enumerate(zip(theirs, ours, strict=True)):
        more = paid - base
        least = min(least, more)
        if base and place < until:
            worst, rise = max(worst, more / base), max(rise, (more - least) / base)
        elif base:
            full = max(full, more / base)
    return Loss(worst, rise, full)


def _course(name: str, told: BillableSession, charged: Prices, cache: CacheKind) -> Sequence[float]:
    """Return the cost of each call, with the keep-alive request after it."""
    kept = chooses_lifetimes(name)
    with (KeepAlivePagein if kept else PageinPolicy)(told, open_in_memory, charged, name) as paging:
        if isinstance(paging, KeepAlivePagein):
            paging.trust = paging.trust if cache == "documented" else UNKNOWN
            paging.reserve = 0.0  # law 5 holds for a session by itself
            ledger: _Ledger = _KeptLedger(told, paging, charged)
        else:
            ledger = _Ledger(told, paging, charged)
        ledger.cache = cache
        ledger.run()
    return ledger.trace.cost if ledger.trace is not None else ()


def open_in_memory(store: Path, *, counter: TokenCounter, settings: Settings) -> Engine:  # noqa: ARG001 -- as `replay.policies.pagein_policy.OpenEngine`
    """Open an engine on a store in memory: sessions are many and small, and their evicted texts are not read."""
    return Engine(blobs=MemoryStore(), counter=counter, settings=settings, workspace="replay")


@lru_cache(maxsize=64)
def _prices_of(spec: str) -> Prices:
    return prices(spec)

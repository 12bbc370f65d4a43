"""A recorded session, ready for the bill: sized calls, needs, and the provider's facts."""

from dataclasses import dataclass, field, replace

from pagein.model.messages import ToolCall
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import profile_by_calls
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.prompt.model_calls import RecordedCalls
from pagein.replay.prompt.prompt_sizes import FIVE_MINUTES, SizedCall, SourceFacts, count_misses, floors, grow, host_ttl
from pagein.replay.prompt.recorded_needs import Needs, needs_of
from pagein.replay.record.recorded_session import SessionHead
from pagein.replay.record.usage_tally import UsageTotals


@dataclass(frozen=True, slots=True)
class BillableSession:
    """A recorded session as measured under every policy.

    floor: (whole prompt prefix, the part that survives a compaction), tokens.
    chars_per_token: the calibrated ratio.
    ttl: cache TTL asked for by the host, seconds.
    first_read: tokens read at the first call.
    cold_read: see SourceFacts; at most the prompt prefix, tokens.
    client: profile of the host's tools, recognised by the calls of these tools.
    """

    head: SessionHead
    calls: RecordedCalls
    sized: tuple[SizedCall, ...]
    needs: tuple[Needs, ...]
    floor: tuple[float, float]
    chars_per_token: float
    ttl: int
    first_read: float
    cold_read: float
    client: Profile
    flags: dict[str, object] = field(default_factory=dict)


def provider_family(model: str) -> str:
    """Return `anthropic`, `openai` or `other` by the model's name: the provider whose cache caused the recorded misses."""
    name = model.lower()
    if any(mark in name for mark in ("claude", "anthropic")):
        return "anthropic"
    if any(mark in name for mark in ("gpt", "codex", "o1-", "o3", "o4-", "openai")):
        return "openai"
    return "other"


def record(
    head: SessionHead,
    calls: RecordedCalls,
    facts: SourceFacts,
    chars_per_token: float,
    prices: Prices,
    told: UsageTotals | None = None,
) -> BillableSession:
    """Distribute recorded sizes over the calls of a session and collect their needs.

    told: the sum of the recording's own usage lines; flags report a difference from the counted usage.

    Recorded cache misses and TTLs are facts of the recording's own provider: they are replayed only if the same kind of
    cache is priced.
    """
    floor = floors(calls, facts, chars_per_token, is_sub=head.parent is not None)
    own = _is_own(head, calls, prices)
    sized = grow(calls, floor[0], chars_per_token, misses=own)
    flags = dict(head.flags)
    if not calls.timed:
        flags["no_times"] = True
    if not any(call.usage for call in calls.calls):
        flags["no_usage"] = True
    flags |= _differences(calls, told)
    missed = 0 if own else count_misses(sized)
    if missed:
        flags["provider_missed"] = missed
    if calls.absurd:
        flags["absurd_usage"] = calls.absurd
    if calls.unreadable:
        flags["unreadable"] = len(calls.unreadable)
    first = calls.calls[0].usage if calls.calls else None
    return BillableSession(
        head=head,
        calls=calls,
        sized=tuple(sized),
        needs=tuple(needs_of(calls, [one.opens_segment for one in sized])),
        floor=floor,
        chars_per_token=chars_per_token,
        ttl=host_ttl(calls) if own else FIVE_MINUTES,
        first_read=float(first.read) if first else 0.0,
        # other sessions can keep warm only the part shared with this session: its prompt prefix
        cold_read=min(facts.cold_read, floor[0]),
        client=profile_by_calls(
            block for call in calls.calls for block in call.reply.blocks if isinstance(block, ToolCall)
        ),
        flags=flags,
    )


def _differences(calls: RecordedCalls, told: UsageTotals | None) -> dict[str, object]:
    """Return the usage in the recording's usage lines beyond the counted usage (negative: counted beyond the lines)."""
    with_usage = [usage for call in calls.calls if (usage := call.usage) is not None]
    if told is None or not told.calls:
        return {}
    if not told.by_call:
        found = {"uncounted_calls": told.calls - len(calls.calls)}
    else:
        prompt = sum(usage.prompt for usage in with_usage)
        found = {"uncounted_calls": told.calls - len(with_usage), "uncounted_tokens": told.prompt - prompt}
    return {name: difference for name, difference in found.items() if difference}


def on_own_cache(recording: BillableSession, prices: Prices, *, misses: bool) -> BillableSession:
    """Return the same recording on its original cache, with or without its unexplained misses."""
    own = _is_own(recording.head, recording.calls, prices)
    sized = grow(recording.calls, recording.floor[0], recording.chars_per_token, misses=misses and own)
    return replace(recording, sized=tuple(sized), ttl=host_ttl(recording.calls) if own else FIVE_MINUTES)


def _is_own(head: SessionHead, calls: RecordedCalls, prices: Prices) -> bool:
    model = calls.calls[0].model if calls.calls else ""
    return prices.cache.name.startswith(provider_family(model or next(iter(head.models), "")))

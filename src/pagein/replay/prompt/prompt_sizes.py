"""The real size of each prompt: recorded sizes distributed over the blocks.

A recording reports the tokens of each prompt, not their place. Visible blocks are estimated from their characters.
Growth beyond them is *hidden* (thinking, reminders, attachments) and cannot be removed. The tokens before the first
message are the *floor*, the prompt prefix (system prompt, tool schemas).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pagein.model.messages import Usage
from pagein.providers.prices.model_abilities import abilities
from pagein.replay.prompt.model_calls import RecordedCall, RecordedCalls

MINIMUM_FLOOR = 1000.0
COMPACTED_FLOOR_SHARE = 0.7
_TRUSTED_FROM, _SHRUNK_TO = 0.3, 0.6  # growth below 30 % of the estimate: the blocks count 60 %
_DROP = 0.98  # a prompt shorter than 98 % of its predecessor: the host dropped something
_PSEUDO_COMPACTION = 0.7
_MISS_SHARE, _MISS_WITHIN = 0.7, 0.93
_COLD_SHARE, _COLD_AFTER = 0.6, 1.05
FIVE_MINUTES, ONE_HOUR = 300, 3600


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts common to the sessions of a source, all in tokens.

    floor: prompt prefix by role (`main`, `sub`), for sessions without usage at the first call.
    compacted_read: tokens read at the first call after a compaction.
    cold_read: tokens kept warm by other sessions across a pause (E_cold).
    """

    floor: Mapping[str, float]
    compacted_read: float | None
    cold_read: float


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """The first prompt of a session: recorded tokens, visible characters, and the smallest later prompt."""

    tokens: float
    chars: int
    smallest: float

    def floor(self, chars_per_token: float) -> float:
        """Return the tokens of the prompt prefix: the invisible ones, at most the smallest prompt."""
        return max(_least(self.smallest), min(self.tokens - self.chars / chars_per_token, self.smallest))


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The contribution of a session to the facts of its source. first: None without usage at the first call."""

    role: str
    first: FirstPrompt | None
    compacted_reads: tuple[float, ...]
    cold_reads: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SizedCall:
    """One call with sizes, in tokens.

    blocks: size of each new block, in order.
    hidden: tokens that entered unseen.
    thought: the part of `hidden` known to be thinking of the previous reply; 0 for models not known to keep their
    thinking.
    shrunk: tokens removed from earlier hidden growth, newest first.
    opens_segment: whether a new window begins here, as recorded or, after a sudden collapse of the prompt, as inferred.
    cap: tokens read in the recording at a miss inside the TTL or after a change by the host; None elsewhere.
    """

    call: RecordedCall
    blocks: tuple[float, ...]
    hidden: float
    shrunk: float
    opens_segment: bool
    dropped: bool
    cap: float | None
    prompt: float
    output: float
    thought: float = 0.0


def chars_new(calls: RecordedCalls, call: RecordedCall) -> int:
    """Return the characters of the blocks first seen by a call."""
    first, last = call.blocks
    return sum(block.chars for block in calls.blocks[first:last])


def host_ttl(calls: RecordedCalls) -> int:
    """Return the cache TTL asked for by the host, seconds: an hour if most written tokens had this TTL."""
    usages = [call.usage for call in calls.calls if call.usage]
    hour = sum(usage.written_1h for usage in usages)
    return ONE_HOUR if hour > sum(usage.written for usage in usages) - hour else FIVE_MINUTES


def session_facts(calls: RecordedCalls, *, is_sub: bool) -> SessionFacts:
    """Return the contribution of this session to its source."""
    ttl = host_ttl(calls)
    compacted, cold = [], []
    before: RecordedCall | None = None
    for call in calls.calls:
        if call.usage is None:
            continue
        if call.opens_segment and call.segment:
            compacted.append(float(call.usage.read))
        elif before is not None and before.usage is not None and before.segment == call.segment:
            gone = call.at - before.at > _COLD_AFTER * ttl
            if gone and call.usage.read < _COLD_SHARE * before.usage.prompt:
                cold.append(float(call.usage.read))
        before = call
    return SessionFacts("sub" if is_sub else "main", _first_prompt(calls), tuple(compacted), tuple(cold))


def source_facts(sessions: Sequence[tuple[SessionFacts, float]]) -> SourceFacts:
    """Return the medians over the sessions of a source, each given with its characters per token."""
    floors: dict[str, float] = {}
    for role in ("main", "sub"):
        known = [one.first.floor(ratio) for one, ratio in sessions if one.role == role and one.first is not None]
        if known:
            floors[role] = median(known)
    compacted = [read for one, _ in sessions for read in one.compacted_reads]
    cold = [read for one, _ in sessions for read in one.cold_reads]
    return SourceFacts(floors, median(compacted) if compacted else None, median(cold) if cold else 0.0)


def _first_prompt(calls: RecordedCalls) -> FirstPrompt | None:
    if not calls.calls or calls.calls[0].usage is None:
        return None
    smallest = min(call.usage.prompt for call in calls.calls if call.usage)
    return FirstPrompt(float(calls.calls[0].usage.prompt), chars_new(calls, calls.calls[0]), float(smallest))


def floors(calls: RecordedCalls, facts: SourceFacts, chars_per_token: float, *, is_sub: bool) -> tuple[float, float]:
    """Return (whole prompt prefix, the part still cached after a compaction), in tokens."""
    first = _first_prompt(calls)
    if first is not None:
        own = first.floor(chars_per_token)
    else:
        role = "sub" if is_sub else "main"
        own = facts.floor.get(role) or facts.floor.get("main") or MINIMUM_FLOOR
        sizes = [call.usage.prompt for call in calls.calls if call.usage]
        own = max(_least(min(sizes)), min(own, *sizes)) if sizes else own
    kept = min(own, facts.compacted_read) if facts.compacted_read else COMPACTED_FLOOR_SHARE * own
    return own, kept


def _least(smallest: float) -> float:
    """Return the minimum prompt prefix for this smallest prompt: a log of whole requests shows nearly every token sent."""
    return min(MINIMUM_FLOOR, smallest / 2)


def grow(calls: RecordedCalls, floor: float, chars_per_token: float, *, misses: bool) -> list[SizedCall]:
    """Size every call. misses: whether recorded cache misses are facts of the priced provider."""
    sized: list[SizedCall] = []
    size, pool = floor, 0.0
    before: RecordedCall | None = None
    ttl = host_ttl(calls)
    for call in calls.calls:
        estimate = chars_new(calls, call) / chars_per_token
        usage = call.usage
        earlier = before.usage.prompt if before is not None and before.usage is not None else None
        opens = call.opens_segment or _is_collapse(usage, earlier, size)
        earlier_size = size
        if opens:
            size, pool = floor, 0.0
        scale, hidden, taken = 1.0, 0.0, 0.0
        if usage is not None:
            scale, hidden, taken = _fit(usage.prompt - size, estimate, pool)
        first, last = call.blocks
        tokens = tuple(block.chars / chars_per_token * scale for block in calls.blocks[first:last])
        size += estimate * scale + hidden - taken
        pool += hidden - taken
        shrank = usage is not None and earlier is not None and not opens and usage.prompt < _DROP * earlier
        cap = _cap(call, before, earlier_size, opens=opens, dropped=shrank, ttl=ttl) if misses else None
        output = max(float(call.reported.output) if call.reported else 0.0, call.output_chars / chars_per_token)
        thought = 0.0 if before is None or opens else min(hidden, _thinking_tokens(before, call, chars_per_token))
        sized.append(SizedCall(call, tokens, hidden, taken, opens, shrank, cap, size, output, thought))
        before = call
    return sized


def _is_collapse(usage: Usage | None, earlier: float | None, size: float) -> bool:
    """Return whether the prompt is far below its predecessor and its expected size: a compaction without notice."""
    if usage is None or earlier is None:
        return False
    return usage.prompt < _PSEUDO_COMPACTION * earlier and usage.prompt < _PSEUDO_COMPACTION * size


def _fit(growth: float, estimate: float, pool: float) -> tuple[float, float, float]:
    """Return (scale of the new blocks, tokens that entered hidden, tokens removed from the hidden pool)."""
    if growth >= estimate:
        return 1.0, growth - estimate, 0.0
    if growth >= _TRUSTED_FROM * estimate and estimate > 0:
        return growth / estimate, 0.0, 0.0
    return _SHRUNK_TO, 0.0, min(pool, _SHRUNK_TO * estimate - growth)


def _thinking_tokens(before: RecordedCall, call: RecordedCall, chars_per_token: float) -> float:
    """Return the tokens of thinking in a reply that the next prompt may hold: the billed output minus the visible
    output.

    0 for a recording without thinking, and for models that drop the thinking of finished turns or are not known to keep
    it: tokens removed in the recording must not be saved a second time.
    """
    if before.thought_chars is None or not all(abilities(one.model).carries_thinking for one in (before, call)):
        return 0.0
    visible = (before.output_chars - before.thought_chars) / chars_per_token
    reported = float(before.reported.output) if before.reported else 0.0
    return max(0.0, max(reported, before.output_chars / chars_per_token) - visible)


def count_misses(sized: Sequence[SizedCall]) -> int:
    """Return the number of calls that read far less than the prompt before had written, within the shortest TTL."""
    missed = 0
    for before, one in pairwise(sized):
        usage = one.call.usage
        if usage is not None and before.call.usage is not None and not (one.opens_segment or one.dropped):
            soon = one.call.at - before.call.at < _MISS_WITHIN * FIVE_MINUTES
            missed += soon and usage.read < _MISS_SHARE * min(before.prompt, usage.prompt)
    return missed


def _cap(
    call: RecordedCall, before: RecordedCall | None, earlier: float, *, opens: bool, dropped: bool, ttl: int
) -> float | None:
    """Return the recorded read where an unforeseeable event limited it: a miss inside the TTL, a drop, another model.

    earlier: size of the prompt of the call before, tokens.
    """
    if before is None or opens or call.usage is None:
        return None
    changed = before.model != call.model
    expected = min(earlier, call.usage.prompt)
    missed = call.usage.read < _MISS_SHARE * expected and call.at - before.at < _MISS_WITHIN * ttl
    return float(call.usage.read) if missed or changed or dropped else None

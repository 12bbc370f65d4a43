"""The tool `stats`: figures of evicted, recalled and stored results."""

from dataclasses import dataclass
from typing import Final

from pagein.delegation.call_tree import PROCESS_CALLS
from pagein.engine.log.request_draft import size
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.recall.session_recall import RecallFigures
from pagein.engine.session import Session
from pagein.errors import HostError
from pagein.tools.calls import Call, Offer, refusal_result, schema


@dataclass(frozen=True, slots=True)
class Activity:
    """Current activity, as far as known to the host.

    context_tokens: tokens of the window; None if not counted
    """

    phases: tuple[str, ...] = ()
    child_calls: int = 0
    depth: int = 0
    context_tokens: int | None = None


IDLE: Final = Activity()


def stats_text(figures: RecallFigures, activity: Activity = IDLE) -> str:
    """Return the report as lines of text."""
    held = figures.held
    context = "unknown" if activity.context_tokens is None else f"{activity.context_tokens:,} tokens"
    size = "unknown" if figures.store_bytes is None else f"{figures.store_bytes:,}"
    lines = [
        "RLM Status: ON",
        f"Store objects: {held.count:,}",
        f"Store token estimate: {held.tokens:,}",
        f"Store size (bytes): {size}",
        f"Working context usage: {context}",
        f"Active phases: {', '.join(activity.phases) or 'none'}",
        f"Active child calls: {activity.child_calls}",
        f"Recursion depth: {activity.depth}",
        f"Epochs: {held.epochs}",
        f"Stubs: {held.stubs:,} for {held.stub_tokens:,} tokens",
        f"Previews: {held.previews:,}",
        f"Ingested files: {len(held.files):,}",
        f"Recalls: {held.recalls:,} ({held.searches:,} by search)",
    ]
    if figures.trajectory is not None:
        lines.append(f"Trajectory log: not written ({figures.trajectory})")
    return "\n".join(lines)


def _stats(session: Session, _call: Call) -> ReadResult:
    try:
        figures = session.recalls.figures()
    except HostError as why:
        return refusal_result(str(why))
    held, context = figures.held, _window_tokens(session)
    details: dict[str, object] = {
        "objects": held.count,
        "tokens": held.tokens,
        "chars": held.chars,
        "store_bytes": figures.store_bytes,
        "context_tokens": context,
        "epochs": held.epochs,
        "stubs": held.stubs,
        "stub_tokens": held.stub_tokens,
        "previews": held.previews,
        "ingested": len(held.files),
        "recalls": held.recalls,
        "searches": held.searches,
    }
    return ReadResult(stats_text(figures, _activity(context)), details)


def _activity(context: int) -> Activity:
    """Return the running children of this process, shared by the sessions of the process."""
    calls = [one for view in PROCESS_CALLS.operations() for one in view.calls if one.status == "running"]
    phases = dict.fromkeys("batching" if view.kind == "batch" else "querying" for view in PROCESS_CALLS.operations())
    return Activity(tuple(phases), len(calls), max((one.depth for one in calls), default=0), context)


def _window_tokens(session: Session) -> int:
    """Return the estimate for every message of the next request, without the host's system prompt and tools."""
    return size(session.journal.state_at(session.leaf).draft.tip)


STATS: Final = Offer(
    "stats",
    "Show what was taken out of your context: how many objects, how many tokens, how often something was brought back.",
    schema(),
    _stats,
    legacy="rlm_stats",
)

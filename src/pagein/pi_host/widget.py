"""Tell the person at pi in a few lines what pagein does: how much left the window, and what children do and cost."""

from collections.abc import Sequence

from pagein.delegation.call_tree import OperationView
from pagein.engine.session import Session
from pagein.errors import HostError
from pagein.pi_host.protocol import WindowUsage

_PHASES = {"query": "querying", "batch": "batching", "extract": "extracting"}


def widget_lines(
    session: Session, operations: Sequence[OperationView], usage: WindowUsage | None, *, pages: bool
) -> tuple[str, ...]:
    """Return the lines; none while paging is off and no child is asked.

    usage: None for unknown.
    """
    lines = [_operation_line(one) for one in operations]
    if pages:
        lines.insert(0, _paging_line(session, usage))
    return tuple(lines)


def _paging_line(session: Session, usage: WindowUsage | None) -> str:
    full = "?" if usage is None else f"{round(100 * usage.tokens / usage.window)}%"
    try:
        held = session.recalls.holdings
    except HostError:
        return f"pagein: window {full}"
    left = f"{_count(held.stubs, 'stub')} and {_count(held.previews, 'preview')}"
    away = left if held.stubs or held.previews else "nothing left it yet"
    objects, recalls = _count(held.count, "object"), _count(held.recalls, "recall")
    return f"pagein: window {full}, {away}, {objects} of {held.tokens:,} tokens, {recalls}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _operation_line(one: OperationView) -> str:
    running = [call for call in one.calls if call.status == "running"]
    depth = max((call.depth for call in running), default=0)
    failed = f", {one.failed} failed" if one.failed else ""
    return (
        f"pagein: {_PHASES[one.kind]} {one.done} of {one.total}{failed}, {len(running)} children at depth {depth}, "
        f"{one.actual.says} of about {one.estimated.says}"
    )

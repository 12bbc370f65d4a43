"""The text of a report for a model: whole answers in order, and the ids of the answers that do not fit."""

from collections.abc import Sequence

from pagein.model.read_caps import ReadCaps
from pagein.policy.delegation.reports import ChildResult, Report

_ROOM_FOR_REST = 4 * 1024  # bytes below the answers, for the ids of those that are left out
_FAILED = {
    "error": "failed",
    "timeout": "timed out",
    "cancelled": "was cancelled",
    "not_asked": "was not asked",
    "success": "answered",
}


def report_text(report: Report, caps: ReadCaps) -> str:
    """Return a report within its caps. An answer is shown whole or not at all."""
    if report.refused is not None:
        return report.refused
    heads = [f"[Partial: {report.partial}.]"] if report.partial is not None else []
    heads += [f"[{one}]" for one in report.notes]
    shown: list[str] = []
    left: list[ChildResult] = []
    lines = caps.lines - sum(one.count("\n") + 1 for one in heads) - 2
    size = caps.bytes - sum(_size(one) for one in heads) - _ROOM_FOR_REST
    for result in report.results:
        text = result_text(result, is_alone=report.kind != "batch")
        lines, size = lines - text.count("\n") - 2, size - _size(text)
        if left or lines < 0 or size < 0 or (result.status == "success" and not result.answer):
            left.append(result)
        else:
            shown.append(text)
    tail = [_rest(left)] if left else []
    if report.unmatched and report.results:
        tail.append(f"[{len(report.unmatched)} targets do not contain the text to find and were not asked about.]")
    tail.append(f"[{report.calls} child call{'' if report.calls == 1 else 's'}, {report.actual.says}, {report.model}]")
    return "\n\n".join((*heads, *shown, *tail))


def result_text(result: ChildResult, *, is_alone: bool) -> str:
    """Return the text of a result for a model. is_alone: True for a single result, whose targets need no names."""
    name = ", ".join(result.targets)
    heads = [] if is_alone else [f"### {name}"]
    notes = [f"[{one}]" for one in result.notes]
    if result.status != "success":
        told = "The child" if is_alone else "This child"
        return "\n".join((*heads, f"{told} {_FAILED[result.status]}: {result.why}", *notes))
    evidence = [f"- {one.quote} ({one.place})" for one in result.evidence]
    artifact = f", kept as artifact {result.artifact}" if result.artifact is not None else ""
    kept = [f"[Stored as {result.object_id}{artifact}]"] if result.object_id is not None else []
    quotes = ["**Evidence:**", *evidence] if evidence else []
    return "\n".join((*heads, f"**Confidence:** {result.confidence}", result.answer, *quotes, *notes, *kept))


def _rest(left: Sequence[ChildResult]) -> str:
    """Name the hidden answers, as far as a line has room."""
    named: list[str] = []
    room = _ROOM_FOR_REST // 2
    for one in left:
        told = f"{', '.join(one.targets)[:80]}: {one.object_id or one.status}"
        room -= _size(told) + 2
        if room < 0:
            break
        named.append(told)
    more = f"; and {len(left) - len(named)} more" if len(named) < len(left) else ""
    return f"[Output truncated: {len(left)} results are not shown. Peek at the answers: {'; '.join(named)}{more}]"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 2

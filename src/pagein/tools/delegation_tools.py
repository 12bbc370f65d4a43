"""The tools `query`, `batch` and `extract`: ask child models about stored objects."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from pagein.delegation.call_tree import OperationView, Watch
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import HostError
from pagein.model.delegation_notes import DelegationKind
from pagein.policy.delegation.answer_texts import report_text
from pagein.policy.delegation.child_costs import CallCost
from pagein.policy.delegation.reports import Question, Report
from pagein.tools.calls import ArgumentReader, Call, ConsentQuestion, Offer, refusal_result, schema
from pagein.tools.child_tools import SessionDelegate

NO_CHILDREN: Final = "No model available for recursive call: no child model is set. The user sets one by `child_model`, as provider/model."


def _answer(session: Session, call: Call, kind: DelegationKind, target_name: str) -> ReadResult:
    given = ArgumentReader(kind, call.arguments)
    instructions = given.text("instructions")
    named = call.arguments.get(target_name)
    targets = (named,) if isinstance(named, str) else given.texts(target_name) or ()
    model = given.text("model") if given.has("model") else ""
    find = given.text("find") if given.has("find") else None
    problem = given.problem()
    if problem is not None:
        return problem
    try:
        delegate = session.delegate
    except HostError as why:
        return refusal_result(str(why))
    if not isinstance(delegate, SessionDelegate):
        return refusal_result(NO_CHILDREN)
    question = Question(kind, instructions, tuple(targets), model, find, call.id, _confirm_of(call))
    report = delegate.ask_now(session, question, stop=call.signal, watch=_watch_of(call))
    return report_result(session, report)


def _confirm_of(call: Call) -> Callable[[CallCost], bool] | None:
    confirm = call.confirm
    if confirm is None:
        return None

    def ask(cost: CallCost) -> bool:
        words = f"{cost.calls} child models, which may cost up to {cost.says}"
        return confirm(
            ConsentQuestion(
                f"Ask {words}?", f"This asks {words}", "else name fewer targets or leave some out by `find`"
            )
        )

    return ask


def _watch_of(call: Call) -> Watch | None:
    """Return the function that tells the host of each ended target. News keep a client from giving up the call."""
    tell, told = call.tell, 0
    if tell is None:
        return None

    def watch(operation: OperationView) -> None:
        nonlocal told
        if operation.done > told:
            told = operation.done
            tell(f"{operation.done} of {operation.total} targets asked about, {operation.actual.says}")

    return watch


def report_result(session: Session, report: Report) -> ReadResult:
    """Return the tool result for a report."""
    failed = report.refused is not None or not any(one.status == "success" for one in report.results)
    is_error = failed and not (report.refused is None and report.unmatched and not report.results)
    return ReadResult(report_text(report, session.recalls.bounds.caps), report_values(report), is_error=is_error)


def report_values(report: Report) -> dict[str, Any]:
    """Return a report as plain values, as printed by `--json`. Unknown costs are null."""
    return {
        "operation": report.operation_id,
        "kind": report.kind,
        "model": report.model,
        "refused": report.refused,
        "partial": report.partial,
        "results": [
            {
                "targets": list(one.targets),
                "status": one.status,
                "answer": one.answer,
                "confidence": one.confidence,
                "evidence": [{**asdict(quote), "place": quote.place} for quote in one.evidence],
                "object_id": one.object_id,
                "artifact": one.artifact,
                "is_partial": one.is_partial,
                "call": one.call_id,
                "model": one.model,
                "cost": cost_values(one.cost),
                "why": one.why,
                "notes": list(one.notes),
            }
            for one in report.results
        ],
        "unmatched": list(report.unmatched),
        "notes": list(report.notes),
        "estimated": cost_values(report.estimated),
        "actual": cost_values(report.actual),
        "seconds": round(report.seconds, 3),
    }


def cost_values(cost: CallCost) -> dict[str, Any]:
    """Return a cost as plain values."""
    return {
        "calls": cost.calls,
        "usd": cost.usd,
        "prompt": cost.prompt,
        "output": cost.output,
        "unpriced_tokens": cost.unpriced,
    }


_MODEL: Final = {"type": "string", "description": "Another child model, as provider/model."}
_FIND: Final = {
    "type": "string",
    "description": "A text, or /expression/flags. Objects in which it does not stand are not asked about.",
}
_TARGETS: Final = {"type": "array", "items": {"type": "string"}, "description": "Ids of stored objects."}

QUERY: Final = Offer(
    "query",
    "Ask a child model about stored objects, together. It reads them in a window of its own and answers with quotes as evidence. "
    "Costs money and time: where a search answers the question, search.",
    schema(
        ("instructions", "target"),
        instructions={"type": "string", "description": "What to analyze or answer."},
        target=_TARGETS,
        model=_MODEL,
        find=_FIND,
    ),
    lambda session, call: _answer(session, call, "query", "target"),
    legacy="rlm_query",
)
BATCH: Final = Offer(
    "batch",
    "Ask one child model about each of many stored objects, with the same instructions. The answers come in the order of the "
    "objects. Costs money for each object: give find where only some of them matter.",
    schema(
        ("instructions", "targets"),
        instructions={"type": "string", "description": "What to analyze on each object."},
        targets=_TARGETS,
        model=_MODEL,
        find=_FIND,
    ),
    lambda session, call: _answer(session, call, "batch", "targets"),
    legacy="rlm_batch",
)
EXTRACT: Final = Offer(
    "extract",
    "As query, and the answer is kept as a stored object of its own, which refers to the objects that it was made from.",
    schema(
        ("instructions", "targets"),
        instructions={"type": "string", "description": "What to extract."},
        targets=_TARGETS,
        model=_MODEL,
        find=_FIND,
    ),
    lambda session, call: _answer(session, call, "extract", "targets"),
    legacy="rlm_extract",
)
DELEGATION: Final = (QUERY, BATCH, EXTRACT)
"""The tools that are offered where a child model is set."""

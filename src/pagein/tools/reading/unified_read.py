"""Answer calls of the tool `read`: the arguments, the mode, the guards, and the contract.

Rules of this file
------------------
1. A call with `mode`, `target` or another argument that only the tool with modes has is a call of this tool. A call with
   `path` and none of these has the shape of a host's own read tool: it is answered as the host would answer it, to the
   letter. The two shapes exclude each other, so no mode is ever guessed.
2. A call is answered in the contract whatever goes wrong: `ok` is false then, and `error` has code, message and next calls.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import AbortedOperation, HostError
from pagein.model.guard_notes import ReadMode
from pagein.model.read_contract import ReadError, ReadMeta, ReadReply, contract_fields
from pagein.policy.guards.judgement import ReadVerdict, complete
from pagein.ports import Signal
from pagein.tools.calls import Arguments
from pagein.tools.reading.argument_matrix import MATRIX, InvalidArguments, parse_arguments
from pagein.tools.reading.diff_mode import read_diff
from pagein.tools.reading.file_mode import read_file
from pagein.tools.reading.mode_answers import ModeAnswer, ReadCall
from pagein.tools.reading.read_problems import ReadRefusal
from pagein.tools.reading.snippet_mode import read_snippet
from pagein.tools.reading.symbol_mode import read_symbol

_MODES: Final[Mapping[ReadMode, Callable[[ReadCall], ModeAnswer]]] = {
    "file": read_file,
    "symbol": read_symbol,
    "snippet": read_snippet,
    "diff_preview": read_diff,
}
_OF_MODES: Final = frozenset(row.name for row in MATRIX) - {"path", "offset", "limit", "bypass_cache"}
"""Arguments that no host's own read tool has."""


def has_modes(arguments: Arguments) -> bool:
    """Return whether a call is one of the tool with modes, and not of a host's own read tool (rule 1)."""
    return "path" not in arguments or any(name in arguments for name in _OF_MODES)


def answer_unified_read(session: Session, arguments: Arguments, signal: Signal | None = None) -> ReadResult:
    """Answer a call. Raises nothing for a model's input and for an unusable file, repository or store."""
    asked = parse_arguments(arguments)
    if isinstance(asked, InvalidArguments):
        error = ReadError("INVALID_ARGS", "\n".join(asked.problems))
        mode, target = arguments.get("mode"), arguments.get("target")
        return _refused(session, _text_or_none(mode), _text_or_none(target), error)
    try:
        made = _MODES[asked.mode](ReadCall(session, asked, signal))
    except ReadRefusal as refused:
        return _refused(session, asked.mode, asked.target, refused.error, refused.stabilization)
    except AbortedOperation as problem:
        return _refused(session, asked.mode, asked.target, ReadError("ABORTED", str(problem)))
    except HostError as problem:
        return _refused(session, asked.mode, asked.target, ReadError("NO_WORKSPACE", str(problem)))
    except Exception as problem:  # noqa: BLE001  rule 2: even a bug in pagein is told, and costs the agent one call
        why = f"{type(problem).__name__}: {problem}"
        failed = ReadError("FAILED", f"This read failed inside pagein ({why}). Use another tool for it.")
        return replace(_refused(session, asked.mode, asked.target, failed), failure=why)
    verdict = _count(session, made)
    stabilization = session.guards.stabilization(verdict)
    bundle = {name: stabilization[name] for name in ("context_bundle_id", "bundle_items")}
    more = {**made.more, **bundle, "stabilization": stabilization}
    meta = ReadMeta(made.truncated, preview_degraded=bool(made.served.cut), more=more)
    reply = ReadReply(asked.mode, asked.target, made.result.text, made.location, meta)
    return _result(session, reply, made.result, made.result.details)


def _count(session: Session, made: ModeAnswer) -> ReadVerdict:
    """Count an answer. Return the judgement, with warnings about shortened parts."""
    guards, verdict = session.guards, made.verdict
    if made.search is not None:  # first, since what it restores pays for the lines
        searched = guards.note_search(replace(made.search, degraded=not made.is_read and bool(made.served.cut)))
        verdict = verdict if made.is_read else searched
    if not made.is_read:
        return complete(verdict, made.served.cut)
    is_private = session.is_private(made.served.content)
    return guards.note_read(verdict, replace(made.served, content="") if is_private else made.served)


def _refused(
    session: Session,
    mode: str | None,
    target: str | None,
    error: ReadError,
    judged: Mapping[str, object] | None = None,
) -> ReadResult:
    """Return an error in the contract. judged: what the guards say of it; None for an error that they did not judge."""
    meta = ReadMeta(more={"stabilization": judged or session.guards.standing(error.next_calls)})
    reply = ReadReply(mode, target, error.message, meta=meta, error=error)
    return _result(session, reply, ReadResult(error.message, is_error=True), {})


def _result(session: Session, reply: ReadReply, result: ReadResult, details: Mapping[str, object]) -> ReadResult:
    meta = replace(reply.meta, token_estimate=session.tokens_of(reply.text))
    return replace(result, details={**contract_fields(replace(reply, meta=meta)), **details})


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None

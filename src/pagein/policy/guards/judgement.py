"""The judgement of a read: whether to answer, up to which size, and with which words to the model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pagein.model.guard_notes import ReadMode
from pagein.model.read_contract import target_of
from pagein.policy.guards.guard_state import GuardState
from pagein.policy.guards.limits import LEAST_CHARS, UNLIMITED, GuardSettings, Limits
from pagein.policy.guards.relevance import alternatives, excluded_folder, is_unrelated, shown_path

BudgetState: TypeAlias = Literal["OK", "SOFT_LIMIT", "HARD_LIMIT"]
Action: TypeAlias = Literal["read", "search"]
Cut: TypeAlias = Literal["lines", "chars", "results", "context"]
"""What of an answer was shortened."""
NextCall: TypeAlias = Mapping[str, object]

BUDGET_EXCEEDED: Final = "BUDGET_EXCEEDED"
LOW_RELEVANCE: Final = "LOW_RELEVANCE"
EXCLUDED_FOLDER: Final = "EXCLUDED_FOLDER"

HARD_REASON: Final = "BUDGET_HARD_LIMIT"
SOFT_REASON: Final = "BUDGET_SOFT_LIMIT"
RELEVANCE_REASON: Final = "LOW_RELEVANCE_OUTSIDE_TOPK"
DEGRADED_REASON: Final = "PREVIEW_DEGRADED"
FOLDER_REASON: Final = "EXCLUDED_FOLDER"

EXCEEDED: Final = "Read budget exceeded. Use search to narrow scope: run search before additional reads."
UNRELATED: Final = "This target seems unrelated to recent search results."
DEFAULT_LINES: Final = "Applied default read limit to control payload size."
FEWER_LINES: Final = "Read limit reduced due to budget policy."
FEWER_CHARS: Final = "Preview reduced due to max_preview_chars budget."
FEWER_RESULTS: Final = "Snippet results reduced due to max_results budget."
LESS_CONTEXT: Final = "Snippet context_lines reduced due to budget policy."
_SEARCH_RESULTS: Final = 5
_LONGEST_WORD: Final = 200
_NO_TARGET: Final = "target"


@dataclass(frozen=True, slots=True)
class ReadAsk:
    """A read before it is answered.

    target: the target as the model wrote it.
    path: path key of the file; "" if the read has no file yet, such as a snippet over the whole workspace.
    lines: lines that the answer would have; None if unknown.
    has_limit: whether the model itself gave a number of lines.
    chars, results, context: sizes that the model asked for; None if it asked for none.
    is_known: whether every line is known, so that a marker answers the read, which costs nothing.
    is_search: whether the answer is that of a search, which may restore the budget.
    """

    mode: ReadMode
    target: str = ""
    path: str = ""
    lines: int | None = None
    has_limit: bool = False
    chars: int | None = None
    results: int | None = None
    context: int | None = None
    is_known: bool = False
    is_search: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a read is not answered.

    code: one of `BUDGET_EXCEEDED`, `LOW_RELEVANCE` and `EXCLUDED_FOLDER`.
    message: for the model, with the remedy.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ReadVerdict:
    """The judgement of a read.

    ask: the read.
    state: `SOFT_LIMIT` if the answer is shortened or the budget nearly spent, `HARD_LIMIT` if the budget is spent.
    limits: the sizes that this answer may have, in `lines`, `chars`, `results` and `context`; None: unlimited.
    refusal: why the read is not answered; None if it is.
    warnings: texts for the model.
    reasons: codes of the warnings and of the refusal.
    alternatives: files that the model may read instead, as it may write them.
    action: what the model should do next.
    next_calls: calls of tools that the model may make next.
    is_unrelated: whether the file is outside the places of the last search.
    """

    ask: ReadAsk
    state: BudgetState = "OK"
    limits: Limits = UNLIMITED
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    action: Action = "read"
    next_calls: tuple[NextCall, ...] = ()
    is_unrelated: bool = False


def judge(state: GuardState, ask: ReadAsk, settings: GuardSettings, root: str = "") -> ReadVerdict:
    """Return the judgement of a read.

    root: the workspace's folder, as a path key.
    """
    limits = settings.limits
    verdict = ReadVerdict(ask, limits=_allowed(ask, limits))
    folder = None if settings.folders == "off" else excluded_folder(ask.path, root)
    if folder is not None:
        said = f"Files in {folder}/ are excluded from reads."
        if settings.folders == "refuse":
            message = f"{said} Use search to find the file of the workspace that you need."
            return _refuse(verdict, Refusal(EXCLUDED_FOLDER, message), FOLDER_REASON)
        verdict = _warn(verdict, (said,), FOLDER_REASON)
    if not ask.is_known and not ask.is_search and state.spent.exceeds(limits):
        refused = _refuse(verdict, Refusal(BUDGET_EXCEEDED, EXCEEDED), HARD_REASON)
        return replace(refused, state="HARD_LIMIT")
    if settings.relevance != "off" and _is_unrelated(state, ask):
        instead = tuple(shown_path(path, root) for path in alternatives(state.search))
        verdict = replace(verdict, alternatives=instead, is_unrelated=True)
        if settings.relevance == "refuse":
            message = f"{UNRELATED} Try {', '.join(instead)}, or use search to find the file that you need."
            return _refuse(verdict, Refusal(LOW_RELEVANCE, message), RELEVANCE_REASON)
        verdict = _warn(verdict, (UNRELATED,), RELEVANCE_REASON)
    near = () if ask.is_search else state.spent.warnings(limits)
    if near:
        verdict = replace(_warn(verdict, near, SOFT_REASON), state="SOFT_LIMIT")
    is_longer = limits.lines is not None and (ask.lines or 0) > limits.lines and not ask.is_known
    return _shorten(verdict, [_lines_text(ask)] if is_longer else [])


def budget_state(state: GuardState, limits: Limits) -> BudgetState:
    """Return the state of the budget before a further read."""
    if state.spent.exceeds(limits):
        return "HARD_LIMIT"
    return "SOFT_LIMIT" if state.spent.warnings(limits) else "OK"


def _is_unrelated(state: GuardState, ask: ReadAsk) -> bool:
    return is_unrelated(ask.mode, ask.path, state.search, since=state.since, known=state.files)


def complete(verdict: ReadVerdict, cut: Collection[Cut]) -> ReadVerdict:
    """Return the judgement after the answer is made, with the warnings about what was shortened.

    cut: what of the answer a budget shortened.
    """
    texts = {"lines": _lines_text(verdict.ask), **_TEXTS}
    new = [text for one, text in texts.items() if one in cut and text not in verdict.warnings]
    verdict = _shorten(verdict, new)
    return verdict if not cut else _with_reason(verdict, DEGRADED_REASON)


def after_search(
    state: GuardState, query: str, settings: GuardSettings, next_calls: tuple[NextCall, ...], *, found: bool
) -> ReadVerdict:
    """Return the judgement for the next step after a search: reads of the matches, or another search.

    next_calls: the calls to make next.
    """
    ask, limits, spent = ReadAsk("snippet", query), settings.limits, state.spent
    verdict = ReadVerdict(
        ask, limits=_allowed(ask, limits), action="read" if found else "search", next_calls=next_calls
    )
    if spent.exceeds(limits):
        return replace(_with_reason(verdict, HARD_REASON), state="HARD_LIMIT", warnings=(EXCEEDED,), action="search")
    near = spent.warnings(limits)
    return verdict if not near else replace(_with_reason(verdict, SOFT_REASON), state="SOFT_LIMIT", warnings=near)


def search_call(pattern: str) -> NextCall:
    """Return the call of a search of the workspace's files."""
    arguments = {"pattern": pattern or _NO_TARGET, "search_type": "code", "limit": _SEARCH_RESULTS}
    return {"tool": "search", "arguments": arguments}


def read_call(path: str, first: int | None = None, last: int | None = None) -> NextCall:
    """Return a call that reads a file or a line range."""
    if first is None:
        return {"tool": "read", "arguments": {"mode": "file", "target": target_of(path)}}
    lines = {"start_line": first, "end_line": first if last is None else last}
    return {"tool": "read", "arguments": {"mode": "snippet", "target": target_of(path), **lines}}


_TEXTS: Final[Mapping[str, str]] = {"chars": FEWER_CHARS, "results": FEWER_RESULTS, "context": LESS_CONTEXT}


def _allowed(ask: ReadAsk, limits: Limits) -> Limits:
    """Return the sizes that an answer may have."""
    chars = None if ask.chars is None else max(LEAST_CHARS, ask.chars)
    return Limits(
        lines=limits.lines,
        chars=_least(chars, limits.chars),
        results=_least(ask.results, limits.results),
        context=_least(ask.context, limits.context),
    )


def _least(asked: int | None, limit: int | None) -> int | None:
    return limit if asked is None else asked if limit is None else min(asked, limit)


def _lines_text(ask: ReadAsk) -> str:
    return FEWER_LINES if ask.has_limit else DEFAULT_LINES


def _shorten(verdict: ReadVerdict, texts: Collection[str]) -> ReadVerdict:
    if not texts:
        return verdict
    return replace(_warn(verdict, tuple(texts), SOFT_REASON), state="SOFT_LIMIT")


def _warn(verdict: ReadVerdict, texts: tuple[str, ...], reason: str) -> ReadVerdict:
    warned = replace(verdict, warnings=(*verdict.warnings, *texts), action="search")
    return replace(_with_reason(warned, reason), next_calls=verdict.next_calls or _next_calls(verdict))


def _refuse(verdict: ReadVerdict, refusal: Refusal, reason: str) -> ReadVerdict:
    refused = replace(_with_reason(verdict, reason), refusal=refusal, action="search")
    return replace(refused, next_calls=_next_calls(verdict))


def _with_reason(verdict: ReadVerdict, reason: str) -> ReadVerdict:
    return verdict if reason in verdict.reasons else replace(verdict, reasons=(*verdict.reasons, reason))


def _next_calls(verdict: ReadVerdict) -> tuple[NextCall, ...]:
    """Return the next calls: a search for the target's name, then reads of the alternatives."""
    name = verdict.ask.target.rstrip("/").rpartition("/")[2].partition(":")[0].strip()[:_LONGEST_WORD]
    return (search_call(name), *map(read_call, verdict.alternatives))

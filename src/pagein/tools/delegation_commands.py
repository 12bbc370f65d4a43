"""Implement `pagein query`, `pagein batch` and `pagein extract` as functions with plain values in and out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.delegation.call_tree import Watch
from pagein.engine.session import Session
from pagein.errors import BadInput, BadSetting
from pagein.model.delegation_notes import DelegationKind
from pagein.model.read_caps import ReadCaps
from pagein.policy.delegation.answer_texts import report_text
from pagein.policy.delegation.reports import Confirm, Question
from pagein.tools.child_tools import SessionDelegate
from pagein.tools.delegation_tools import report_values

_UNBOUNDED: Final = ReadCaps(1 << 40, 1 << 40)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The end of a command.

    values: the report as plain values, whose shape is stable. text: the report for a person, with every answer.
    failure: why there is no answer at all; None if there is one, or if no target had a hit. is_cancelled: it was cancelled.
    """

    values: dict[str, Any]
    text: str
    failure: str | None
    is_cancelled: bool


def question_of(
    kind: DelegationKind,
    words: Sequence[str],
    more_ids: Sequence[str],
    model: str | None,
    find: str | None,
    confirm: Confirm | None,
) -> Question:
    """Return the question of a command line: ids, and the instructions as the last word. Raises BadInput.

    more_ids: ids from standard input, which take the place of the word `-`.
    """
    ids, instructions = [one for one in words[:-1] if one != "-"], words[-1]
    ids += more_ids
    if not ids:
        raise BadInput(f'no target is named; write: pagein {kind} ID... -- "QUESTION"')
    return Question(kind, instructions, tuple(ids), model or "", find, confirm=confirm)


def ask(session: Session, question: Question, watch: Watch | None = None) -> CommandEnd:
    """Ask, and return the end of it. Ctrl-C cancels, and what was finished is in the report. Raises BadSetting."""
    delegate = session.delegate
    if not isinstance(delegate, SessionDelegate):
        raise BadSetting("this session has no child models")
    report = delegate.ask_now(session, question, watch=watch, heeds_interrupt=True)
    is_answered = any(one.status == "success" for one in report.results)
    failure = report.refused
    if failure is None and report.results and not is_answered:
        failure = f"no child answered: {report.results[0].why}"
    return CommandEnd(report_values(report), report_text(report, _UNBOUNDED), failure, report.is_cancelled)

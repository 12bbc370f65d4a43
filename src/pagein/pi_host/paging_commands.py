"""The subcommands of `/rlm`: switch paging, report, set a session's own settings, and cancel operations."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from pagein.delegation.call_tree import CallNode, CallStatus, CallTree, OperationView
from pagein.engine.session import Session
from pagein.errors import BadInput, PageinError
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.entries import EpochEntry, NoteEntry
from pagein.pi_host.branch import CONFIG, PiBranch
from pagein.pi_host.protocol import Answer, NewEntry
from pagein.pi_host.session_config import SessionConfig, config_table, parse_config
from pagein.tools import catalogue
from pagein.tools.calls import Call

_STATUS_ON: Final = "RLM Status: ON"
_MOST: Final = 30
_SIGNS: Final[Mapping[CallStatus, str]] = {
    "running": "●",
    "success": "✓",
    "error": "✗",
    "timeout": "✗",
    "cancelled": "✗",
}
WORDS: Final[Mapping[str, str]] = {
    "on": "page in this branch of the session",
    "off": "stop evictions; cancels children, keeps the store",
    "status": "figures",
    "cancel": "cancel running children; finished answers stay",
    "config": "show every key, or set some: /rlm config manifest=on maxChildCalls=20",
    "inspect": "the results that the model sees in another form than pi shows",
    "externalize": "let old results leave with the next request",
    "store": "the objects of this session, newest first",
    "trace": "finished operations and their costs, newest first",
    "prompt": "show or set the words on paging in the system prompt; {{default}} stands for the built-in words",
    "clear": "how to delete from the store",
    "resume": "how to continue an earlier session",
}
_CLEAR: Final = (
    "Nothing is deleted from within a session, since stubs of other branches may name it. In a shell: pagein gc shows what no "
    "session needs, pagein gc --apply deletes it, and pagein forget erases a text for good."
)
_RESUME: Final = (
    "There is nothing to resume by hand: open the session in pi (/resume, or pi -c). What left its window is a stub again, and "
    "the model recalls it by its id."
)

NOT_POOLED: Final = ("on", "off", "externalize")
"""Words without a meaning in a session with the pooled layout."""


def say_pooled(word: str) -> Answer:
    """Return the answer to a word without a meaning in the pooled layout."""
    return Answer(
        f"/rlm {word} has no meaning here: this session began with layout = pooled, where contents leave by themselves and the model "
        "brings them back with activate. /rlm store lists them; a new session follows the settings.",
        "error",
    )


def say_help(word: str) -> Answer:
    """Return the answer to a word that `/rlm` does not have."""
    words = "\n".join(f"/rlm {name}: {told}" for name, told in WORDS.items())
    return Answer(f"/rlm has no {word!r}; it has\n{words}", "error")


def switch_paging(active: tuple[str, ...], *, on: bool, cancelled: int = 0) -> Answer:
    """Return the answer to `/rlm on` and `/rlm off`, with the entry by which the branch remembers it.

    active: names of pagein's tools that are active from now on. cancelled: operations that were ended.
    """
    told = "Paging is on." if on else "Paging is off. What left the context before stays in the store."
    told += f" Cancelled {cancelled} active operation(s)." if cancelled else ""
    return Answer(told, entries=(NewEntry(CONFIG, {"v": 1, "enabled": on}),), tools=active)


def paging_status(session: Session, operations: Sequence[OperationView], *, pages: bool) -> Answer:
    """Return the answer to `/rlm status`."""
    told = catalogue.answer(session, "rlm_stats", Call())
    text = told.text if pages else told.text.replace(_STATUS_ON, "RLM Status: OFF")
    text += f"\nActive operations: {len(operations)}" if operations else ""
    return Answer(text, "error" if told.is_error else "info")


def cancel_operations(tree: CallTree) -> Answer:
    """Cancel the running operations of children."""
    count = tree.cancel_all()
    if not count:
        return Answer("No active RLM operations.")
    return Answer(f"Cancelled {count} active operation(s). Partial results preserved.", "warning")


def configure(words: str, config: SessionConfig, usual: Mapping[str, object], held: Mapping[str, object]) -> Answer:
    """Return the answer to `/rlm config`: the table, or the entry that sets values.

    usual: pagein's settings. held: the session's settings that hold.
    """
    if not words:
        return Answer(config_table(config, usual, held))
    try:
        values = parse_config(words)
    except BadInput as problem:
        return Answer(str(problem), "error")
    told = ", ".join(f"{name}={value}" for name, value in values.items())
    return Answer(f"Set for this branch of the session: {told}", entries=(NewEntry(CONFIG, {"v": 1, **values}),))


def set_prompt(words: str, shown: str) -> Answer:
    """Return the answer to `/rlm prompt`: the text in the system prompt, or the entry that sets the text."""
    if not words:
        return Answer(shown or "Paging is off, so the system prompt says nothing of it.")
    told = "The built-in words again." if words == "{{default}}" else "Set for this branch, from the next prompt on."
    return Answer(told, entries=(NewEntry(CONFIG, {"v": 1, "prompt": words}),))


def order_epoch(session: Session, branch: PiBranch, *, pages: bool) -> Answer:
    """Let old results leave with the next request."""
    if not pages:
        return Answer("Paging is off: /rlm on first.", "error")
    failure = session.hand.epoch()
    branch.stay()
    if failure is not None:
        return Answer(f"This was not stored: {failure}", "error")
    return Answer("Old results leave with the next request. Send a message to trigger it.")


def inspect(
    session: Session, branch: PiBranch, shown: Mapping[str, str] | None, operations: Sequence[OperationView]
) -> Answer:
    """Return the answer to `/rlm inspect`: the calls of children, the results shown otherwise than pi has them, and the objects.

    shown: None before the first request of this process.
    """
    results = [
        f"{branch.calls[name].name if name in branch.calls else 'result'} {name}: {text.splitlines()[0] if text else ''}"
        for name, text in (shown or {}).items()
    ]
    none = "none" if shown is not None else "not known before the next request"
    parts = {
        "Children and epochs, newest first": "\n".join([*_call_lines(operations), trace(session, operations).text]),
        "Results that the model sees otherwise than pi shows them": "\n".join(results) or none,
        "Objects, newest first": list_store(session).text,
    }
    text = "\n\n".join(f"{title}\n{body}" for title, body in parts.items())
    return Answer(text, overlay="pagein: what left the window")


def _call_lines(operations: Sequence[OperationView]) -> list[str]:
    """Return a line for each call of a running operation, indented by its depth."""
    return [
        f"{'  ' * (call.depth - 1)}{_SIGNS[call.status]} {call.call_id} [{call.model}] {_seconds(call)}, {call.cost.says}: "
        f"{call.question}"
        for one in operations
        for call in one.calls
    ]


def _seconds(call: CallNode) -> str:
    return "running" if call.seconds is None else f"{call.seconds:.1f} s"


def list_store(session: Session) -> Answer:
    """Return the answer to `/rlm store`: the objects of the session, newest first."""
    try:
        held = session.recalls.holdings
    except PageinError as problem:
        return Answer(str(problem), "error")
    lines = [f"{one.object_id}  {one.tokens:,} tokens  {one.description}" for one in islice(held.newest_first(), _MOST)]
    if held.count > _MOST:
        lines.append(f"and {held.count - _MOST:,} more")
    return Answer("\n".join(lines) or "Nothing has left the context, and nothing was ingested.")


def trace(session: Session, operations: Sequence[OperationView]) -> Answer:
    """Return the answer to `/rlm trace`: the operations that run, then the epochs and answers of children, newest first."""
    lines = [
        f"{one.kind} {one.operation_id}: {one.done} of {one.total} answered, {one.actual.says} so far: {one.question}"
        for one in operations
    ]
    past: list[str] = []
    for entry in session.journal.branch(session.leaf):
        match entry.body:
            case EpochEntry() as epoch:
                past.append(f"epoch {epoch.number} ({epoch.reason}): {len(epoch.paged)} results left the context")
            case NoteEntry(note=ChildResultNote() as told):
                past.append(
                    f"{told.kind} answered by {told.model}, {told.tokens:,} tokens: {told.object_id}  {told.title}"
                )
            case _:
                pass
    lines += past[: -_MOST - 1 : -1]
    return Answer("\n".join(lines) or "No child was asked in this session, and no epoch was opened.")


def say_clear() -> Answer:
    """Return the answer to `/rlm clear`."""
    return Answer(_CLEAR)


def say_resume() -> Answer:
    """Return the answer to `/rlm resume`."""
    return Answer(_RESUME)

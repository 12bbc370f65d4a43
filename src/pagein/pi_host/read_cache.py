"""Replace the answers to pi's own reads with a marker, a diff or the text, beside the record for pi's session file.

pi's tool has run when pagein decides, so the worst case is pi's own answer (law 7).
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from pagein.engine.log.read_notes import trace_of
from pagein.engine.session import Session
from pagein.errors import CallerError
from pagein.model import read_records
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import OtherNote, ReadNote, RecallNote
from pagein.model.messages import ToolCall
from pagein.model.objects import ObjectId
from pagein.pi_host.branch import TEXT_HASH, PiBranch, edits_in
from pagein.pi_host.protocol import CallVerdict, ModelCall, Patch, Row, ToolResultEvent
from pagein.policy.reads.baseline import byte_length
from pagein.policy.reads.echo_forms import may_echo
from pagein.policy.reads.echo_guard import Facts, OwnTexts, echoes, facts_of_read, facts_of_recall, remedy
from pagein.policy.reads.read_request import DoneRead, ReadDecision

ReadCacheMode: TypeAlias = Literal["on", "shadow", "off"]
"""Whether reads are answered anew, or only decided on and compared."""

SHADOW: Final = "pi-shadow"
"""Kind of the note on a read that was only decided on."""
_NOTHING: Final = Patch()
_AS_IT_IS: Final = CallVerdict()
_WRITES: Final = ("write", "edit", "bash")
_SHELL_WRITES: Final = ("<<", "*** Begin Patch")
"""What a shell command has that writes a text of its own into a file."""


class ReadCache:
    """The reads, writes and edits of pi's own tools in one session.

    made_here: returns whether the store made an id.
    """

    def __init__(
        self, session: Session, branch: PiBranch, mode: ReadCacheMode, made_here: Callable[[ObjectId], bool]
    ) -> None:
        self._session = session
        self._branch = branch
        self._mode = mode
        self._made_here = made_here

    def judge(self, call: ModelCall) -> CallVerdict:
        """Decide about a tool call before the call runs."""
        if call.name == "read":
            return self._with_range(call.input)
        if call.name not in _WRITES:
            return _AS_IT_IS
        arguments = json.dumps(call.input, ensure_ascii=False)
        if not may_echo(arguments):
            return _AS_IT_IS
        if call.name == "bash" and not any(one in str(call.input.get("command")) for one in _SHELL_WRITES):
            return _AS_IT_IS
        owned = OwnTexts(self._made_here, self._served())
        found = echoes(ToolCall(call.id, call.name, arguments), owned, self._present_text(call.input))
        return CallVerdict(block=remedy(found, peek="rlm_peek")) if found else _AS_IT_IS

    def patch(self, event: ToolResultEvent) -> Patch:
        """Return the change of a result."""
        if event.error:
            return _NOTHING
        if event.call.name == "read":
            return self._answered(event)
        return self._learned(event)

    def _with_range(self, given: Row) -> CallVerdict:
        """Return the call with the line range of the path as offset and limit, for pi's own tool."""
        path = given.get("path")
        if not isinstance(path, str) or given.get("offset") is not None or given.get("limit") is not None:
            return _AS_IT_IS
        try:
            located = self._session.reads.files.locate(path)
        except CallerError as problem:
            return CallVerdict(block=str(problem))
        if located.offset is None:
            return _AS_IT_IS
        lines = {"offset": located.offset} | ({} if located.limit is None else {"limit": located.limit})
        return CallVerdict({**given, "path": located.given, **lines})

    def _answered(self, event: ToolResultEvent) -> Patch:
        given = event.call.input
        path, offset, limit = given.get("path"), _number(given.get("offset")), _number(given.get("limit"))
        if not isinstance(path, str):
            return _NOTHING
        done = DoneRead(event.text, self._rehearse(event) if self._mode == "shadow" else None)
        result = self._session.reads.read(path, offset=offset, limit=limit, done=done)
        record = result.details.get("readcache")
        if not isinstance(record, dict):
            self._branch.stay()
            return replace(_NOTHING, failure=result.failure or "")
        self._branch.note_answered(event.call.id)
        if self._mode == "shadow":
            return replace(_NOTHING, failure=result.failure or "")
        kept = {"readcache": {**record, TEXT_HASH: trace_of(result.text)}}
        if result.text == event.text:
            return Patch(None, {**(event.details or {}), **kept}, result.failure or "")
        return Patch(result.text, {**result.details, **kept}, result.failure or "")

    def _rehearse(self, event: ToolResultEvent) -> Any:  # noqa: ANN401 - a callback
        def note(decision: ReadDecision, objection: str | None) -> None:
            told = {
                "call": event.call.id,
                "mode": decision.event.mode,
                "own": byte_length(event.text),
                "would": byte_length(decision.text),
                "objection": objection,
            }
            self._session.note(OtherNote(SHADOW, json.dumps(told)))

        return note

    def _learned(self, event: ToolResultEvent) -> Patch:
        """Journal what a write or an edit lets the model know, and have pi keep the record."""
        given = event.call.input
        path = given.get("path")
        if not isinstance(path, str):
            return _NOTHING
        if event.call.name == "write" and isinstance(given.get("content"), str):
            learned = self._session.note_write(path, given["content"])
        elif event.call.name == "edit" and (edits := edits_in(given)):
            learned = self._session.reads.note_edit(path, [(one.old, one.new) for one in edits])
        else:
            return _NOTHING
        if learned.event is None:
            return replace(_NOTHING, failure=learned.failure or "")
        self._branch.note_answered(event.call.id)
        if self._mode == "shadow":
            return _NOTHING
        return Patch(details={**(event.details or {}), "readcache": read_records.encode_authored(learned.event)})

    # --- the echo guard ---

    def _served(self) -> frozenset[Facts]:
        """Return the markers and hints of this session, on all branches."""
        found: set[Facts] = set()
        for entry in self._session.journal.entries.values():
            match entry.body:
                case NoteEntry(note=ReadNote(event=event)):
                    found.update(facts_of_read(event))
                case NoteEntry(note=RecallNote() as recall):
                    found.update(facts_of_recall(recall))
        return frozenset(found)

    def _present_text(self, given: Row) -> str:
        """Return the present text of the file that a call writes; "" if there is none."""
        path, files = given.get("path"), self._session.reads.files
        if not isinstance(path, str):
            return ""
        try:
            return files.read(files.locate(path, offset=1)).text
        except CallerError:
            return ""


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None

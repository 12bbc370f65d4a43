"""Rereads by a client's own tools: record the text shown, and answer later reads more briefly.

The version of a file is the text of a result, gutter removed.

Rules of this file
------------------
1. An answer rests on text in this very request, compared line by line with the text in hand. So no other change of the
   file needs to be known: the answer describes the file as the result shows it now.
2. A result counts as it is in the request, never as the client sent it: stubs and previews show nothing.
3. Text of a file in an uncertain form (a cut result, an edit without a place, lines quoted by a person) makes earlier
   text of the file useless as a base. The texts themselves stay, and with them the answers that already depend on them.
4. The lines after an answer are in one piece, some lines in a row at any place, so that an edit can quote it
   (`file_seams`).
5. A model that asks for the same lines again, right after an answer that did not show them, is shown them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final

from pagein.model.documents import Document
from pagein.model.messages import FileAccess, Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead
from pagein.model.spans import Spans
from pagein.policy.clients.client_reads import (
    START,
    ClientReads,
    forgotten,
    is_plain,
    overlaid,
    path_key,
    with_statement,
    with_text,
)
from pagein.policy.clients.client_texts import client_text
from pagein.policy.clients.file_changes import file_change
from pagein.policy.clients.file_seams import WHOLE, pieces, torn
from pagein.policy.clients.line_layouts import ShownText
from pagein.policy.clients.profile import OTHERS_OUTPUT, Profile, reading_of
from pagein.policy.clients.window_files import FileStatement, Repeat
from pagein.policy.privacy.exclusions import EXCLUDED, is_withheld, may_show_excluded
from pagein.policy.reads.baseline import Baseline
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import DEFAULTS, ReadDecision, ReadingSettings, ReadRequest

LEAST_SPARED: Final = 100
"""Minimum characters that an answer must save: each answer makes later decisions depend on its base."""

_MARKED: Final = ("unchanged", "unchanged_range", "moved", "partly_known")
_NUMBERED: Final = re.compile(r"^[ ]*\d+(?:\t|→|: )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RereadRules:
    """Inputs to the decision on a reread.

    profile: the client. settings: bounds of the read policy.
    excluded: patterns of files whose content is never stored.
    whole: lines in a row that stay in one piece.
    """

    profile: Profile
    settings: ReadingSettings = DEFAULTS
    excluded: tuple[str, ...] = EXCLUDED
    least_spared: int = LEAST_SPARED
    whole: int = WHOLE


@dataclass(frozen=True, slots=True)
class RereadAnswer:
    """A text to replace a result.

    text: the whole result. markers: pagein's lines in it.
    """

    text: str
    markers: tuple[str, ...]


# --- the fold over messages ---


def with_message(
    state: ClientReads, reader: RereadRules, message: Message, stands: Mapping[str, str] | None = None
) -> ClientReads:
    """Return the state after another message.

    stands: by call, the text in the request where it differs from the client's.
    """
    if message.role == "assistant":
        calls = state.calls
        for block in message.blocks:
            if isinstance(block, ToolCall):
                calls = calls.put(block.id, block)
        return replace(state, calls=calls, turns=state.turns + 1)
    for block in message.blocks:
        if isinstance(block, ToolResult):
            state = with_result(state, reader, block, (stands or {}).get(block.call_id, block.text))
        elif isinstance(block, Text) and message.role == "user":
            state = _apply_quote(state, block.text)
    return state


def with_result(state: ClientReads, reader: RereadRules, result: ToolResult, stands: str) -> ClientReads:
    """Return the state after a result with the text `stands` in the request."""
    call = state.calls.get(result.call_id)
    if call is None:
        return state
    state = replace(state, calls=state.calls.without(call.id))
    reading = reading_of(reader.profile, call, result)
    if reading.is_repeat:
        return _apply_repeat(state, reader, call, result, stands)
    return state if reading.is_failure else _apply_result(state, reader, call, result, stands)


def _apply_repeat(
    state: ClientReads, reader: RereadRules, call: ToolCall, result: ToolResult, stands: str
) -> ClientReads:
    """Record a client's reference to an earlier read; the request may show the read's text here, if the read was
    evicted.
    """
    base = state.asked.get(_words_of_call(call))
    if base is not None:
        repeats = state.files.repeats.put(call.id, Repeat(base, state.turns))
        state = replace(state, files=replace(state.files, repeats=repeats))
    if stands == result.text:
        return state
    return _apply_result(state, reader, call, replace(result, text=stands), stands)


def _apply_result(
    state: ClientReads, reader: RereadRules, call: ToolCall, result: ToolResult, stands: str
) -> ClientReads:
    meaning = reading_of(reader.profile, call, result).effect
    if meaning == OTHERS_OUTPUT:
        return state
    if is_withheld(result) or call.withheld is not None:  # its text is unknown
        return _forget(state, meaning.accesses)
    if call.id in state.files.path_of:  # an id used twice: a statement about one call would count for both
        return _forget(state, meaning.accesses)
    if all(access.op == "read" for access in meaning.accesses):
        return _apply_read(state, reader, call, result, stands)
    return _apply_write(state, reader, call, stands == result.text)


def answer(state: ClientReads, reader: RereadRules, result: ToolResult) -> RereadAnswer | None:
    """Return a shorter text to replace the next result; None where the result itself is best."""
    call = state.calls.get(result.call_id)
    shown = None if call is None else reading_of(reader.profile, call, result).shown
    if call is None or shown is None or is_withheld(result) or may_show_excluded(call, reader.excluded):
        return None
    path = path_key(shown.path)
    if call.id in state.files.path_of or _is_asked_again(state, path, shown):
        return None
    decision = _decision(state, reader, path, shown)
    told = None if decision is None else client_text(decision, shown, result.text)
    if decision is None or told is None or shown.size(result.text) - len(told.text) < reader.least_spared:
        return None
    return RereadAnswer(shown.with_text(result.text, told.text), told.markers)


def lost_base(state: ClientReads, reader: RereadRules, result: ToolResult) -> str | None:
    """Return the evicted call behind a client's own marker; None for any different result."""
    call = state.calls.get(result.call_id)
    if call is None or not reading_of(reader.profile, call, result).is_repeat:
        return None
    base = state.asked.get(_words_of_call(call))
    return base if base in state.files.gone else None


def _forget(state: ClientReads, accesses: Iterable[FileAccess]) -> ClientReads:
    """Return the state without earlier texts of some files as bases."""
    if state.texts is START.texts:  # no text was shown at all
        return state
    return reduce(forgotten, (access.path for access in accesses), state)


def _words_of_call(call: ToolCall) -> str:
    return f"{call.name}\0{call.arguments}"


def _is_asked_again(state: ClientReads, path: str, shown: ShownText) -> bool:
    chain = state.files.chains.get(path)
    if chain is None or not chain.last.stands_for_more:
        return False
    event = chain.last.event
    return isinstance(event, FileRead) and (event.first, event.last) == (shown.first, shown.last)


def _decision(state: ClientReads, reader: RereadRules, path: str, shown: ShownText) -> ReadDecision | None:
    text = _with_shown(state, path, shown)
    if not is_plain(text):
        return None
    document = Document.of(text.encode(), path=shown.path, key=path)
    baseline = Baseline("\n".join(shown.lines), "", shown.first, len(shown.lines), text.count("\n") + 1)
    request = ReadRequest(document, shown.path, shown.first, shown.last, baseline)
    return _in_one_piece(state, reader, request, shown)


def _in_one_piece(state: ClientReads, reader: RereadRules, request: ReadRequest, shown: ShownText) -> ReadDecision:
    """Return an answer without a seam in text for later edits to quote."""
    path = request.document.key
    known, fetch = state.known.of(path), partial(state.files.fetch, path)
    decision = decide(request, known, fetch, reader.settings)
    if decision.event.mode not in _MARKED:
        return decision
    seams = torn(shown.lines, shown.first, pieces(state.files.statements(path)), reader.whole)
    return (
        decide(request, replace(known, stale=known.stale.unite(seams)), fetch, reader.settings) if seams else decision
    )


def _apply_read(
    state: ClientReads, reader: RereadRules, call: ToolCall, result: ToolResult, stands: str
) -> ClientReads:
    reading = reading_of(reader.profile, call, result)
    shown = reading.shown
    if reading.effect.op == "read":
        state = replace(state, asked=state.asked.put(_words_of_call(call), call.id))
    if shown is None:
        # the window now shows unknown lines of these files
        return _forget(state, reading.effect.accesses)
    path = path_key(shown.path)
    text = _with_shown(state, path, shown)
    if not is_plain(text):
        return forgotten(state, path)
    if stands == result.text:
        event: FileRead | None = _whole(path, text, shown)
    else:
        event = _answer_event(state, reader, path, shown, result, stands)
    if event is None:  # its text is not in the request
        files = replace(state.files, gone=state.files.gone | {call.id})
        return with_text(replace(state, files=files), path, text)
    made = FileStatement(call.id, event, state.turns, text, shown.gutter, shown.before, shown.after)
    return with_statement(state, path, made)


def _with_shown(state: ClientReads, path: str, shown: ShownText) -> str:
    """Return the file's text after a read; the same object if unchanged, as every read refers to it."""
    before = state.texts.get(path)
    text = overlaid(before, shown)
    return before if before is not None and before == text else text


def _whole(path: str, text: str, shown: ShownText) -> FileRead:
    size, total = len(text.encode()), text.count("\n") + 1
    emitted = Spans.of((shown.first, shown.last))
    return FileRead(path, "full", ContentHash.of(text.encode()), total, shown.first, shown.last, size, emitted=emitted)


def _answer_event(
    state: ClientReads, reader: RereadRules, path: str, shown: ShownText, result: ToolResult, stands: str
) -> FileRead | None:
    """Return the event of the answer in the request; None for unexpected text, a stub or a preview."""
    decision = _decision(state, reader, path, shown)
    told = None if decision is None else client_text(decision, shown, result.text)
    if decision is None or told is None or shown.with_text(result.text, told.text) != stands:
        return None
    return decision.event


def _apply_write(state: ClientReads, reader: RereadRules, call: ToolCall, is_shown: bool) -> ClientReads:  # noqa: FBT001 -- a single call site
    for access in reader.profile.effect_of(call).accesses:
        path = path_key(access.path)
        before, known, fetch = state.texts.get(path), state.known.of(path), partial(state.files.fetch, path)
        made = (
            file_change(reader.profile, call, access, path, before=before, known=known, fetch=fetch)
            if access.op != "read"
            else None
        )
        # a call is evidence of one file; the other files are only known to have changed
        if made is None or not is_shown or call.id in state.files.path_of:
            state = forgotten(state, access.path)
        else:
            state = with_statement(state, path, FileStatement(call.id, made.event, state.turns, made.text))
    return state


def _apply_quote(state: ClientReads, text: str) -> ClientReads:
    """Forget the files named in a person's or host's text with numbered lines, as the lines may be theirs."""
    if _NUMBERED.search(text) is None:
        return state
    named = [path for path in state.texts if path.rpartition("/")[2] in text]
    return reduce(forgotten, named, state)

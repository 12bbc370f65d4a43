"""Reads that a client's own tools made, in a conversation without files: what the model was shown, and shorter answers to what it reads again.

The version of a file is what a result showed, gutter removed (DESIGN 11).

Rules of this file
------------------
1. An answer rests on text that stands in this very request, compared line by line with the text in hand. So nobody has to know
   what else may have changed the file: what it shows now is what is told of it.
2. A result counts as what stands in the request, never as what the client sent: stubs and previews show nothing.
3. What shows a file in a way that cannot be told (a cut result, an edit without a place, lines quoted by a person) makes all that
   was shown of it earlier useless as a base. The texts themselves stay, and with them what rests on them already.
4. What an answer stands for is in one piece, some lines in a row at any place, so that an edit can quote it (`seams`).
5. Who asks for the same lines again, right behind an answer that did not show them, is shown them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final

from pagein.model.documents import Document
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead
from pagein.model.spans import Spans
from pagein.policy.clients.client_texts import client_text
from pagein.policy.clients.file_changes import file_change
from pagein.policy.clients.file_seams import WHOLE, pieces, torn
from pagein.policy.clients.line_layouts import ShownText
from pagein.policy.clients.profile import OTHERS_OUTPUT, Profile
from pagein.policy.clients.shown_files import is_plain, overlaid, path_key
from pagein.policy.clients.window_files import (
    NO_READS,
    ClientReads,
    FileStatement,
    Repeat,
    forgotten,
    with_held,
    with_text,
)
from pagein.policy.privacy.exclusions import EXCLUDED, may_show_excluded
from pagein.policy.privacy.redaction import is_withheld
from pagein.policy.reads.baseline import Baseline
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import DEFAULTS, ReadDecision, ReadingSettings, ReadRequest

LEAST_SPARED: Final = 100
"""Characters that an answer must spare at least: each answer ties later decisions to the text it rests on."""

_MARKED: Final = ("unchanged", "unchanged_range", "moved", "partly_known")
_NUMBERED: Final = re.compile(r"^[ ]*\d+(?:\t|→|: )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RereadRules:
    """What rereads are decided by: the client, the bounds of the read policy, and the files whose content is never stored.

    whole: lines in a row that stay in one piece.
    """

    profile: Profile
    settings: ReadingSettings = DEFAULTS
    excluded: tuple[str, ...] = EXCLUDED
    least_spared: int = LEAST_SPARED
    whole: int = WHOLE


@dataclass(frozen=True, slots=True)
class RereadAnswer:
    """What may stand in place of a result. text: the whole result. markers: the lines of it that are ours."""

    text: str
    markers: tuple[str, ...]


# --- what is said ---


def with_message(
    state: ClientReads, reader: RereadRules, message: Message, stands: Mapping[str, str] | None = None
) -> ClientReads:
    """The state after one more message. stands: by call, the text that stands in the request where it is not the client's."""
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
    """The state after one result, in whose place `stands` stands in the request."""
    call = state.calls.get(result.call_id)
    if call is None:
        return state
    state = replace(state, calls=state.calls.without(call.id))
    if reader.profile.is_repeat(call, result):
        return _apply_repeat(state, reader, call, result, stands)
    return state if reader.profile.is_failure(call, result) else _answered_by(state, reader, call, result, stands)


def _apply_repeat(
    state: ClientReads, reader: RereadRules, call: ToolCall, result: ToolResult, stands: str
) -> ClientReads:
    """The client refers to an earlier read; where that has left the window, what it showed may stand here."""
    base = state.asked.get(_words_of_call(call))
    if base is not None:
        state = replace(state, repeats=state.repeats.put(call.id, Repeat(base, state.turns)))
    if stands == result.text:
        return state
    return _answered_by(state, reader, call, replace(result, text=stands), stands)


def _answered_by(
    state: ClientReads, reader: RereadRules, call: ToolCall, result: ToolResult, stands: str
) -> ClientReads:
    meaning = reader.profile.effect_of(call)
    if meaning == OTHERS_OUTPUT:
        return state
    if is_withheld(result) or call.withheld is not None:  # nobody can tell what it said
        return reduce(forgotten, (access.path for access in meaning.accesses), state)
    if call.id in state.path_of:  # an id used twice: what is said of it would be said of both
        return reduce(forgotten, (access.path for access in meaning.accesses), state)
    if all(access.op == "read" for access in meaning.accesses):
        return _apply_read(state, reader, call, result, stands)
    return _written(state, reader, call, stands == result.text)


def answer(state: ClientReads, reader: RereadRules, result: ToolResult) -> RereadAnswer | None:
    """What may stand in place of a result that comes next, None where the result itself is best."""
    call = state.calls.get(result.call_id)
    if call is None or is_withheld(result) or may_show_excluded(call, reader.excluded):
        return None
    shown = reader.profile.lines_shown(call, result)
    path = None if shown is None else path_key(shown.path)
    if shown is None or path is None or call.id in state.path_of or _is_asked_again(state, path, shown):
        return None
    decision = _decision(state, reader, path, shown)
    told = None if decision is None else client_text(decision, shown, result.text)
    if decision is None or told is None or shown.size(result.text) - len(told.text) < reader.least_spared:
        return None
    return RereadAnswer(shown.with_text(result.text, told.text), told.markers)


def lost_base(state: ClientReads, reader: RereadRules, result: ToolResult) -> str | None:
    """The call whose result a client's own marker refers to and that has left the window; None for any other result."""
    call = state.calls.get(result.call_id)
    if call is None or not reader.profile.is_repeat(call, result):
        return None
    base = state.asked.get(_words_of_call(call))
    return base if base in state.gone else None


def _words_of_call(call: ToolCall) -> str:
    return f"{call.name}\0{call.arguments}"


def _is_asked_again(state: ClientReads, path: str, shown: ShownText) -> bool:
    chain = state.files.get(path, NO_READS).chain
    last = chain[-1] if chain else None
    return (
        last is not None
        and isinstance(last.event, FileRead)
        and last.stands_for_more
        and (last.event.first, last.event.last) == (shown.first, shown.last)
    )


def _decision(state: ClientReads, reader: RereadRules, path: str, shown: ShownText) -> ReadDecision | None:
    text = _with_shown(state, path, shown)
    if not is_plain(text):
        return None
    document = Document.of(text.encode(), path=shown.path, key=path)
    baseline = Baseline("\n".join(shown.lines), "", shown.first, len(shown.lines), text.count("\n") + 1)
    request = ReadRequest(document, shown.path, shown.first, shown.last, baseline)
    return _in_one_piece(state, reader, request, shown)


def _in_one_piece(state: ClientReads, reader: RereadRules, request: ReadRequest, shown: ShownText) -> ReadDecision:
    """What to answer, so that what an edit may quote of it stands in one piece."""
    path = request.document.key

    def fetch(version: ContentHash) -> bytes | None:
        return state.fetch(path, version)

    known = state.known.of(path)
    decision = decide(request, known, fetch, reader.settings)
    if decision.event.mode not in _MARKED:
        return decision
    seams = torn(shown.lines, shown.first, pieces(state.files.get(path, NO_READS).chain), reader.whole)
    return (
        decide(request, replace(known, stale=known.stale.unite(seams)), fetch, reader.settings) if seams else decision
    )


def _apply_read(
    state: ClientReads, reader: RereadRules, call: ToolCall, result: ToolResult, stands: str
) -> ClientReads:
    profile = reader.profile
    if profile.effect_of(call).op == "read":
        state = replace(state, asked=state.asked.put(_words_of_call(call), call.id))
    shown = profile.lines_shown(call, result)
    if shown is None:
        # something of these files stands there now, and nobody can tell which lines
        return reduce(forgotten, (access.path for access in profile.effect_of(call).accesses), state)
    path = path_key(shown.path)
    text = _with_shown(state, path, shown)
    if not is_plain(text):
        return forgotten(state, path)
    if stands == result.text:
        event: FileRead | None = _whole(path, text, shown)
    else:
        event = _answer_event(state, reader, path, shown, result, stands)
    if event is None:  # its text does not stand there
        return with_text(replace(state, gone=state.gone | {call.id}), path, text)
    held = FileStatement(call.id, event, text, state.turns, shown.gutter, shown.before, shown.after)
    return with_held(state, path, held)


def _with_shown(state: ClientReads, path: str, shown: ShownText) -> str:
    """The file after a read. One that is as it was is the same text, for every read holds it."""
    before = state.files.get(path, NO_READS).text
    text = overlaid(before, shown)
    return before if before is not None and before == text else text


def _whole(path: str, text: str, shown: ShownText) -> FileRead:
    size, total = len(text.encode()), text.count("\n") + 1
    emitted = Spans.of((shown.first, shown.last))
    return FileRead(path, "full", ContentHash.of(text.encode()), total, shown.first, shown.last, size, emitted=emitted)


def _answer_event(
    state: ClientReads, reader: RereadRules, path: str, shown: ShownText, result: ToolResult, stands: str
) -> FileRead | None:
    """The answer that stands there, if it is the one that would be given; None for a stub, a preview, or whatever else."""
    decision = _decision(state, reader, path, shown)
    told = None if decision is None else client_text(decision, shown, result.text)
    if decision is None or told is None or shown.with_text(result.text, told.text) != stands:
        return None
    return decision.event


def _written(state: ClientReads, reader: RereadRules, call: ToolCall, is_shown: bool) -> ClientReads:  # noqa: FBT001 -- told once, here
    for access in reader.profile.effect_of(call).accesses:
        path = path_key(access.path)
        file = state.files.get(path, NO_READS)
        known = state.known.of(path)
        fetch = partial(state.fetch, path)
        made = (
            file_change(reader.profile, call, access, path, before=file.text, known=known, fetch=fetch)
            if access.op != "read"
            else None
        )
        # a call is evidence of one file; of the others it is only known that they changed
        if made is None or not is_shown or call.id in state.path_of or _is_again(state, call, access.path):
            state = forgotten(state, access.path)
        else:
            state = with_held(state, path, FileStatement(call.id, made.event, made.text, state.turns))
    return state


def _is_again(state: ClientReads, call: ToolCall, path: str) -> bool:
    return state.path_of.get(call.id) == path_key(path)


def _apply_quote(state: ClientReads, text: str) -> ClientReads:
    """Somebody else, a person or the host, shows numbered lines: of files that are named with them, these may be."""
    if _NUMBERED.search(text) is None:
        return state
    named = [path for path in state.files if path.rpartition("/")[2] in text]
    return reduce(forgotten, named, state)

"""The text of files that the client's own tools have shown: a state, updated by each result.

The text of a file is put together from the lines shown, and placeholders for unseen lines. Such a text names a version.
It may hold lines from several times, which does no harm: an answer may state only lines known to be in the window
(`pagein.policy.reads.knowledge`), and placeholders are never known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.messages import ToolCall
from pagein.model.read_events import FileRead, FileRefresh
from pagein.model.shared_collections import SharedMap
from pagein.model.spans import Spans
from pagein.policy.clients.line_layouts import ShownText
from pagein.policy.clients.window_files import NO_CHAINS, FileChains, FileStatement
from pagein.policy.reads.knowledge import NOTHING, Knowledge, refold_path
from pagein.policy.reads.knowledge import step as with_event


@dataclass(frozen=True, slots=True)
class ClientReads:
    """The file text shown so far in a conversation; immutable, with shared structure.

    known: the model's knowledge of each file.
    files: the statements in the window.
    texts: the present text of each file; None if uncertain.
    calls: calls without a result yet.
    asked: the last call of each read, by its arguments.
    turns: messages of the model so far.
    """

    known: Knowledge = NOTHING
    files: FileChains = NO_CHAINS
    texts: SharedMap[str | None] = field(default_factory=SharedMap)
    calls: SharedMap[ToolCall] = field(default_factory=SharedMap)
    asked: SharedMap[str] = field(default_factory=SharedMap)
    turns: int = 0


START: Final = ClientReads()
UNSEEN: Final = "\0never shown, line "


def with_statement(state: ClientReads, path: str, made: FileStatement) -> ClientReads:
    """Return the state after a call's statement about a file."""
    known, files = with_event(state.known, made.event), state.files.with_statement(path, made)
    return replace(state, known=known, files=files, texts=state.texts.put(path, made.text))


def with_text(state: ClientReads, path: str, text: str) -> ClientReads:
    """Return the state with a new text of the file that no result in the window shows."""
    return replace(state, texts=state.texts.put(path, text))


def forgotten(state: ClientReads, given: str) -> ClientReads:
    """Return the state in which no earlier text of this file may be a base."""
    path = path_key(given)
    if path not in state.texts:
        return state
    return with_statement(state, path, FileStatement("", FileRefresh(path), state.turns))


def without(state: ClientReads, calls: Iterable[str]) -> ClientReads:
    """Return the state after the results of these calls, and their dependents, have left the window."""
    left = frozenset(calls)
    bases = frozenset(call for call in state.asked.values() if call in left)
    files = replace(state.files.without(left), gone=state.files.gone | bases)
    return _refold(replace(state, files=files), state.files.paths_of(left))


def restore_results(state: ClientReads, calls: Iterable[str]) -> ClientReads:
    """Return the state after the client's own results are back in the window for some calls."""
    back = frozenset(calls)
    paths, files = state.files.paths_of(back), state.files
    for path in paths:
        files = files.with_chain(path, (_in_full(one) if one.call in back else one for one in files.statements(path)))
    return _refold(replace(state, files=files), paths)


def _refold(state: ClientReads, paths: Iterable[str]) -> ClientReads:
    known = state.known
    for path in paths:
        known = refold_path(known, path, (one.event for one in state.files.statements(path)))
    return replace(state, known=known)


def _in_full(made: FileStatement) -> FileStatement:
    event = made.event
    if not isinstance(event, FileRead) or not made.stands_for_more:
        return made
    emitted = Spans.of((event.first, event.last))
    return replace(made, event=replace(event, mode="full", base=None, emitted=emitted, copies=(), v=1))


# --- the text of a file ---


def path_key(path: str) -> str:
    """Return the normalised path of a file, without empty and `.` parts."""
    parts = path.replace("\\", "/").split("/")
    kept = [part for place, part in enumerate(parts) if part != "." and (part or place == 0)]
    return "/".join(kept)


def overlaid(before: str | None, shown: ShownText) -> str:
    """Return the file's text after a read of some of its lines.

    Where the read does not state the length of the file, an unseen line follows the shown lines, so that no answer may
    mistake them for the whole file.
    """
    lines = [] if before is None else before.split("\n")
    length = shown.total if shown.total is not None else max(len(lines), shown.last + 1)
    lines = lines[:length]
    lines += [f"{UNSEEN}{n}" for n in range(len(lines) + 1, length + 1)]
    lines[shown.first - 1 : shown.last] = shown.lines
    return "\n".join(lines)


def is_plain(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8, as files are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""The texts of files in recorded sessions, as far as they are known whole.

Known are: what a write gives; the file before an edit, where the recording keeps it; what an edit makes of a known text; a
read of all lines. A read or an edit that contradicts what is known makes the file unknown until a text is known whole
again.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.blame.known_states import Author, Deed, KnownState, lines_of
from pagein.replay.record.recorded_session import RecordedSession

_NUMBERED = re.compile(r"^\s*(\d+)(?:→|\t)(.*)$")
Snapshots = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class TextState:
    """A file before and after a deed; None where it is not known."""

    path: str
    at: float
    place: int
    deed: str
    author: Author
    base: str | None
    text: str | None


@dataclass(slots=True)
class RecordedTexts:
    """The states of all files of some sessions."""

    states: list[TextState] = field(default_factory=list)

    def add(self, states: Iterator[TextState]) -> None:
        """Add those of a session."""
        self.states += states

    @property
    def edited(self) -> set[str]:
        """The files that a call wrote or edited."""
        return {state.path for state in self.states if state.deed != "read"}

    def by_path(self) -> dict[str, list[KnownState]]:
        """Return the states of each file, oldest first; a base that nobody's call made is a state of its own."""
        found: dict[str, list[KnownState]] = defaultdict(list)
        ordered = sorted(self.states, key=lambda state: (state.at, state.author.session, state.place))
        texts: dict[str, tuple[str, ...] | None] = {}
        for state in ordered:
            those, known = found[state.path], texts.get(state.path)
            base = None if state.base is None else lines_of(state.base)
            lines = None if state.text is None else lines_of(state.text)
            is_known = base == known and those and those[-1].author.session == state.author.session
            if base is not None and not is_known:
                those.append(KnownState(f"{len(those)}", state.at, "read", state.author, base))
            if state.deed != "read":
                deed: Deed = "write" if state.deed == "write" else "edit"
                those.append(KnownState(f"{len(those)}", state.at, deed, state.author, lines))
            texts[state.path] = lines if state.deed != "read" else base
        return {path: those for path, those in found.items() if those}


def text_states(session: RecordedSession, snapshots: Snapshots) -> Iterator[TextState]:
    """Yield the states of a session's files, in order."""
    calls: dict[str, ToolCall] = {}
    texts: dict[str, str | None] = {}
    turn, place, at = 0, 0, 0.0
    for entry in session.entries:
        if not isinstance(entry, Message):
            continue
        at = entry.at or at
        if entry.role == "user" and any(isinstance(block, Text) and block.injected is None for block in entry.blocks):
            turn += 1
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                calls[block.id] = block
            elif isinstance(block, ToolResult) and block.call_id in calls and not block.is_error:
                author = Author("agent", session.head.id, turn)
                for state in _states(calls[block.call_id], block, texts, snapshots, (at, place, author)):
                    texts[state.path] = state.base if state.deed == "read" else state.text
                    yield state
                    place += 1


def _states(
    call: ToolCall,
    result: ToolResult,
    texts: dict[str, str | None],
    snapshots: Snapshots,
    when: tuple[float, int, Author],
) -> Iterator[TextState]:
    at, place, author = when
    try:
        row = msgspec.json.decode(call.arguments, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError):
        return
    for access in call.accesses:
        path, known = access.path, texts.get(access.path)
        if access.op == "read":
            text = _whole_read(result) if access.via == "native" else None
            if text is not None:
                yield TextState(path, at, place, "read", author, text, None)
            continue
        before = snapshots(result.before) if result.before is not None else known
        if access.op == "write" and isinstance(row.get("content"), str):
            yield TextState(path, at, place, "write", author, before, str(row["content"]))
        else:
            yield TextState(path, at, place, "edit", author, before, _edited(before, row))


def _edited(before: str | None, row: dict[str, object]) -> str | None:
    old = next((row[name] for name in ("old_string", "oldText") if name in row), None)
    new = next((row[name] for name in ("new_string", "newText") if name in row), None)
    if before is None or not isinstance(old, str) or not isinstance(new, str) or not old or old not in before:
        return None
    everywhere = row.get("replace_all") is True
    return before.replace(old, new, -1 if everywhere else 1) if everywhere or before.count(old) == 1 else None


def _whole_read(result: ToolResult) -> str | None:
    numbered = [found for line in result.text.split("\n") if (found := _NUMBERED.match(line))]
    shown = result.shown
    if not numbered or shown is None or shown.total is None or int(numbered[0][1]) != 1:
        return None
    return "\n".join(found[2] for found in numbered) if len(numbered) == shown.total else None

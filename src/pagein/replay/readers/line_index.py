"""The first pass over a file of lines: an index of the lines, by their shape, without their content.

An indexed line holds the facts needed before the second pass: format, session, place in the tree.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from pagein.model.messages import UnreadableLine
from pagein.replay.readers.row_fields import Row
from pagein.replay.readers.rows import decode, raw_lines, rows_at, unknown_row
from pagein.replay.readers.source import Source

Format: TypeAlias = Literal[
    "corpus", "pi", "claude-code", "codex", "gemini-cli", "copilot-cli", "opencode", "requests", ""
]


class IndexedLine(msgspec.Struct, gc=False):
    """One line of a recorded file.

    format: "" for a line of no known format; `why` then gives the reason.
    kind: type of the line, in the words of its format.
    id, parent: place in the tree.
    call: the model call of the line.
    lane: the sub-agent of the line.
    role: role of its message.
    begins: whether the line opens a session.
    proof: whether only this format has such a line; needed where other formats have lines of the same shape.
    """

    line: int
    format: Format
    kind: str = ""
    id: str | None = None
    parent: str | None = None
    call: str | None = None
    lane: str | None = None
    session: str | None = None
    role: str | None = None
    model: str | None = None
    side: bool = False
    begins: bool = False
    timed: bool = False
    proof: bool = False
    why: str = ""


class _Message(msgspec.Struct, gc=False):
    id: Any = None
    role: Any = None
    model: Any = None
    provider: Any = None


class _Payload(msgspec.Struct, gc=False):
    type: Any = None
    role: Any = None
    id: Any = None
    model: Any = None
    num_turns: Any = None
    source: Any = None
    forked_from_id: Any = None
    parent_thread_id: Any = None


class _Data(msgspec.Struct, gc=False):
    session_id: Any = msgspec.field(default=None, name="sessionId")
    parent_call: Any = msgspec.field(default=None, name="parentToolCallId")
    rewound_to: Any = msgspec.field(default=None, name="upToEventId")
    new_model: Any = msgspec.field(default=None, name="newModel")
    selected_model: Any = msgspec.field(default=None, name="selectedModel")
    model: Any = None


class _Probe(msgspec.Struct):
    type: Any = None
    kind: Any = None
    role: Any = None
    id: Any = None
    uuid: Any = None
    subtype: Any = None
    schema: Any = None
    model: Any = None
    timestamp: Any = None
    ts: Any = None
    parent_id: Any = msgspec.field(default=None, name="parentId")
    parent_uuid: Any = msgspec.field(default=None, name="parentUuid")
    logical_parent: Any = msgspec.field(default=None, name="logicalParentUuid")
    session_id: Any = msgspec.field(default=None, name="sessionId")
    agent_id: Any = msgspec.field(default=None, name="agentId")
    request_id: Any = msgspec.field(default=None, name="requestId")
    leaf: Any = msgspec.field(default=None, name="leafUuid")
    snapshot_of: Any = msgspec.field(default=None, name="messageId")
    side: Any = msgspec.field(default=None, name="isSidechain")
    record_type: Any = None
    summary: Any = msgspec.field(default=None, name="isCompactSummary")
    meta: Any = msgspec.field(default=None, name="isMeta")
    tool_result: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="toolUseResult")
    message: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()
    messages: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    request: msgspec.Raw = msgspec.Raw()
    request_body: msgspec.Raw = msgspec.Raw()
    req: msgspec.Raw = msgspec.Raw()
    body: msgspec.Raw = msgspec.Raw()
    info: msgspec.Raw = msgspec.Raw()
    instructions: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    project: Any = msgspec.field(default=None, name="projectHash")
    settings: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="$set")
    rewind: Any = msgspec.field(default=None, name="$rewindTo")


_PROBES: Final = msgspec.json.Decoder(_Probe)
_MESSAGES: Final = msgspec.json.Decoder(_Message)
_PAYLOADS: Final = msgspec.json.Decoder(_Payload)
_DATA: Final = msgspec.json.Decoder(_Data)

_CODEX_LINES: Final = frozenset(
    ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "token_usage_record")
)
_CODEX_ITEMS: Final = frozenset(
    (
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
    ),
)
GEMINI_MESSAGES: Final = frozenset(("user", "gemini", "info", "warning", "error"))
_PI_ROLES: Final = ("toolResult", "bashExecution")
_PI_LINES: Final = frozenset(
    (
        "session",
        "message",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "model_change",
        "thinking_level_change",
        "label",
        "session_info",
    ),
)


def indexed_lines(source: Source) -> Iterator[IndexedLine]:
    """Yield the indexed lines of a file, in order."""
    for item in raw_lines(source):
        if isinstance(item, UnreadableLine):
            yield IndexedLine(item.line, "", why=item.why)
        else:
            yield index_line(*item)


def rows_of(source: Source, marks: Iterable[IndexedLine]) -> Iterator[tuple[int, Row | UnreadableLine]]:
    """Yield the content of the indexed lines, for the second pass. A line of no known format is unreadable here too."""
    kept = list(marks)
    unknown = {mark.line: mark.why for mark in kept if not mark.format}
    for line, row in rows_at(source, [mark.line for mark in kept]):
        if line in unknown and not isinstance(row, UnreadableLine):
            yield line, unknown_row(line, unknown[line], row)
        else:
            yield line, row


def index_line(number: int, raw: bytes) -> IndexedLine:
    """Return the index entry of this line."""
    try:
        return _shape(number, raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        row = decode(number, raw)
    if isinstance(row, UnreadableLine):
        return IndexedLine(number, "", why=row.why)
    return _shape(number, msgspec.json.encode(row))


def _shape(number: int, raw: bytes) -> IndexedLine:
    probe = _PROBES.decode(raw)
    for shape in _SHAPES:
        mark = shape(number, probe)
        if mark is not None:
            return mark
    return IndexedLine(number, "", why="a line of no known format")


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _there(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes > 0


def _is_object(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"{"


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def _corpus(number: int, probe: _Probe) -> IndexedLine | None:
    kind = _word(probe.kind)
    if kind not in ("session", "msg", "event") or probe.uuid is not None:
        return None
    if kind == "session" and not str(probe.schema or "pagein-session/1").startswith("pagein-session/1"):
        why = f"unknown schema {probe.schema!r}; this version reads pagein-session/1"
        return IndexedLine(number, "corpus", "unknown-schema", begins=True, why=why)
    return IndexedLine(
        number,
        "corpus",
        kind,
        id=_word(probe.id),
        role=_word(probe.role),
        begins=kind == "session",
        timed=probe.ts is not None,
    )


def _codex(number: int, probe: _Probe) -> IndexedLine | None:
    kind = _word(probe.type) or ""
    if kind in _CODEX_LINES and _is_object(probe.payload):
        payload = _PAYLOADS.decode(probe.payload)
        inner = _word(payload.type) or ""
        return IndexedLine(
            number,
            "codex",
            kind,
            id=_word(payload.id) if kind == "session_meta" else None,
            parent=_word(payload.forked_from_id) or codex_parent(payload.parent_thread_id, payload.source),
            call=inner,
            role=_word(payload.role),
            model=_word(payload.model) if kind == "turn_context" else None,
            session=str(payload.num_turns) if inner == "thread_rolled_back" else None,
            begins=kind == "session_meta",
            timed=probe.timestamp is not None,
        )
    bare = probe.uuid is None and probe.parent_id is None and not _there(probe.message)
    if kind in _CODEX_ITEMS and bare and probe.session_id is None:
        return IndexedLine(number, "codex", "bare", call=kind, role=_word(probe.role))
    return _bare_codex_header(number, probe) if not kind else None


def _bare_codex_header(number: int, probe: _Probe) -> IndexedLine | None:
    """Return the entry of a first line of rollouts without line types, or of a state record between their items."""
    if _word(probe.id) and _word(probe.timestamp) and _there(probe.instructions):
        return IndexedLine(number, "codex", "bare_meta", id=_word(probe.id), begins=True)
    return IndexedLine(number, "codex", "bare_state") if _word(probe.record_type) else None


def codex_parent(named: object, source: object) -> str | None:
    """Return the thread that started this one as a sub-agent: named directly, or in the source of older versions."""
    if isinstance(named, str):
        return named
    while isinstance(source, dict):
        found = source.get("parent_thread_id")
        if isinstance(found, str):
            return found
        source = source.get("subagent") or source.get("thread_spawn")
    return None


def _pi(number: int, probe: _Probe) -> IndexedLine | None:
    kind = _word(probe.type) or ""
    if probe.uuid is not None or probe.session_id is not None or _there(probe.payload):
        return None
    if kind not in _PI_LINES and not (
        kind and _word(probe.id) and probe.timestamp and isinstance(probe.parent_id, str)
    ):
        return None
    if kind == "message" and not _is_object(probe.message):
        return None
    message = _MESSAGES.decode(probe.message) if kind == "message" else _Message()
    return IndexedLine(
        number,
        "pi",
        kind,
        id=_word(probe.id),
        parent=_word(probe.parent_id),
        role=_word(message.role),
        model=_word(message.model),
        begins=kind == "session",
        timed=probe.timestamp is not None,
        proof=kind == "session" or _word(message.provider) is not None or message.role in _PI_ROLES,
    )


def _claude(number: int, probe: _Probe) -> IndexedLine | None:
    kind = _word(probe.type)
    uuid = _word(probe.uuid)
    if kind is None or (uuid is None and not any(map(_word, (probe.session_id, probe.leaf, probe.snapshot_of)))):
        return None
    message = _MESSAGES.decode(probe.message) if _is_object(probe.message) else _Message()
    return IndexedLine(
        number,
        "claude-code",
        _claude_kind(kind, probe),
        id=uuid,
        parent=_word(probe.parent_uuid) or _word(probe.logical_parent),
        call=(_word(message.id) or _word(probe.request_id)) if kind == "assistant" else None,
        lane=_word(probe.agent_id),
        session=_word(probe.session_id),
        role=_word(message.role),
        model=_word(message.model),
        side=probe.side is True,
        timed=probe.timestamp is not None,
    )


def _claude_kind(kind: str, probe: _Probe) -> str:
    """Return the line's type; user lines are split into prompt, result, meta and summary, and compaction boundaries are
    named.
    """
    if kind == "system" and probe.subtype in ("compact_boundary", "microcompact_boundary"):
        return cast("str", probe.subtype)
    if kind != "user":
        return kind
    if probe.summary is True:
        return "summary-of-compaction"
    if probe.meta is True:
        return "meta"
    if _there(probe.tool_result) or b'"tool_result"' in memoryview(probe.message).tobytes():
        return "result"
    return "prompt"


def _gemini(number: int, probe: _Probe) -> IndexedLine | None:
    """Return the entry of a Gemini CLI line: a record or its beginning, a message, or a change of earlier lines."""
    if _there(probe.settings) or _word(probe.rewind):
        return IndexedLine(number, "gemini-cli", "rewind" if _word(probe.rewind) else "set")
    kind, session = _word(probe.type), _word(probe.session_id)
    if kind is None and session is not None and _word(probe.project):
        whole = memoryview(probe.messages).nbytes > len(b"[]")
        return IndexedLine(number, "gemini-cli", "record" if whole else "head", id=session, begins=True)
    is_message = kind in GEMINI_MESSAGES and _word(probe.id) and probe.timestamp and _there(probe.content)
    if not is_message or probe.uuid is not None or session is not None or _there(probe.message):
        return None
    return IndexedLine(number, "gemini-cli", kind or "", id=_word(probe.id), model=_word(probe.model), timed=True)


def _copilot(number: int, probe: _Probe) -> IndexedLine | None:
    """Return the entry of a Copilot CLI event: a dotted type and its data."""
    kind = _word(probe.type) or ""
    if not _is_object(probe.data) or probe.uuid is not None or ("." not in kind and kind != "abort"):
        return None
    data = _DATA.decode(probe.data)
    return IndexedLine(
        number,
        "copilot-cli",
        kind,
        id=_word(data.session_id) if kind == "session.start" else _word(probe.id),
        parent=_word(data.rewound_to),
        lane=_word(data.parent_call) or _word(probe.agent_id),
        model=_word(data.new_model) or _word(data.selected_model) or _word(data.model),
        begins=kind == "session.start",
        timed=probe.timestamp is not None,
    )


def _requests(number: int, probe: _Probe) -> IndexedLine | None:
    if probe.uuid is not None:
        return None
    holders = (probe.request, probe.request_body, probe.req, probe.body)
    bodies = _is_list(probe.messages) or (_there(probe.input) and probe.model is not None)
    if not bodies and not any(_there(holder) for holder in holders):
        return None
    if _there(probe.info):
        return IndexedLine(number, "opencode", "export", begins=True)
    return IndexedLine(number, "requests", "request", begins=True, timed=probe.timestamp is not None)


_SHAPES: Final = (_corpus, _codex, _gemini, _claude, _copilot, _pi, _requests)

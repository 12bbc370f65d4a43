"""Messages and journal entries as JSON lines, versioned.

Rules of this file
------------------
1. Strict output: only the newest version is written, fields with their default value are omitted, non-finite numbers
   are refused.
2. Lenient input: a line that cannot be understood becomes an `UnreadableLine`, which can be counted and shown. Nothing
   is raised.
3. Every line carries its version. An older line is upgraded one version at a time by `UPGRADES`, then read as the
   newest.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from pagein.errors import BadInput, BadName
from pagein.model.entries import (
    Body,
    CompactionEntry,
    Entry,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    RecallEntry,
    RequestSent,
    Restoration,
)
from pagein.model.json_text import decode_json, encode_each, encode_json
from pagein.model.messages import (
    Block,
    Image,
    Message,
    Other,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnreadableLine,
    Usage,
)
from pagein.model.names import ContentHash

Fields: TypeAlias = dict[str, Any]
Upgrades: TypeAlias = Mapping[int, Callable[[Fields], Fields]]

NEWEST: Final = 1
UPGRADES: Final[Upgrades] = {}
"""Maps a version to the function that upgrades its fields to the next version.

Version 1 is the first, so the map is still empty.
"""

_BLOCKS: Final[Mapping[str, type[Block]]] = {
    "text": Text,
    "thinking": Thinking,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "image": Image,
    "other": Other,
}
_BODIES: Final[Mapping[str, type[Body]]] = {
    "said": MessageEntry,
    "compacted": CompactionEntry,
    "previewed": PreviewEntry,
    "epoch_opened": EpochEntry,
    "inserted": InsertEntry,
    "request_sent": RequestSent,
    "recalled": RecallEntry,
    "noted": NoteEntry,
}
_NAME_OF: Final = {kind: name for name, kind in (*_BLOCKS.items(), *_BODIES.items())}
_EXCERPT: Final = 80


class _Shell(msgspec.Struct):
    """A message without blocks. msgspec cannot distinguish the kinds of blocks."""

    role: Role
    at: float | None = None
    model: str | None = None
    usage: Usage | None = None
    stop: str | None = None
    id: str | None = None


class _Head(msgspec.Struct):
    """The fields of an entry outside the body."""

    id: str
    parent: str | None = None
    at: float | None = None


def encode_message(message: Message) -> bytes:
    """Encode a message as a JSON line, without the newline. Raises BadInput for an infinite or NaN time."""
    return encode_json({"v": NEWEST, **_message_out(message)})


def decode_message(line: bytes) -> Message | UnreadableLine:
    """Decode a line made by `encode_message`."""
    return _decode_as(line, 0, UPGRADES, _message_in)


def encode_entry(entry: Entry) -> bytes:
    """Encode a journal entry as a JSON line, without the newline. Raises BadInput for an infinite or NaN time."""
    return encode_json(_entry_out(entry))


def encode_entries(entries: Iterable[Entry]) -> list[bytes]:
    """Encode journal entries, each as `encode_entry` does."""
    return encode_each([_entry_out(entry) for entry in entries])


def decode_entry(line: bytes, number: int = 0, upgrades: Upgrades = UPGRADES) -> Entry | UnreadableLine:
    """Decode a line made by `encode_entry`.

    number: line number in the file, for the report.
    """
    return _decode_as(line, number, upgrades, _entry_in)


def encode_body(body: Body) -> bytes:
    """Encode the body of an entry without its place in the tree: the canonical form from which entry ids are derived."""
    return encode_json({"v": NEWEST, **_body_out(body)})


# --- out ---------------------------------------------------------------------------------------------------------


def _entry_out(entry: Entry) -> Fields:
    head: Fields = {"v": NEWEST, "id": entry.id}
    if entry.parent is not None:
        head["parent"] = entry.parent
    if entry.at is not None:
        head["at"] = _finite(entry.at)
    return {**head, **_body_out(entry.body)}


def _message_out(message: Message) -> Fields:
    out: Fields = {"role": message.role, "blocks": [_block_out(block) for block in message.blocks]}
    if message.at is not None:
        out["at"] = _finite(message.at)
    for name in ("model", "stop", "id"):
        value = getattr(message, name)
        if value is not None:
            out[name] = value
    if message.usage is not None:
        out["usage"] = _plain(message.usage)
    return out


def _block_out(block: Block) -> Fields:
    return {"type": _NAME_OF[type(block)], **_plain(block)}


def _body_out(body: Body) -> Fields:
    match body:
        case MessageEntry():
            said: Fields = {"entry": "said", "message": _message_out(body.message)}
            if body.result_tokens:
                said["result_tokens"] = list(body.result_tokens)
            return {**said, "tokens": body.tokens} if body.tokens else said
        case PreviewEntry():
            return {"entry": "previewed", "paged": [_paged_out(one) for one in body.paged]}
        case EpochEntry():
            paged = [_paged_out(one) for one in body.paged]
            opened: Fields = {"entry": "epoch_opened", "number": body.number, "frontier": body.frontier, "paged": paged}
            if body.restored:
                opened["restored"] = [_plain(one) for one in body.restored]
            if body.thought is not None:
                opened["thought"] = {**_plain(body.thought), "content": body.thought.content.hex}
            if body.turns:
                opened["turns"] = [{**_plain(one), "content": one.content.hex} for one in body.turns]
            return {**opened, "reason": body.reason} if body.reason else opened
        case _:
            return {"entry": _NAME_OF[type(body)], **_plain(body)}


def _paged_out(one: PagedOut) -> Fields:
    return {**_plain(one), "content": one.content.hex}


def _plain(value: Any) -> Fields:  # noqa: ANN401 -- any of the model's dataclasses
    """The fields of a dataclass as plain values, without fields at their default."""
    out: Fields = {}
    for name, default in _fields_of(type(value)):
        held = getattr(value, name)
        if held is not default and held != default:
            out[name] = msgspec.to_builtins(held) if isinstance(held, tuple) or hasattr(held, "__slots__") else held
    return out


_FIELDS: dict[type, tuple[tuple[str, object], ...]] = {}


def _fields_of(kind: Any) -> tuple[tuple[str, object], ...]:  # noqa: ANN401 -- a dataclass type
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple((field.name, field.default) for field in fields(kind))
    return found


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise BadInput(f"a time must be a finite number of seconds, not {number}")
    return number


# --- in ----------------------------------------------------------------------------------------------------------


_Built = TypeVar("_Built")


def _decode_as(
    line: bytes, number: int, upgrades: Upgrades, build: Callable[[Fields], _Built]
) -> _Built | UnreadableLine:
    try:
        raw = decode_json(line)
        if not isinstance(raw, dict):
            return UnreadableLine(number, "not a JSON object", _excerpt(line))
        return build(_upgrade(raw, upgrades))
    except (KeyError, TypeError, ValueError, RecursionError, BadName) as problem:
        return UnreadableLine(number, f"{type(problem).__name__}: {problem}", _excerpt(line))


def _upgrade(raw: Fields, upgrades: Upgrades) -> Fields:
    version = raw["v"]
    while version != NEWEST:
        if version not in upgrades:
            raise ValueError(f"version {version!r}; this pagein reads up to {NEWEST}")
        raw = upgrades[version](raw)
        if raw["v"] == version:
            raise ValueError(f"the step from version {version!r} leads nowhere")
        version = raw["v"]
    return raw


def _message_in(raw: Fields) -> Message:
    if not isinstance(raw["blocks"], list):
        raise TypeError("blocks is not a list")
    known = {name: raw[name] for name in ("role", "at", "model", "usage", "stop", "id") if name in raw}
    shell = msgspec.convert(known, type=_Shell)
    blocks = tuple(_block_in(block) for block in raw["blocks"])
    return Message(shell.role, blocks, shell.at, shell.model, shell.usage, shell.stop, shell.id)


def _block_in(raw: Fields) -> Block:
    return msgspec.convert(raw, type=_BLOCKS[raw["type"]])


def _entry_in(raw: Fields) -> Entry:
    head = msgspec.convert(raw, type=_Head)
    return Entry(head.id, head.parent, _body_in(raw), head.at)


def _body_in(raw: Fields) -> Body:
    match raw["entry"]:
        case "said":
            tokens = msgspec.convert(raw.get("result_tokens", ()), type=tuple[int, ...])
            return MessageEntry(_message_in(raw["message"]), tokens, msgspec.convert(raw.get("tokens", 0), type=int))
        case "previewed":
            return PreviewEntry(tuple(_paged_in(one) for one in raw["paged"]))
        case "epoch_opened":
            paged = tuple(_paged_in(one) for one in raw["paged"])
            restored = msgspec.convert(raw.get("restored", ()), type=tuple[Restoration, ...])
            turns = tuple(_with_content(one) for one in raw.get("turns", ()))
            known = {
                **raw,
                "paged": paged,
                "restored": restored,
                "thought": _thought_in(raw.get("thought")),
                "turns": turns,
            }
            return msgspec.convert(known, type=EpochEntry)
        case kind:
            return msgspec.convert(raw, type=_BODIES[kind])


def _paged_in(raw: Fields) -> PagedOut:
    name = ContentHash.parse(raw["content"])
    return msgspec.convert({**raw, "content": {"hex": name.hex}}, type=PagedOut)


def _thought_in(raw: Fields | None) -> Fields | None:
    return None if raw is None else _with_content(raw)


def _with_content(raw: Fields) -> Fields:
    return {**raw, "content": {"hex": ContentHash.parse(raw["content"]).hex}}


def _excerpt(line: bytes) -> str:
    return line[:_EXCERPT].decode("utf-8", "replace")

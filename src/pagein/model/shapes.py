"""Drafts of the objects made by pagein itself.

Large or growing data (arguments, turns, the sets of a session) is in additional fields. Metadata queries do not read
them, and a new version costs only what changed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pagein.errors import BadInput
from pagein.model.chats import ChatCall, ChatTurn, turns_as_text, turns_to_value
from pagein.model.json_text import decode_json
from pagein.model.messages import Image, ToolCall, ToolResult
from pagein.model.references import Reference
from pagein.model.values import Value, canonical, frozen
from pagein.model.versions import Draft, Provenance

_SUFFIXES: Final = (
    ("markdown", "md markdown"),
    ("python", "py pyi"),
    ("typescript", "ts tsx mts cts"),
    ("javascript", "js jsx mjs cjs"),
    ("yaml", "yaml yml"),
    ("shell", "sh bash zsh"),
    ("c", "c h"),
    ("c++", "cc cpp cxx hh hpp"),
    ("c#", "cs"),
    ("rust", "rs"),
    ("ruby", "rb"),
    ("kotlin", "kt"),
    *((name, name) for name in ("json", "toml", "html", "css", "sql", "go", "java", "php", "swift", "xml")),
)
_TYPE_OF: Final[Mapping[str, str]] = {suffix: name for name, suffixes in _SUFFIXES for suffix in suffixes.split()}
_LONGEST_ARGS: Final = 200


def file_type(path: str, *, binary: bool = False) -> str:
    """The type of a file by name: `binary` for a file without text, `text` for an unknown suffix."""
    name = path.replace("\\", "/").rpartition("/")[2]
    _, dot, suffix = name.rpartition(".")
    return "binary" if binary else _TYPE_OF.get(suffix.lower() if dot else "", "text")


def file_draft(
    object_id: str,
    path: str,
    content: str | None,
    *,
    generator: str = "agent",
    unread: bool = False,
    type_: str = "file",
) -> Draft:
    """Draft a file object, or with the type `note` a note.

    content: None for a file without text, and for a file that was not read.
    unread: only the name of the file is known; this draft must not replace a version with content.
    """
    metadata: dict[str, Value] = {"path": path, "file_type": file_type(path, binary=content is None and not unread)}
    if unread:
        metadata["unread"] = True
    return Draft(id=object_id, type=type_, content=content, metadata=metadata, provenance=Provenance(path, generator))


def toolcall_draft(
    call: ToolCall, result: ToolResult, *, chat: Reference | None = None, files: Sequence[Reference] = ()
) -> Draft:
    """Draft a tool call object with the output, under the provider's id. Empty output is content, not null."""
    args = _arguments(call.arguments)
    metadata: dict[str, object] = {
        "tool": call.name,
        "args_display": _shorten(call.arguments if isinstance(args, str) else canonical(args)),
        "status": "fail" if result.is_error else "ok",
    }
    if chat is not None:
        metadata["chat_ref"] = chat
    if files:
        metadata["file_refs"] = tuple(files)
    additional: dict[str, object] = {"args": args}
    if result.images:
        additional["images"] = [_image(image) for image in result.images]
    origin = Provenance("toolcall", "tool")
    return Draft(
        id=call.id, type="toolcall", content=result.text, metadata=metadata, additional=additional, provenance=origin
    )


def chat_draft(object_id: str, session: Reference, turns: Sequence[ChatTurn]) -> Draft:
    """Draft a chat object for the conversation so far. The content is for people; the turns are the data."""
    calls = tuple(step.object for turn in turns for step in turn.steps if isinstance(step, ChatCall))
    metadata = {"session_ref": session, "turn_count": len(turns)}
    additional = {"turns": turns_to_value(turns), "toolcall_refs": calls}
    return Draft(
        id=object_id,
        type="chat",
        content=turns_as_text(turns),
        metadata=metadata,
        additional=additional,
        provenance=Provenance(session.target, "system"),
    )


def session_draft(
    object_id: str,
    session_id: str,
    harness: str,
    *,
    chat: Reference | None = None,
    sets: Mapping[str, Sequence[str]] | None = None,
) -> Draft:
    """Draft a session object.

    session_id: the host's own id.
    sets: ids of the objects in `active_set`, `inactive_set`, `pinned_set`.
    """
    metadata: dict[str, object] = {"session_id": session_id, "harness": harness}
    if chat is not None:
        metadata["chat_ref"] = chat
    additional = {name: tuple(map(Reference, ids)) for name, ids in (sets or {}).items()}
    origin = Provenance(session_id, "system")
    return Draft(id=object_id, type="session", metadata=metadata, additional=additional, provenance=origin)


def text_draft(
    object_id: str, type_: str, content: str, *, origin: str, generator: str, nickname: str | None = None
) -> Draft:
    """Draft a text object: a system prompt, a long text of the user (`user`), or an artifact of the agent."""
    return Draft(
        id=object_id, type=type_, content=content, nickname=nickname, provenance=Provenance(origin, generator)
    )  # fmt: skip


def _arguments(text: str) -> Value:
    """Arguments as structured values, or as text for JSON outside the limits of a value."""
    try:
        return frozen(decode_json(text.encode("utf-8", "surrogatepass")), "/additional/args")
    except (ValueError, RecursionError, BadInput):
        return text


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_ARGS else text[: _LONGEST_ARGS - 1] + "…"


def _image(image: Image) -> dict[str, object]:
    return {"media_type": image.media_type, "size": image.size, "data": image.data}

"""Drafts of the objects made by pagein itself.

Large or growing data (arguments, turns, the sets of a session) is in additional fields. Metadata queries do not read
them, and a new version costs only what changed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pagein.errors import BadInput
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


def text_draft(object_id: str, type_: str, content: str, *, origin: str, generator: str) -> Draft:
    """Draft a text object: a system prompt, a long text of the user (`user`), or an artifact of the agent."""
    return Draft(id=object_id, type=type_, content=content, provenance=Provenance(origin, generator))


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

"""Recall and ingest in the journal: `NoteEntry` values of kinds `recall` and `ingested`.

A `recall` names the objects that a tool recalled, whole or in parts, and the call. The recently recalled objects are
folded from it. An `ingested` records that a file was put into the store for the session, so that it counts among the
session's objects.
"""

from dataclasses import dataclass
from typing import Any, Final

from pagein.errors import BadName
from pagein.model.entries import Body, NoteEntry
from pagein.model.json_text import decode_json, encode_json
from pagein.model.names import ContentHash

RECALL: Final = "recall"
INGESTED: Final = "ingested"


@dataclass(frozen=True, slots=True)
class RecallNote:
    """Objects recalled by a tool.

    tool: name of the tool.
    call_id: id of the call whose result shows the objects; "" without such a call.
    hints: lines of pagein's own below the shown part.
    """

    tool: str
    objects: tuple[str, ...]
    call_id: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestNote:
    """A file stored without entering the window.

    path: path key of the file.
    content: hash of its bytes.
    """

    object_id: str
    path: str
    content: ContentHash
    tokens: int
    chars: int
    description: str


@dataclass(frozen=True, slots=True)
class ObjectMatch:
    """A match in the text of an object.

    offset: place of the match in the text, in characters.
    context: the match with the text around it.
    """

    object_id: str
    offset: int
    matched: str
    context: str


def recall_note(recall: RecallNote) -> str:
    """Encode the data of a `recall` entry."""
    fields: dict[str, object] = {"tool": recall.tool, "objects": list(recall.objects)}
    if recall.call_id:
        fields["call_id"] = recall.call_id
    if recall.hints:
        fields["hints"] = list(recall.hints)
    return encode_json(fields).decode()


def recall_of(body: Body) -> RecallNote | None:
    """Decode the recall in an entry. None for an entry of a different kind or with unknown data."""
    match _fields(body, RECALL):
        case {"tool": str(tool), "objects": [*objects], **rest}:
            hints = rest.get("hints")
            shown = tuple(str(one) for one in hints) if isinstance(hints, list) else ()
            return RecallNote(tool, tuple(str(one) for one in objects), str(rest.get("call_id", "")), shown)
    return None


def encode_ingest(one: IngestNote) -> str:
    """Encode the data of an `ingested` entry.

    Path and content have the same names as in records of reads, so an export treats them alike.
    """
    return encode_json(
        {
            "object_id": one.object_id,
            "pathKey": one.path,
            "servedHash": one.content.hex,
            "tokens": one.tokens,
            "chars": one.chars,
            "description": one.description,
        }
    ).decode()


def ingest_note_of(body: Body) -> IngestNote | None:
    """Decode the ingested file in an entry. None for an entry of a different kind or with unknown data."""
    match _fields(body, INGESTED):
        case {
            "object_id": str(object_id),
            "pathKey": str(path),
            "servedHash": str(content),
            "tokens": int(tokens),
            "chars": int(chars),
            "description": str(description),
        }:
            try:
                return IngestNote(object_id, path, ContentHash.parse(content), tokens, chars, description)
            except BadName:
                return None
    return None


def _fields(body: Body, kind: str) -> Any:  # noqa: ANN401  whatever JSON it is
    if not isinstance(body, NoteEntry) or body.kind != kind:
        return None
    try:
        return decode_json(body.data.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None

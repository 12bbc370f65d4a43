"""Recall and ingest as the journal keeps them: `Noted` entries of kinds `recall` and `ingested`.

A `recall` says which objects a tool brought back, whole or in parts, and by which call; so what is warm can be folded from
the branch. An `ingested` says that a file was put into the store for the session, so that it counts among its objects.
"""

from dataclasses import dataclass
from typing import Any, Final

from pagein.errors import BadName
from pagein.model.codec import decode_json, encode_json
from pagein.model.entries import Body, NoteEntry
from pagein.model.names import ContentHash

RECALL: Final = "recall"
INGESTED: Final = "ingested"


@dataclass(frozen=True, slots=True)
class RecallNote:
    """Objects that a tool brought back. tool: its name. call_id: the call whose result shows them, "" where it has none.

    hints: lines of ours that stood below the part that was shown.
    """

    tool: str
    objects: tuple[str, ...]
    call_id: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestNote:
    """A file that was stored without being read into the window. path: its key. content: the hash of its bytes."""

    object_id: str
    path: str
    content: ContentHash
    tokens: int
    chars: int
    description: str


@dataclass(frozen=True, slots=True)
class ObjectMatch:
    """A match in the text of an object. offset: its place there, in characters. context: the match with what stands around it."""

    object_id: str
    offset: int
    matched: str
    context: str


def recall_note(recall: RecallNote) -> str:
    """The data of a `recall` entry."""
    fields: dict[str, object] = {"tool": recall.tool, "objects": list(recall.objects)}
    if recall.call_id:
        fields["call_id"] = recall.call_id
    if recall.hints:
        fields["hints"] = list(recall.hints)
    return encode_json(fields).decode()


def recall_of(body: Body) -> RecallNote | None:
    """What an entry says was recalled by a tool; None where it says nothing of it, or cannot be understood."""
    match _fields(body, RECALL):
        case {"tool": str(tool), "objects": [*objects], **rest}:
            hints = rest.get("hints")
            shown = tuple(str(one) for one in hints) if isinstance(hints, list) else ()
            return RecallNote(tool, tuple(str(one) for one in objects), str(rest.get("call_id", "")), shown)
    return None


def encode_ingest(one: IngestNote) -> str:
    """The data of an `ingested` entry. It names path and content as records of reads do, so that an export can tell them alike."""
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
    """The file that an entry says was ingested; None where it says nothing of one, or cannot be understood."""
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

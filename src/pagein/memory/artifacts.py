"""Artifacts: answers stored by `extract` as objects, with provenance."""

from dataclasses import replace
from typing import Final

from pagein.errors import BadInput, BadName, MissingBlob
from pagein.memory.object_writer import Cause, ObjectWriter
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.names import ContentHash
from pagein.model.object_names import request_name
from pagein.model.references import Reference
from pagein.model.shapes import text_draft
from pagein.model.versions import Draft, Provenance

_QUOTES: Final = 20
"""Quotes that an artifact names. The journal's note has all."""


def save_artifact(writer: ObjectWriter, note: ChildResultNote, cause: Cause) -> None:
    """Write the artifact of an answer, under the id in the note. Nothing if its text is gone, or for a damaged note. Raises StoreError."""
    try:
        text = writer.store.get(ContentHash.parse(note.content)).decode("utf-8", "surrogatepass")
        draft = _draft(note, text, cause.session)
    except (MissingBlob, BadName, BadInput):
        return
    writer.write(request_name("artifact", cause.session, cause.entry), draft, cause)


def _draft(note: ChildResultNote, text: str, session: str) -> Draft:
    parents = tuple(Reference(one, relation="derived_from") for one in note.references)
    metadata = {
        "title": note.title,
        "text_id": note.object_id,
        "model": note.model,
        "session_id": session,
        "targets": note.targets,
        **({"confidence": note.confidence} if note.confidence else {}),
        **({"evidence": tuple(one.says for one in note.evidence[:_QUOTES])} if note.evidence else {}),
        "target_refs": parents,
    }
    draft = text_draft(note.artifact, "artifact", text, origin=note.call, generator="agent")
    return replace(draft, metadata=metadata, provenance=Provenance(note.call, "agent", parents))

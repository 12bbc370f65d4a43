"""Artifacts: the answers that `extract` keeps as objects, with what they were made from."""

from dataclasses import replace

from pagein.errors import BadName, MissingBlob
from pagein.memory.object_names import request_name
from pagein.memory.object_writer import Cause, ObjectWriter
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.shapes import text_draft
from pagein.model.versions import Provenance


def save_artifact(writer: ObjectWriter, note: ChildResultNote, cause: Cause) -> None:
    """Write the artifact of an answer, under the answer's own id. Nothing if its text is gone. Raises StoreError."""
    try:
        text = writer.store.get(ContentHash.parse(note.content)).decode("utf-8", "surrogatepass")
    except (MissingBlob, BadName):
        return
    draft = text_draft(note.object_id, "artifact", text, origin=note.call, generator="agent")
    parents = tuple(Reference(one, relation="derived_from") for one in note.references)
    metadata = {
        "title": note.title,
        "model": note.model,
        "session_id": cause.session,
        "targets": note.targets,
        "target_refs": parents,
    }
    draft = replace(draft, metadata=metadata, provenance=Provenance(note.call, "agent", parents))
    writer.write(request_name("artifact", cause.session, cause.entry), draft, cause)

"""Recall evicted texts by their ids, from the store alone: a command that does only this starts without the engine."""

from pagein.errors import BadName, MissingBlob, NotRecallable
from pagein.model.objects import ObjectId
from pagein.ports import BlobStore


class EvictedTexts:
    """The evicted texts of a workspace."""

    def __init__(self, blobs: BlobStore, workspace: str) -> None:
        self._blobs = blobs
        self._workspace = workspace

    def recall(self, object_id: str) -> str:
        """Return the exact text that was evicted under this id. Raises NotRecallable with the reason, or StoreError."""
        try:
            name = ObjectId.parse(object_id.strip())
        except BadName as problem:
            raise NotRecallable(str(problem)) from problem
        stored = self._blobs.find(name)
        if stored is None:
            raise NotRecallable(self._why_unknown(name))
        if stored.workspace != self._workspace:
            raise NotRecallable(f"{name} belongs to another workspace; recall it from a session there")
        try:
            content = self._blobs.get(stored.content)
        except MissingBlob as problem:
            raise NotRecallable(f"{name} has expired: its content is no longer kept") from problem
        return text_of(content)

    def is_made_here(self, name: ObjectId) -> bool:
        """Return whether this store made an id. Raises StoreError."""
        return name.is_made_with(self._blobs.secret())

    def _why_unknown(self, name: ObjectId) -> str:
        if self.is_made_here(name):
            return f"{name} has expired: this store made it and no longer keeps it"
        if self._blobs.elsewhere(name):
            return f"{name} belongs to another workspace; recall it from a session there"
        return f"{name} never existed in this store"


def bytes_of(text: str) -> bytes:
    """Encode a text for the store. Lone surrogates, which some clients produce, survive."""
    return text.encode("utf-8", "surrogatepass")


def text_of(content: bytes) -> str:
    """Decode a text that `bytes_of` encoded."""
    return content.decode("utf-8", "surrogatepass")

"""Objects: paged-out content under an id that only this store can have made.

An id is `pg-<8 hex>-<8 hex>`. The first half names what was paged out (content, session and call), the second is a
tag keyed with the secret of the store. The same content, session and call give the same id again; an id that somebody
else wrote into a tool result fails the tag and is text like any other (law 8).
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final, Self

from pagein.errors import BadName
from pagein.model.names import ContentHash

_ID = re.compile(r"pg-([0-9a-f]{8})-([0-9a-f]{8})")
_HALF = 8
EXPIRED: Final = "expired"
"""The kind of an object whose content was given up by retention, and of which only the record is left."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a piece of content stood: the session, and the tool call that it answered."""

    session: str
    call_id: str


@dataclass(frozen=True, slots=True, order=True)
class ObjectId:
    """The id of one object. Made by `of` (from content and origin) or `parse` (from text)."""

    text: str

    @classmethod
    def of(cls, content: ContentHash, origin: Origin, secret: bytes, attempt: int = 0) -> Self:
        """Name this content at this origin. `secret` is that of the store which keeps it.

        attempt: 0, and one more each time that the id turned out to be taken by something else.
        """
        parts = (content.hex, origin.session, origin.call_id, str(attempt))
        # Lengths stand in front, so that no two lists of parts have the same canonical form.
        canonical = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
        name = hashlib.sha256(canonical).hexdigest()[:_HALF]
        return cls(f"pg-{name}-{_tag(name, secret)}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an id. Raises BadName on anything that has not its shape; says nothing of who made it (`made_with`)."""
        if not _ID.fullmatch(text):
            raise BadName(f"not an object id: {text[:40]!r}; expected the form pg-01234567-89abcdef")
        return cls(text)

    def is_made_with(self, secret: bytes) -> bool:
        """Whether the store with this secret made the id, as far as 32 bits can tell."""
        _, name, tag = self.text.split("-")
        return hmac.compare_digest(tag, _tag(name, secret))

    def __str__(self) -> str:
        return self.text


def object_ids_in(text: str) -> list[str]:
    """What looks like the id of an object in a text, in order. Says nothing of who made it."""
    return [found[0] for found in _ID.finditer(text)]


def _tag(name: str, secret: bytes) -> str:
    return hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()[:_HALF]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What the store knows of an object besides its bytes.

    kind: what it is, `toolcall` for the result of a tool call. tokens: the estimate that its stub shows. chars: length of its text.
    workspace: whose it is; another workspace's object is not recalled.
    """

    id: ObjectId
    content: ContentHash
    kind: str
    workspace: str
    origin: Origin
    description: str
    tokens: int
    chars: int

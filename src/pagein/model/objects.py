"""Objects: evicted content under an unforgeable id of the store.

An id is `pg-<8 hex>-<8 hex>`. The first half names the evicted content (its hash, session and call), the second is a
tag keyed with the secret of the store. The same content, session and call always have the same id. A forged id in a
tool result fails the tag check and is treated as plain text (law 8).
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
"""The kind of an object after retention removed its content. Only the record is left."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a piece of content: the session, and the tool call with this result."""

    session: str
    call_id: str


@dataclass(frozen=True, slots=True, order=True)
class ObjectId:
    """The id of an object. Made by `of` (from content and origin) or `parse` (from text)."""

    text: str

    @classmethod
    def of(cls, content: ContentHash, origin: Origin, secret: bytes, attempt: int = 0) -> Self:
        """Make the id for content at an origin.

        secret: of the store that holds the content.
        attempt: 0, plus 1 for each collision with the id of a different object.
        """
        parts = (content.hex, origin.session, origin.call_id, str(attempt))
        # Lengths stand before the parts, so that two different lists of parts never have the same canonical form.
        canonical = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
        name = hashlib.sha256(canonical).hexdigest()[:_HALF]
        return cls(f"pg-{name}-{_tag(name, secret)}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an id. Raises BadName for a malformed text. Does not verify the store's tag; see `is_made_with`."""
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
    """Find every text with the form of an object id, in order. The tags are not verified."""
    return [found[0] for found in _ID.finditer(text)]


def _tag(name: str, secret: bytes) -> str:
    return hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()[:_HALF]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The store's record of an object, without the content.

    kind: kind of content, `toolcall` for the result of a tool call.
    workspace: owner of the object; it cannot be recalled from a different workspace.
    tokens: the estimate shown in the stub.
    chars: length of the text.
    """

    id: ObjectId
    content: ContentHash
    kind: str
    workspace: str
    origin: Origin
    description: str
    tokens: int
    chars: int

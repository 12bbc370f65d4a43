"""Content hashes. A validating constructor makes each value, so a malformed hash cannot exist."""

import hashlib
import re
from dataclasses import dataclass
from typing import Self

from pagein.errors import BadName

_HEX64 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class ContentHash:
    """The sha256 of some bytes, as 64 hexadecimal digits. Made by `of` (from bytes) or `parse` (from text)."""

    hex: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Hash some bytes."""
        return cls(hashlib.sha256(content).hexdigest())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form of a hash. Raises BadName for any malformed text."""
        if not _HEX64.fullmatch(text):
            raise BadName(f"not a content hash: {text[:20]!r}; expected 64 hexadecimal digits")
        return cls(text)

    def __str__(self) -> str:
        return self.hex

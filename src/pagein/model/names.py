"""Names of things. Each is made by a named maker, so an ill-formed one cannot exist."""

import hashlib
import re
from dataclasses import dataclass
from typing import Self

from pagein.errors import BadName

_HEX64 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class ContentHash:
    """sha256 of some bytes, as 64 hexadecimal digits. Made by `of` (from bytes) or `parse` (from text)."""

    hex: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Name these bytes."""
        return cls(hashlib.sha256(content).hexdigest())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name that was written with `str`. Raises BadName on anything else."""
        if not _HEX64.fullmatch(text):
            raise BadName(f"not a content hash: {text[:20]!r}; expected 64 hexadecimal digits")
        return cls(text)

    def __str__(self) -> str:
        return self.hex

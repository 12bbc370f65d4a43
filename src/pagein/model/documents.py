"""A file as it was at one moment: its bytes, and the text in them."""

from dataclasses import dataclass
from typing import Self

from pagein.model.names import ContentHash


@dataclass(frozen=True, slots=True)
class Document:
    """What one reading of a file found.

    content: the bytes, read once; `hash` is theirs.
    text: decoded as UTF-8. A byte order mark stays; bytes that are no UTF-8 become U+FFFD and `strict` is False.
    key: canonical real path, the name under which the branch knows the file. path: where it was asked for.
    media_type: that of an image by its first bytes, else None.
    """

    path: str
    key: str
    content: bytes
    hash: ContentHash
    text: str
    strict: bool
    media_type: str | None = None

    @classmethod
    def of(cls, content: bytes, *, path: str, key: str, media_type: str | None = None) -> Self:
        """Decode and name these bytes. An image is not decoded."""
        if media_type is not None:
            return cls(path, key, content, ContentHash.of(content), "", strict=False, media_type=media_type)
        try:
            text, strict = content.decode(), True
        except UnicodeDecodeError:
            text, strict = content.decode(errors="replace"), False
        return cls(path, key, content, ContentHash.of(content), text, strict, media_type)

    @property
    def lines(self) -> list[str]:
        r"""The text split at line feeds alone, as the host counts: `a\n` has two lines, an empty file one."""
        return self.text.split("\n")

    @property
    def is_text(self) -> bool:
        """Whether the file is exactly its text, so that lines of it may be known, compared and stored."""
        return self.strict and self.media_type is None


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """The file that a call means, found but not yet read.

    given: the path as the call wrote it, without a line suffix. absolute: where it is or would be.
    key: canonical real path, its one name on the branch. offset, limit: as the call gave them, or as its suffix says.
    excluded: its content must not be stored (law 9).
    """

    given: str
    absolute: str
    key: str
    offset: float | None = None
    limit: float | None = None
    excluded: bool = False

"""The bytes and the text of a file at one moment."""

from dataclasses import dataclass, field
from typing import Self

from pagein.model.names import ContentHash


@dataclass(frozen=True, slots=True)
class Document:
    """The result of reading a file once.

    content: the bytes. `hash` is their hash.
    text: decoded as UTF-8. A byte order mark stays; bytes that are not UTF-8 become U+FFFD and `strict` is False.
    key: canonical real path, the name of the file on the branch.
    path: the path as it was requested.
    media_type: of an image, by its first bytes; None for any other file.
    """

    path: str
    key: str
    content: bytes
    hash: ContentHash
    text: str
    strict: bool
    media_type: str | None = None
    _lines: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, content: bytes, *, path: str, key: str, media_type: str | None = None) -> Self:
        """Decode and hash the bytes of a file. An image is not decoded."""
        if media_type is not None:
            return cls(path, key, content, ContentHash.of(content), "", strict=False, media_type=media_type)
        try:
            text, strict = content.decode(), True
        except UnicodeDecodeError:
            text, strict = content.decode(errors="replace"), False
        return cls(path, key, content, ContentHash.of(content), text, strict, media_type)

    @property
    def lines(self) -> list[str]:
        r"""The text split at line feeds only, as the host counts: `a\n` has two lines, an empty file has one.

        Split once, because one read asks for the lines of a large file several times. Do not change the list.
        """
        if not self._lines:
            self._lines[:] = self.text.split("\n")
        return self._lines

    @property
    def is_text(self) -> bool:
        """Whether the bytes are exactly the text. Only then may lines of the file be known, compared and stored."""
        return self.strict and self.media_type is None


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """The file named by a call, located but not yet read.

    given: the path as the call wrote it, without a line suffix.
    absolute: the absolute path of the file, whether it exists or not.
    key: canonical real path, the only name of the file on the branch.
    offset, limit: as the call or the suffix of its path gave them.
    excluded: the content must not be stored (law 9).
    """

    given: str
    absolute: str
    key: str
    offset: float | None = None
    limit: float | None = None
    excluded: bool = False

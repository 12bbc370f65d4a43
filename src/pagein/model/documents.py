"""The bytes and the text of a file at one moment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self, overload

from pagein.model.names import ContentHash


class TextLines(Sequence[str]):
    r"""The lines of a text, split at line feeds only: `a\n` has two lines, an empty text has one.

    The text is split as far as lines are asked for: the first page of a large file costs no split of the rest.
    """

    __slots__ = ("_count", "_split", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._count = text.count("\n") + 1
        self._split: list[str] = []

    def __len__(self) -> int:
        """Return the number of lines."""
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return a line, or a list of lines."""
        if isinstance(place, slice):
            start, stop, step = place.indices(self._count)
            return self._up_to(stop)[start:stop:step] if step > 0 else self._up_to(self._count)[place]
        return self._up_to(place + 1 if place >= 0 else self._count)[place]

    def __iter__(self) -> Iterator[str]:
        """Return all lines, one after the other."""
        return iter(self._up_to(self._count))

    def joined(self, start: int, stop: int) -> str:
        """Return the text of the lines from one place to another, without what the last one ends with."""
        if stop < self._count:
            return "\n".join(self[start:stop])
        return self._text[sum(map(len, self[:start])) + start :] if start < stop else ""

    def begun(self, start: int, stop: int, room: int) -> list[str]:
        """Return the lines from one place to another, at the beginning of the text without a split of the rest: there they
        end with the first line that no longer fits into `room` characters, and that line may be cut.
        """
        if start == 0 and not self._split:
            return self._text[: room + 1].split("\n", stop)[:stop]
        return self[start:stop]

    def _up_to(self, stop: int) -> list[str]:
        """Return the lines of which these many are split, or more."""
        if len(self._split) < min(stop, self._count):
            if stop > self._count // 2:
                self._split = self._text.split("\n")
            else:
                self._split = self._text.split("\n", stop)[:stop]
        return self._split


@dataclass(frozen=True, slots=True)
class Document:
    """The result of reading a file once.

    content: the bytes.
    text: decoded as UTF-8. A byte order mark stays; bytes that are not UTF-8 become U+FFFD and `strict` is False.
    key: canonical real path, the name of the file on the branch.
    path: the path as it was requested.
    media_type: of an image, by its first bytes; None for any other file.
    """

    path: str
    key: str
    content: bytes
    text: str
    strict: bool
    media_type: str | None = None
    _hashes: list[ContentHash] = field(default_factory=list, init=False, repr=False, compare=False)
    _lines: list[TextLines] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, content: bytes, *, path: str, key: str, media_type: str | None = None) -> Self:
        """Decode the bytes of a file. An image is not decoded."""
        if media_type is not None:
            return cls(path, key, content, "", strict=False, media_type=media_type)
        try:
            text, strict = content.decode(), True
        except UnicodeDecodeError:
            text, strict = content.decode(errors="replace"), False
        return cls(path, key, content, text, strict, media_type)

    @property
    def hash(self) -> ContentHash:
        """The hash of the bytes. Computed when it is first asked for."""
        if not self._hashes:
            self._hashes.append(ContentHash.of(self.content))
        return self._hashes[0]

    @property
    def lines(self) -> TextLines:
        """The lines of the text, as the host counts them. Split once, because one read asks for them several times."""
        if not self._lines:
            self._lines.append(TextLines(self.text))
        return self._lines[0]

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

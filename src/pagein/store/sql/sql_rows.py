"""What the statements of the store run on: a connection as SQLite has it, which PostgreSQL is made to look like.

Statements are written once, with `?` for values, in the SQL that both understand. Texts that a database refuses (lone surrogates in
SQLite, NUL too in PostgreSQL) are kept escaped: `kept` and `given` are each other's inverse.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

Row = tuple[Any, ...]
_AWKWARD: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(\\|u[0-9a-f]{4})")


class Answers(Protocol):
    """The rows that a statement gave."""

    def fetchone(self) -> Row | None:
        """The next row."""
        ...

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        ...


class Rows(Protocol):
    """A connection to run statements on."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Answers:
        """Run one statement."""
        ...


class SqlDatabase(Protocol):
    """A database that several threads share. Whatever it or the disk raises comes out as StoreError."""

    def open_reader(self) -> AbstractContextManager[Rows]:
        """A connection, for queries; within `writing` of the same thread that one's."""
        ...

    def open_writer(self) -> AbstractContextManager[Rows]:
        """A connection inside a transaction, while nobody else writes. Committed at the end, undone on any exception.

        Within another one of the same thread it is part of that one: undone alone where it fails, and kept only with it.
        """
        ...

    def close(self) -> None:
        """Let go of everything. Later uses raise StoreError."""
        ...


class OnDatabase:
    """What the parts of a SQL store share."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._database.open_writer():
            yield

    def close(self) -> None:
        self._database.close()


def encode_text(text: str) -> str:
    r"""A text as it is kept: backslashes doubled, NUL and lone surrogates as `\uXXXX`. What begins alike stays so."""
    return _AWKWARD.sub(_escape, text)


def decode_text(text: str) -> str:
    """The text that was kept."""
    return _ESCAPED.sub(_unescape, text) if "\\" in text else text


def _escape(match: re.Match[str]) -> str:
    return "\\\\" if match[0] == "\\" else f"\\u{ord(match[0]):04x}"


def _unescape(match: re.Match[str]) -> str:
    return "\\" if match[1] == "\\" else chr(int(match[1][1:], 16))

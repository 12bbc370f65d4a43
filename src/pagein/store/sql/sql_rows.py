"""Common interface of database connections: the interface of SQLite, imitated for PostgreSQL.

Statements are written once, with `?` for values, in the SQL common to both databases. Texts that a database refuses (lone surrogates in
SQLite, NUL too in PostgreSQL) are stored escaped: `encode_text` and `decode_text` are inverse functions.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

Row = tuple[Any, ...]
_Value = TypeVar("_Value")
_AT_ONCE: Final = 500
"""Most values that are given to one statement."""
_AWKWARD: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(\\|u[0-9a-f]{4})")


class Answers(Protocol):
    """The result rows of a statement."""

    def fetchone(self) -> Row | None:
        """Return the next row."""
        ...

    def fetchall(self) -> list[Row]:
        """Return every remaining row."""
        ...


class Rows(Protocol):
    """A connection for running statements."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Answers:
        """Run a statement."""
        ...


class SqlDatabase(Protocol):
    """A database shared by several threads. Every failure of the database or the disk is raised as StoreError."""

    def open_reader(self) -> AbstractContextManager[Rows]:
        """Yield a connection for queries; within `open_writer` of the same thread, that writer's connection."""
        ...

    def open_writer(self) -> AbstractContextManager[Rows]:
        """Yield a connection inside a transaction without other writers.

        Committed at the end, and rolled back on any exception. Nested in the same thread, it is part of the outer
        transaction: rolled back alone on failure, and committed only with the outer one.
        """
        ...

    def close(self) -> None:
        """Release everything. Later uses raise StoreError."""
        ...


def encode_text(text: str) -> str:
    r"""Return a text in storable form: backslashes doubled, NUL and lone surrogates as `\uXXXX`.

    Common prefixes stay common.
    """
    return _AWKWARD.sub(_escape, text)


def decode_text(text: str) -> str:
    """Decode a stored text."""
    return _ESCAPED.sub(_unescape, text) if "\\" in text else text


def plain(text: str) -> str:
    """Escape lone surrogates and NUL, which databases refuse, in a name that is never decoded again."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def plain_names(names: Iterable[str]) -> list[str]:
    """Escape each of these names as `plain` does."""
    return [plain(name) for name in names]


def batches(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """Yield the values in portions for one statement each, in their order."""
    return (values[first : first + _AT_ONCE] for first in range(0, len(values), _AT_ONCE))


def question_marks(values: Collection[object]) -> str:
    """Return the placeholders for a list of values in a statement: `?, ?, ...`, for `IN (...)`."""
    return ", ".join("?" * len(values))


def _escape(match: re.Match[str]) -> str:
    return "\\\\" if match[0] == "\\" else f"\\u{ord(match[0]):04x}"


def _unescape(match: re.Match[str]) -> str:
    return "\\" if match[1] == "\\" else chr(int(match[1][1:], 16))

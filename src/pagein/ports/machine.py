"""Interfaces to the machine: token counter, clock, ids, cancellation, files."""

from collections.abc import Iterable
from typing import Literal, Protocol

from pagein.model.code_search import CodeQuery, CodeResults
from pagein.model.documents import Document, LocatedFile


class TokenCounter(Protocol):
    """Estimates how many tokens a provider counts for a text.

    Called once for each new tool result, from any thread. Must be fast (a few ns per character), must not raise, and
    must give the same estimate for the same text until the next calibration. `kind` is `result` for the text of a tool.
    """

    def count(self, text: str, kind: Literal["result", "said", "user", "system"] = "result") -> float:
        """Return the estimated tokens of a text."""
        ...


class Clock(Protocol):
    """Returns the current time for writers. Called from any thread; may go backwards."""

    def __call__(self) -> float:
        """Seconds since 1970."""
        ...


class IdSource(Protocol):
    """Creates object ids (UUIDv7).

    Called from any thread; never repeats an id, and later ids sort after earlier ids.
    """

    def __call__(self, at: float) -> str:
        """Return a new id for this time, in seconds since 1970."""
        ...


class Signal(Protocol):
    """A caller's cancellation signal for a read, such as a `threading.Event`.

    Polled between steps, from the reading thread; must not block.
    """

    def is_set(self) -> bool:
        """Return whether the caller has cancelled."""
        ...


class Files(Protocol):
    """The files an agent works on, as seen by the engine.

    Called from several threads at once. For an unusable path or file, `locate` and `read` raise BadInput with a message meant for
    the model; `read` also raises AbortedOperation. Nothing is remembered between two calls.
    """

    def locate(self, path: str, *, offset: float | None = None, limit: float | None = None) -> LocatedFile:
        """Return the file named by a read call, and whether its content may be stored. The file may be missing."""
        ...

    def read(self, located: LocatedFile, signal: Signal | None = None) -> Document:
        """Read the file's bytes once."""
        ...

    def same_file(self, located: LocatedFile, among: Iterable[str]) -> str | None:
        """Return the key in `among` of the same file under another name through a hard link, or None."""
        ...


class CodeSearcher(Protocol):
    """The search of the files below a folder. Nothing outside of the folder, ignored by git or excluded is ever read.

    Called from any thread.
    """

    def search(self, query: CodeQuery, signal: Signal | None = None, /) -> CodeResults:
        """Return the places of a pattern. Raises BadInput for an unusable pattern or path, and AbortedOperation."""
        ...

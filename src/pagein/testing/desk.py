"""A read desk for tests: a folder of files on a real disk, a store beside it, and sessions that read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pagein.engine.engine import Engine
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.wiring import open as open_engine


@dataclass
class Desk:
    """A workspace with a store. Close it at the end, to close the engines opened.

    opened: opens an engine on the store; replaceable to simulate a failing store.
    """

    folder: Path
    store: Path
    opened: Callable[[Path], Engine] = open_engine
    engines: list[Engine] = field(default_factory=list)

    def session(self, name: str = "main") -> Session:
        """Return the session as seen by a fresh process: through an engine of its own."""
        engine = self.opened(self.store)
        self.engines.append(engine)
        return engine.session(name, workspace=self.folder)

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def close(self) -> None:
        """Close all engines."""
        for engine in self.engines:
            engine.close()


def mode_of(result: ReadResult) -> object:
    """Return the mode of a read's answer; None without metadata. Raises AssertionError if pagein failed during the
    read.
    """
    if result.failure is not None:
        raise AssertionError(f"answered as if pagein were not there: {result.failure}")
    readcache = result.details.get("readcache")
    return readcache["mode"] if isinstance(readcache, dict) else None


def numbered_text(count: int, tag: str = "original") -> str:
    """Return the text of a file with this number of lines, each different, with a newline at its end."""
    return "".join(f"line {n} :: {tag} text payload\n" for n in range(1, count + 1))

"""The place of a recorded session: a file, a compressed file, a member of an archive, a row of a database."""

import gzip
import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

_MAGIC_GZIP: Final = b"\x1f\x8b"
_MAGIC_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_MAGIC_XZ: Final = b"\xfd7zXZ\x00"
MAGIC_SQLITE: Final = b"SQLite format 3\x00"
_LONGEST_MAGIC: Final = 16


@dataclass(frozen=True, slots=True)
class Source:
    """A place to read sessions from. Picklable, for worker processes.

    label: name in messages and reports (`dev/agentv.tar.xz:019e.jsonl`).
    path: the file, if any.
    content: the bytes of a member of an archive.
    member: id of the session inside a database or a storage folder.
    group: name for reports on sessions without a source name of their own.
    """

    label: str
    path: Path | None = None
    content: bytes | None = None
    member: str | None = None
    group: str | None = None

    @property
    def size(self) -> int:
        """Its stored bytes, compressed or not; 0 for a database and an unknown size."""
        if self.content is not None:
            return len(self.content)
        if self.path is None or self.member is not None:
            return 0
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @property
    def stem(self) -> str:
        """The bare name, without folders and suffixes: the id of a session without one."""
        name = self.label.replace("\\", "/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]
        for suffix in (".gz", ".zst", ".xz", ".jsonl", ".json"):
            name = name.removesuffix(suffix)
        return name


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """A source that looked like a session but is not.

    file: its label.
    reason: the reason, with the line if any.
    is_sound: whether nothing is wrong with the file: it only holds no session.
    """

    file: str
    reason: str
    is_sound: bool = False


@contextmanager
def open_stream(source: Source) -> Iterator[IO[bytes]]:
    """Open the bytes of a source, decompressed; the compression is detected by the first bytes, not by the name."""
    raw: IO[bytes]
    if source.content is not None:
        raw = io.BytesIO(source.content)
    elif source.path is not None:
        raw = source.path.open("rb")
    else:
        raise FileNotFoundError(source.label)
    with raw:
        head = raw.read(_LONGEST_MAGIC)
        raw.seek(0)
        with _decompress(raw, head) as stream:
            yield stream


def _decompress(raw: IO[bytes], head: bytes) -> IO[bytes]:
    if head.startswith(_MAGIC_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if head.startswith(_MAGIC_XZ):
        return cast("IO[bytes]", lzma.LZMAFile(raw))
    if head.startswith(_MAGIC_ZSTD):
        import zstandard

        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False)
        return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", reader)))
    return raw

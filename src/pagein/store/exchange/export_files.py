"""Files of exports: written complete or not at all, and read within bounds."""

import contextlib
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from pagein.errors import BadInput
from pagein.store.exchange.import_bounds import LONGEST_LINE
from pagein.store.upkeep.sqlite_pages import MAGIC

# Successive versions of a file compress about a hundredfold; a decompression bomb compresses a thousandfold.
_DENSEST: Final = 400
_UNASKED: Final = 1 << 28


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when complete. A pipe or a device is written to; no database is replaced."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        path = path.resolve()  # a link stays a link
        if path.exists() and _begins_as_database(path):
            raise BadInput(f"{path} is a database, such as a store, and no export replaces one; choose another file")
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except (OSError, RuntimeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else None
        raise BadInput(f"{path}: {why or problem}") from problem
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError as problem:
        made.unlink(missing_ok=True)
        raise BadInput(f"{path}: {problem.strerror or problem}; nothing was written") from problem
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def _begins_as_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class _CountingFile:
    """A file wrapper that counts the bytes read."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.count += len(data)
        return data


def unpacked_lines(file: io.BufferedReader, name: str) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed if necessary.

    An overlong line comes truncated, and its reader refuses it.
    """
    packed = _CountingFile(file) if file.peek(2)[:2] == b"\x1f\x8b" else None
    lines = file if packed is None else gzip.GzipFile(fileobj=cast("BinaryIO", packed), mode="rb")
    taken = 0
    try:
        while line := lines.readline(LONGEST_LINE + 1):
            taken += len(line)
            if packed is not None and taken > max(_UNASKED, _DENSEST * packed.count):
                raise BadInput(
                    f"{name}: unpacks to more than {_DENSEST} times its size; if it is an export all the same, unpack it yourself (gunzip) "
                    "and import what comes out; nothing was imported"
                )
            yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise BadInput(
            f"{name}: the compressed file is cut short or damaged ({problem}); nothing was imported"
        ) from None
    except OSError as problem:
        raise BadInput(f"{name}: {problem.strerror or problem}; nothing was imported") from problem

"""Read a file once, as a whole, with the host's error messages.

The bytes are read a single time, so that the hashed, shown and stored content cannot differ, even if the file changes
meanwhile.
"""

import errno
import os
import stat

from pagein.errors import AbortedOperation, BadInput
from pagein.model.documents import Document
from pagein.ports import Signal

MAX_FILE_BYTES = 2 * 1024**3 - 1
"""Largest accepted file, as in the host's read tool."""

_CHUNK = 4 * 1024 * 1024
_SNIFFED = 16

# Node's names of these errors; the host shows an error message unchanged to the model.
_PHRASES = {
    errno.ENOENT: "no such file or directory",
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.ENOTDIR: "not a directory",
    errno.ELOOP: "too many symbolic links encountered",
    errno.ENAMETOOLONG: "name too long",
    errno.EIO: "i/o error",
    errno.ENXIO: "no such device or address",
}


def check(signal: Signal | None) -> None:
    """Raise AbortedOperation if the caller has cancelled."""
    if signal is not None and signal.is_set():
        raise AbortedOperation("Operation aborted")


def load_document(path: str, key: str, signal: Signal | None = None, *, max_bytes: int = MAX_FILE_BYTES) -> Document:
    """Read the file at this absolute path, whose key is `key`.

    Raises BadInput for a file that is missing, unreadable, not a regular file, or larger than `max_bytes`, and for a folder;
    AbortedOperation once the signal is set.
    """
    check(signal)
    if "\0" in path:
        raise BadInput(
            f"The argument 'path' must be a string, Uint8Array, or URL without null bytes. Received '{path}'"
        )
    try:
        # not blocking: opening a pipe without a writer would wait for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(_refusal(error, path)) from error
    try:
        content = _content(descriptor, path, signal, max_bytes)
    except OSError as error:
        raise BadInput(_refusal(error, path)) from error
    finally:
        os.close(descriptor)
    return Document.of(content, path=path, key=key, media_type=image_type(content[:_SNIFFED]))


def _content(descriptor: int, path: str, signal: Signal | None, max_bytes: int) -> bytes:
    about = os.fstat(descriptor)
    if stat.S_ISDIR(about.st_mode):
        raise BadInput("EISDIR: illegal operation on a directory, read")
    if not stat.S_ISREG(about.st_mode):
        raise BadInput(f"Not a regular file: {path}")
    chunks: list[bytes] = []
    size = 0
    while chunk := os.read(descriptor, _CHUNK):
        check(signal)
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise BadInput(f"File size ({max(about.st_size, size)}) is greater than {_as_limit(max_bytes)}")
    check(signal)
    return b"".join(chunks)


def _as_limit(max_bytes: int) -> str:
    return "2 GiB" if max_bytes == MAX_FILE_BYTES else f"{max_bytes} bytes"


def _refusal(error: OSError, path: str) -> str:
    code = errno.errorcode.get(error.errno or 0, "EIO")
    phrase = _PHRASES.get(error.errno or 0, (error.strerror or "i/o error").lower())
    return f"{code}: {phrase}, access '{path}'"


def image_type(head: bytes) -> str | None:
    """Return the media type of an image supported by hosts, from its first 12 bytes; None for other content."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff") and head[3:4] != b"\xf7":  # f7: lossless JPEG-LS, not accepted by models
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None

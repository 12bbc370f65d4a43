"""Store format of Pi-RLM: `store.jsonl` with an object per line, and `index.json` with the offset of each line.

Rules of this file
------------------
1. The log is authoritative and append-only. The index is derived from the log and replaced as a whole, by renaming; so adding is cheap.
2. No reader here needs the index, and each writer makes it again from the log, whatever it was. Offsets count bytes of the log as stored.
3. An undecodable line is skipped and counted. So is a torn last line, after which the next writer begins a new line.
"""

import fcntl
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from pagein.errors import BadInput, StoreError
from pagein.model.json_text import decode_json, encode_json

LOG: Final = "store.jsonl"
INDEX: Final = "index.json"
VERSION: Final = 1
ContentType: TypeAlias = Literal["conversation", "tool_output", "file", "artifact"]
_TYPES: Final = frozenset(get_args(ContentType))
_SOURCES: Final = {"externalized": "fingerprint", "ingested": "path", "child_result": "callId"}
_STRANGE: Final = (KeyError, TypeError, ValueError, OverflowError, RecursionError)
_LARGEST: Final = (1 << 53) - 1
_NAME: Final = re.compile(r"[^\x00-\x1f/\\]{1,200}")


@dataclass(frozen=True, slots=True)
class RlmSource:
    """Origin of an object.

    of: fingerprint, path or call id, depending on the kind
    """

    kind: Literal["externalized", "ingested", "child_result"]
    of: str


@dataclass(frozen=True, slots=True)
class RlmRecord:
    """An object of Pi-RLM.

    created: milliseconds since 1970
    tokens: a quarter of the content's UTF-16 units, rounded up, unless its writer gave a better count
    """

    id: str
    type: ContentType
    description: str
    created: int
    tokens: int
    source: RlmSource
    content: str


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A record with the position of its line in the log.

    offset: of the first byte
    length: in bytes, without the newline
    """

    record: RlmRecord
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class RlmStore:
    """Content of a session's folder.

    skipped: undecodable lines, by number from 1, with the reason
    """

    session: str
    placed: tuple[RecordPlace, ...]
    skipped: tuple[tuple[int, str], ...]

    @property
    def records(self) -> tuple[RlmRecord, ...]:
        """The objects without repetition: a later line of the same id replaces an earlier line."""
        return tuple({one.record.id: one.record for one in self.placed}.values())


def tokens_of(content: str) -> int:
    """Return the format's token estimate: a quarter of the characters as JavaScript counts them, rounded up."""
    units = len(content.encode("utf-16-le", "surrogatepass")) // 2
    return -(-units // 4)


def session_folder(root: Path, session: str) -> Path:
    """Return the folder of a session under `.pi/rlm`. Raises BadInput for an invalid name, for example a path."""
    if not _NAME.fullmatch(session) or session in (".", ".."):
        raise BadInput(f"not the name of a session: {session[:80]!r}; it names a folder, so it must not be a path")
    return root / session


def load_store(folder: Path) -> RlmStore:
    """Read a session's folder from its log.

    A missing log is an empty store. Raises StoreError if the log cannot be read.
    """
    try:
        log = (folder / LOG).read_bytes()
    except FileNotFoundError:
        log = b""
    except OSError as problem:
        raise StoreError(f"{folder / LOG}: {problem.strerror}") from problem
    placed: list[RecordPlace] = []
    skipped: list[tuple[int, str]] = []
    for number, found in enumerate(_parse_lines(log, 0), start=1):
        if isinstance(found, RecordPlace):
            placed.append(found)
        elif found is not None:
            skipped.append((number, found))
    return RlmStore(folder.name, tuple(placed), tuple(skipped))


def _parse_lines(log: bytes, offset: int) -> Iterator[RecordPlace | str | None]:
    """Yield per line the record with its place, the reason why the line is undecodable, or None for an empty line.

    offset: of the first byte
    """
    for line in log.split(b"\n"):
        if not line.strip():
            yield None
        else:
            try:
                yield RecordPlace(_record_in(line), offset, len(line))
            except _STRANGE as problem:
                yield f"{type(problem).__name__}: {problem}"
        offset += len(line) + 1


def index_of(store: RlmStore) -> dict[str, Any]:
    """Return the index of a log."""
    last = {one.record.id: one for one in store.placed}
    objects = [
        {
            "id": one.record.id,
            "type": one.record.type,
            "description": one.record.description,
            "tokenEstimate": one.record.tokens,
            "createdAt": one.record.created,
            "byteOffset": one.offset,
            "byteLength": one.length,
        }
        for one in last.values()
    ]
    total = sum(one.record.tokens for one in last.values())
    return {"version": VERSION, "sessionId": store.session, "objects": objects, "totalTokens": total}


class RlmWriter:
    """Adds records to a session's folder, created if missing. A context manager: the index is written at the end.

    Cost is proportional to the added records. Several processes may write to a folder: each appends after the others.
    Raises StoreError for a failed write; then nothing of that call is stored, and the next writer replaces an outdated
    index.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._size = 0
        self._newest: dict[str, RecordPlace] = {}

    def add(self, records: Iterable[RlmRecord]) -> None:
        """Append records. A record equal to the newest record of its id is not written again."""
        with self._lock_log() as handle:
            self._catch_up(handle)
            data = b"" if self._is_whole(handle) else b"\n"
            fresh: dict[str, RecordPlace] = {}
            for record in records:
                known = fresh.get(record.id) or self._newest.get(record.id)
                if known is None or known.record != record:
                    line = encode_json(_record_out(record))
                    fresh[record.id] = RecordPlace(record, self._size + len(data), len(line))
                    data += line + b"\n"
            self._write(handle, data)
            self._newest |= fresh
            self._size += len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock_log() as handle:
            self._catch_up(handle)
            store = RlmStore(self._folder.name, tuple(self._newest.values()), ())
            _replace(self._folder / INDEX, encode_json(index_of(store)))

    @contextmanager
    def _lock_log(self) -> Iterator[int]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder / LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)  # until it is closed
                yield handle
            finally:
                os.close(handle)
        except OSError as problem:
            raise StoreError(f"{self._folder}: {problem.strerror}") from problem

    def _catch_up(self, handle: int) -> None:
        """Read the records appended by other writers."""
        with os.fdopen(os.dup(handle), "rb") as file:
            file.seek(self._size)
            log = file.read()
        self._newest |= {one.record.id: one for one in _parse_lines(log, self._size) if isinstance(one, RecordPlace)}
        self._size += len(log)

    def _is_whole(self, handle: int) -> bool:
        """Return whether the log ends with a complete line.

        A torn line of a dead writer must not spoil the next line.
        """
        return self._size == 0 or os.pread(handle, 1, self._size - 1) == b"\n"

    def _write(self, handle: int, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, self._size)
            raise


def append(folder: Path, records: Iterable[RlmRecord]) -> None:
    """Append records to a session's folder, and write its index."""
    with RlmWriter(folder) as writer:
        writer.add(records)


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _record_out(record: RlmRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "type": record.type,
        "description": record.description,
        "createdAt": record.created,
        "tokenEstimate": record.tokens,
        "source": {"kind": record.source.kind, _SOURCES[record.source.kind]: record.source.of},
        "content": record.content,
    }


def _record_in(line: bytes) -> RlmRecord:
    raw: Any = decode_json(line)
    if not isinstance(raw, dict):
        raise TypeError("not a JSON object")
    content, source = _text(raw["content"]), raw["source"]
    if raw["type"] not in _TYPES:
        raise ValueError(f"unknown type {raw['type']!r}")
    made = RlmSource(source["kind"], _text(source[_SOURCES[source["kind"]]]))
    tokens, created = _number(raw.get("tokenEstimate")), _number(raw.get("createdAt"))
    return RlmRecord(
        _text(raw["id"]),
        raw["type"],
        _text(raw.get("description", "")),
        0 if created is None else created,
        tokens_of(content) if tokens is None else tokens,
        made,
        content,
    )


def _number(value: object) -> int | None:
    """Return a count, or None if the field is missing or not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= _LARGEST:
        raise ValueError("a number that is negative, or larger than any reader can hold")
    return int(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not a text")
    return value

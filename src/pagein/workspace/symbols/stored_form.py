"""The stored form of symbols: parts by path, so that an edit rewrites a single part.

A part names the grammars and queries that made it. With others it counts as missing.
"""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Final

import msgspec

from pagein.model.symbols import FileSymbols
from pagein.ports import SymbolCache
from pagein.workspace.symbols.languages import LANGUAGES

_FORM: Final = 1
_PARTS: Final = 32


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The knowledge of a file's content: its symbols, or the reason for their absence. hash: of the content; "" if
    unread.
    """

    hash: str
    symbols: FileSymbols | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    made_by: str
    files: dict[str, KnownFile] = field(default_factory=dict)


class SymbolShelf:
    """The known files of a workspace in a cache. cache: None keeps nothing."""

    def __init__(self, cache: SymbolCache | None) -> None:
        self._cache = cache
        self._kept: dict[str, KnownFile] = {}

    def load(self) -> dict[str, KnownFile]:
        """Return the stored files, without damaged files and files of another version."""
        if self._cache is None:
            return {}
        for number in range(_PARTS):
            data = self._cache.load(number)
            if data is not None:
                self._kept.update(_decode(data))
        return dict(self._kept)

    def keep(self, known: Mapping[str, KnownFile]) -> None:
        """Keep the files whose content is known, part by part, as far as a part has changed."""
        if self._cache is None:
            return
        wanted = {path: one for path, one in known.items() if one.symbols is not None}
        changed = {path for path in wanted.keys() | self._kept.keys() if wanted.get(path) is not self._kept.get(path)}
        changed = {path for path in changed if wanted.get(path) != self._kept.get(path)}
        touched = {_part_of(path) for path in changed}
        grouped: dict[int, dict[str, KnownFile]] = {number: {} for number in touched}
        for path, one in sorted(wanted.items()):
            if (number := _part_of(path)) in grouped:
                grouped[number][path] = one
        for number, files in grouped.items():
            self._cache.keep(number, msgspec.msgpack.encode(_Part(_maker(), files)))
        self._kept = wanted


def _decode(data: bytes) -> dict[str, KnownFile]:
    try:
        part = msgspec.msgpack.decode(data, type=_Part)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return part.files if part.made_by == _maker() else {}


def _part_of(path: str) -> int:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()[0] % _PARTS


@functools.cache
def _maker() -> str:
    """Return what names this form, the queries and the installed grammars."""
    made = hashlib.sha256(str(_FORM).encode())
    queries = resources.files("pagein.workspace.symbols") / "queries"
    for folder in sorted({folder for one in LANGUAGES for folder in one.queries}):
        for file in ("definitions.scm", "references.scm"):
            query = queries / folder / file
            made.update(query.read_bytes() if query.is_file() else b"")
    for name in sorted({"tree-sitter", *(one.module.replace("_", "-") for one in LANGUAGES)}):
        try:
            made.update(f"{name}={metadata.version(name)};".encode())
        except metadata.PackageNotFoundError:
            made.update(f"{name}=;".encode())
    return made.hexdigest()

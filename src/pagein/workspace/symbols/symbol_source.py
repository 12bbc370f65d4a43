"""Definitions by name for any folder: an index for each, brought up to the files when it is asked."""

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from pagein.model.symbols import SymbolAnswer, UnknownSymbol
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import Signal
from pagein.workspace.symbols.kept_symbols import KeptSymbols, LayeredBlobs
from pagein.workspace.symbols.symbol_index import SymbolIndex
from pagein.workspace.symbols.symbol_reader import SymbolReader

_REST: Final = 20.0  # a look at all files may take a twentieth of the time, so that many questions are quick
_MOST_FOLDERS: Final = 8


@dataclass(slots=True)
class _Folder:
    index: SymbolIndex
    reader: SymbolReader
    due: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class WorkspaceSymbols:
    """The definitions of folders. Thread-safe.

    excluded: name patterns of files that are never read.
    store: keeps the symbols between processes; None for this process only.
    """

    def __init__(self, excluded: tuple[str, ...] = EXCLUDED, store: LayeredBlobs | None = None) -> None:
        self._excluded = excluded
        self._store = store
        self._folders: dict[str, _Folder] = {}
        self._lock = threading.Lock()

    def read(
        self,
        folder: str,
        name: str,
        *,
        path: str | None = None,
        include_context: bool = False,
        skipped: frozenset[str] = frozenset(),
        signal: Signal | None = None,
    ) -> SymbolAnswer:
        """Return the definition with this name, qualified name or id (see `SymbolReader.read`).

        The files are looked at again if the name is unknown, or if the last look was a while ago.

        Raises BadSetting, with the remedy, if no grammar is installed; BadInput; AbortedOperation.
        """
        place = self._folder(folder)
        is_recent = time.monotonic() < place.due
        if not is_recent:
            self._look(place, signal)

        def ask() -> SymbolAnswer:
            return place.reader.read(name, path=path, include_context=include_context, skipped=skipped, signal=signal)

        try:
            answer = ask()
            if isinstance(answer, UnknownSymbol) and is_recent:
                self._look(place, signal)
                answer = ask()
        finally:
            place.index.close()  # no processes are kept between questions
        return answer

    def _look(self, place: _Folder, signal: Signal | None) -> None:
        with place.lock:
            began = time.monotonic()
            place.index.refresh(signal)
            now = time.monotonic()
            place.due = now + _REST * (now - began)

    def _folder(self, folder: str) -> _Folder:
        with self._lock:
            found = self._folders.pop(folder, None)
            if found is None:
                cache = None if self._store is None else KeptSymbols(self._store, folder)
                index = SymbolIndex(folder, excluded=self._excluded, cache=cache)
                found = _Folder(index, SymbolReader(index))
                if len(self._folders) >= _MOST_FOLDERS:
                    del self._folders[next(iter(self._folders))]
            self._folders[folder] = found
            return found

"""A workspace with files, and an index of its symbols."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pagein.workspace.symbols.symbol_index import SymbolIndex

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def write(folder: Path) -> Write:
    def write(path: str, content: str | bytes) -> Path:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    return write


@pytest.fixture
def index(folder: Path) -> Iterator[SymbolIndex]:
    with SymbolIndex(str(folder), jobs=2) as made:
        yield made

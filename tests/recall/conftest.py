from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recall.rooms import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    folder = tmp_path / "work"
    folder.mkdir()
    made = Room(folder, tmp_path / "store" / "s.pagein")
    yield made
    made.close()

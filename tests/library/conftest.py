from collections.abc import Iterator
from pathlib import Path

import pytest

from pagein.testing.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "work"
    folder.mkdir()
    made = Desk(folder, tmp_path / "store" / "s.pagein")
    yield made
    made.close()

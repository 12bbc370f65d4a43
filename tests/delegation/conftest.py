from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.delegation.asked_sessions import Asked, asked

from pagein.testing.scripted_children import Script


@pytest.fixture
def asks(tmp_path: Path) -> Iterator[Callable[..., Asked]]:
    """Makes a session with scripted children; its stores are closed at the end."""
    made: list[Asked] = []

    def make(script: Script, **limits: Any) -> Asked:  # noqa: ANN401 -- any limit
        made.append(asked(tmp_path, script, **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()

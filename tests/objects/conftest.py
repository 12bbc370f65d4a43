import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pagein.errors import BadInput
from pagein.testing.postgres import programs, running_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real server, installed first where this machine lets us."""
    if programs() is None:
        script = ROOT / "scripts" / "install_postgres.sh"
        subprocess.run([str(script)], check=False, capture_output=True)  # noqa: S603 -- our own
    with ExitStack() as stack:
        try:
            address = stack.enter_context(running_server())
        except BadInput as problem:
            pytest.skip(str(problem))
        yield address


_NUMBERS = itertools.count()


@pytest.fixture
def schema() -> Callable[[], str]:
    """Names of schemas that nobody used."""
    return lambda: f"test_{next(_NUMBERS)}"

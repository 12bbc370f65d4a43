import itertools
from collections.abc import Callable

import pytest

_NUMBERS = itertools.count()


@pytest.fixture
def schema() -> Callable[[], str]:
    """Names of schemas that nobody used."""
    return lambda: f"test_{next(_NUMBERS)}"

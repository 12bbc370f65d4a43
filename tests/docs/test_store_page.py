import re
from pathlib import Path
from typing import get_args

import pytest

from pagein.model.object_types import TYPES
from pagein.model.writes import Refusal

pytestmark = pytest.mark.damages_store

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "store.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS)
def test_the_examples_of_the_page_run(code: str) -> None:
    exec(compile(code, "docs/reference/store.md", "exec"), {})  # noqa: S102 -- our own page


def test_the_page_names_every_type_and_every_refusal() -> None:

    assert [name for name in (*TYPES, *get_args(Refusal)) if f"`{name}`" not in PAGE] == []
    assert len(BLOCKS) == 1

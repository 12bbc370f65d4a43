"""The examples of docs/reference/provider.md run, and its table of script items is complete."""

import doctest
import json
import re
from pathlib import Path

import pytest

from pagein.errors import BadInput
from pagein.simulator.script import _READERS, script_from, turn_from

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "provider.md"


@pytest.fixture
def page() -> str:
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    return PAGE.read_text(encoding="utf-8")


def test_the_examples_of_the_page_run(page: str) -> None:
    example = doctest.DocTestParser().get_doctest(page.replace("```", ""), {}, PAGE.name, str(PAGE), 0)
    assert len(example.examples) > 5
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_example_of_a_script_is_valid(page: str) -> None:
    (script,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    turns = script_from(json.loads(script)).turns
    assert len(turns) == 3
    assert turns[1].otherwise is not None


def test_every_item_of_a_script_is_explained(page: str) -> None:
    rows = re.findall(r"^\| (.+?) \|", page.split("| item |", 1)[1].split("\n\n", 1)[0], re.MULTILINE)
    items = [
        json.loads(item.replace("[...]", '["x"]').replace('"..."', '"x"'))
        for row in rows
        for item in re.findall(r"`(.+?)`", row)
    ]
    for item in items:
        turn_from([item])
    assert {next(iter(item)) for item in items if isinstance(item, dict)} == set(_READERS)
    with pytest.raises(BadInput):
        turn_from([{"unheard of": 1}])

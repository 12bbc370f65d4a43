"""The examples of docs/layouts.md run, and those that promise to be short are."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "layouts.md"


def test_the_examples_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(page.replace("```\n", "\n"), {}, PAGE.name, str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 10


@pytest.mark.parametrize(("heading", "least", "most"), [("Ten lines", 10, 10), ("Pools", 20, 30)])
def test_the_first_example_below_a_heading_is_short(heading: str, least: int, most: int) -> None:
    page = PAGE.read_text(encoding="utf-8")
    first = page.partition(f"## {heading}\n")[2].partition("```python")[2].partition("```")[0]
    assert least <= first.count(">>> ") + first.count("... ") <= most

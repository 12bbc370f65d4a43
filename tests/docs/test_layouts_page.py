"""The examples of docs/layouts.md run, those that promise to be short are, and its numbers are those of the settings."""

import doctest
from pathlib import Path

import pytest

from pagein.settings.keys import KEYS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "layouts.md"


@pytest.mark.parametrize("page", [PAGE, PAGE.parent / "reference" / PAGE.name], ids=("page", "reference"))
def test_the_examples_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("```\n", "\n")
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 10


@pytest.mark.parametrize(("heading", "least", "most"), [("Ten lines", 10, 10), ("Pools", 20, 30)])
def test_the_first_example_below_a_heading_is_short(heading: str, least: int, most: int) -> None:
    page = PAGE.read_text(encoding="utf-8")
    first = page.partition(f"## {heading}\n")[2].partition("```python")[2].partition("```")[0]
    assert least <= first.count(">>> ") + first.count("... ") <= most


def test_the_bounds_of_what_is_active_are_those_of_the_settings() -> None:
    words: dict[object, str] = {3: "three", 5: "five", 20: "20"}
    calls, turns, by_hand = (words[KEYS[f"pool_{name}"].default] for name in ("calls", "turns", "by_hand"))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"the last {calls} calls of a turn, in the last {turns} turns" in page
    assert f"the newest {by_hand} activations without a pin" in page

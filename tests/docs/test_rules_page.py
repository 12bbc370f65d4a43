import doctest
from pathlib import Path

import pytest

from pagein.providers.prices.model_abilities import TABLE
from pagein.providers.wire import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "rules.md"


@pytest.fixture
def page() -> str:
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    return PAGE.read_text(encoding="utf-8")


def test_the_page_holds_every_rule_and_every_model(page: str) -> None:
    assert [name for name in (*RULES, *TABLE) if f"\n| {name} |" not in page] == []


def test_the_example_of_the_rules_page_runs(page: str) -> None:
    example = doctest.DocTestParser().get_doctest(page.replace("```", ""), {}, PAGE.name, str(PAGE), 0)
    assert len(example.examples) == 3
    assert doctest.DocTestRunner().run(example).failed == 0

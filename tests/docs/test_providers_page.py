"""The examples of docs/reference/providers.md run, and its tables are complete."""

import doctest
import re
from pathlib import Path

import pytest

from pagein.providers.cache_simulator import KINDS
from pagein.providers.prices.price_lookup import prices

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "providers.md"


@pytest.fixture
def page() -> str:
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    return PAGE.read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[str]:
    """First cells of the table under this heading row."""
    return re.findall(r"^\| (.+?) \|", page.split(heading, 1)[1].split("\n\n", 1)[0], re.MULTILINE)


def test_the_examples_of_the_page_run(page: str) -> None:
    example = doctest.DocTestParser().get_doctest(page.replace("```", ""), {}, PAGE.name, str(PAGE), 0)
    assert len(example.examples) > 10
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_table_of_kinds_is_complete() -> None:
    page = (PAGE.parent / "caches.md").read_text(encoding="utf-8")
    assert [name.strip("`") for name in rows(page, "| kind |")] == list(KINDS)


def test_the_table_of_generic_keys_is_complete(page: str) -> None:
    keys = re.findall(r"`(\w+)`", " ".join(rows(page, "| key of `generic:`")))
    for key in keys:
        assert prices(f"generic:{key}={'none' if key == 'cache' else 1}").provider == "generic"
    assert sorted(keys) == sorted(["r", "w", "w1h", "out", "min", "in", "window", "cache"])

"""The examples of docs/layouts.md run, and its first is short."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "layouts.md"


def test_the_examples_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(page.replace("```\n", "\n"), {}, PAGE.name, str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 10


def test_the_first_example_has_ten_lines() -> None:
    first = PAGE.read_text(encoding="utf-8").partition("## Ten lines")[2].partition("```python")[2].partition("```")[0]
    assert first.count(">>> ") == 10

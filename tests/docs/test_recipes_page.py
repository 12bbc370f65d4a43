"""The recipes run, one after the other."""

import doctest
from pathlib import Path

import pytest


def test_the_recipes_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = root / "docs" / "recipes.md"
    text = page.read_text(encoding="utf-8").replace("```", "")
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 20

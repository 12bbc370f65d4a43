"""The examples of docs/library.md run."""

import ast
import doctest
import re
from pathlib import Path

import pytest

from pagein.tools.brief import OFFERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(page.replace("```", ""), {}, PAGE.name, str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 20


def test_the_loop_is_python_and_names_the_tools_that_there_are() -> None:
    loop = re.findall(r"```python\n(import.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    ast.parse(loop)
    assert str(tuple(offer.name for offer in OFFERS)).replace("'", '"') in loop

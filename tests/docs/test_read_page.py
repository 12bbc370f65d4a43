"""The example of docs/read.md runs, and the tables of docs/reference/read.md name every base, code and tool."""

import doctest
import re
from pathlib import Path

import pytest

from pagein.policy.guards.judgement import BUDGET_EXCEEDED, EXCLUDED_FOLDER, LOW_RELEVANCE
from pagein.tools.catalogue import DEPRECATED
from pagein.tools.reading.argument_matrix import BASES
from pagein.tools.reading.read_problems import CODES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "read.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "read.md").read_text(encoding="utf-8")
APP = """import os

DEBUG = bool(os.environ.get("DEBUG"))

def main():
    print("hello")
    if DEBUG: print("and more")
"""


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tree_sitter")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text(APP)
    examples = doctest.DocTestParser().get_doctest(PAGE, {}, "read", "docs/read.md", 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not done.failed, "".join(told)
    assert done.attempted > 8


def test_every_code_that_is_told_has_its_row_and_no_row_is_for_nothing() -> None:
    told = {BUDGET_EXCEEDED, LOW_RELEVANCE, EXCLUDED_FOLDER}
    for path in [*(ROOT / "src/pagein/tools/reading").glob("*.py"), ROOT / "src/pagein/workspace/git_versions.py"]:
        text = path.read_text(encoding="utf-8")
        told |= set(re.findall(r'(?:ReadRefusal|ReadError|GitProblem)\(\s*"([A-Z_]+)"', text))
    assert told == set(CODES)


def test_every_base_and_every_deprecated_tool_has_its_row() -> None:
    assert [base for base in BASES if f"| `{base}` |" not in REFERENCE] == []
    assert [tool.name for tool in DEPRECATED if f"| `{tool.name}` |" not in REFERENCE] == []

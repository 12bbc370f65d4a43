"""Examples of pages that have no test module of their own run; no page has an example that nothing runs."""

import doctest
import re
import shutil
from pathlib import Path

import pytest
from tests.docs.test_docs import pages

RUN_HERE = ("delegation.md", "memory.md", "symbols.md")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROGRAM = "import os\n\nDEBUG = bool(os.environ.get('DEBUG'))\n\n\nclass Server:\n    def start(self):\n        return DEBUG\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "app.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("name", RUN_HERE)
def test_the_examples_of_a_page_run(root: Path, work: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "sessions").mkdir()
    shutil.copy(root / "tests" / "fixtures" / "sessions" / "claude-code.jsonl", work / "sessions")
    (code,) = PYTHON.findall((root / "docs" / name).read_text(encoding="utf-8"))
    if ">>>" in code:
        done = doctest.DocTestRunner(verbose=False).run(doctest.DocTestParser().get_doctest(code, {}, name, name, 0))
        assert (done.failed, done.attempted > 0, capsys.readouterr().out) == (0, True, "")
    else:
        exec(compile(code, name, "exec"), {})  # noqa: S102 - our own page


def test_no_page_has_an_example_that_nothing_runs(root: Path) -> None:
    tests = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("docs", "adapters")
        for path in (root / "tests" / folder).glob("*.py")
    )
    silent = {
        page.name
        for page in pages(root)
        if page.parent.name != "reference"  # signatures
        and PYTHON.search(page.read_text(encoding="utf-8"))
        and f'"{page.name}"' not in tests
    }
    assert silent == set()

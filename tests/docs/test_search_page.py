"""The Python example of docs/search.md runs."""

import re
from pathlib import Path

import pytest

import pagein

PAGE = Path(__file__).resolve().parents[2] / "docs" / "search.md"


def test_the_example_of_the_search_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "app.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "work")
    pagein.open(workspace=".").session("first", workspace=".").read("src/app.py")
    exec(compile(code, "docs/search.md", "exec"), {})  # noqa: S102 -- our own page

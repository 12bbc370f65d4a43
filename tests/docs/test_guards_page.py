"""The examples of docs/reference/guards.md run, and its numbers and texts are those of the code."""

import doctest
from pathlib import Path

import pytest
from tests.docs.test_tools_page import APP

from pagein.policy.guards import budgets, judgement
from pagein.policy.guards.limits import PROFILES
from pagein.policy.guards.relevance import EXCLUDED_FOLDERS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "guards.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "guards.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text(APP)
    (tmp_path / "notes.txt").write_text("note\n" * 900)
    examples = doctest.DocTestParser().get_doctest(REFERENCE, {}, "guards", "docs/reference/guards.md", 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not done.failed, "".join(told)
    assert done.attempted > 8


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    strict, balanced = PROFILES["strict"], PROFILES["balanced"]
    for words, name in (
        ("reads with new lines", "reads"),
        ("new lines in them", "total_lines"),
        ("lines of one read", "lines"),
        ("characters of one answer", "chars"),
        ("places shown by one snippet", "results"),
        ("lines around such a place", "context"),
    ):
        assert f"| {words} | {getattr(strict, name):,} | {getattr(balanced, name):,} | |" in REFERENCE


def test_every_text_code_and_folder_is_on_the_page() -> None:
    names = [name for name in vars(judgement) if name.isupper() and not name.startswith("_")]
    texts = [getattr(judgement, name) for name in names if isinstance(getattr(judgement, name), str)]
    page = " ".join((PAGE + REFERENCE).split())
    for text in (*texts, budgets.NEAR_READS, budgets.NEAR_LINES, *(f"`{one}`" for one in EXCLUDED_FOLDERS)):
        assert text in page, text

"""The examples of docs/reading.md run, and the lists of markers, exclusions and tools are complete."""

import doctest
import re
from pathlib import Path

import pytest

from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.policy.reads import markers
from pagein.tools.read import TOOLS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reading.md"
REFERENCE = PAGE.parent / "reference" / "reading.md"
APP = """import os

DEBUG = bool(os.environ.get("DEBUG"))

def main():
    print("hello from the application")
    if DEBUG:
        print("and its environment:", dict(os.environ))
    return 0
"""


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    parser = doctest.DocTestParser()
    examples = parser.get_doctest(PAGE.read_text(encoding="utf-8"), {}, "reading", str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 10


def test_every_marker_is_in_the_reference() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    texts = (
        markers.unchanged_marker(7),
        markers.lines_unchanged_marker(1, 2, 7),
        markers.inside_unchanged_marker(1, 2),
        markers.moved_marker(1, 2, 7, 3),
        markers.changed_marker(5, 7),
        markers.lines_changed_marker(5, 1, 2, 7),
        markers.left_out_marker(1, 2, 7),
    )
    shown = re.findall(r"`(\[readcache: [^`]*\])`", page)
    as_patterns = [re.compile(re.sub(r"\b[A-DKN]\b", r"\\d+", re.escape(text).replace(r"\-", "-"))) for text in shown]
    assert [text for text in texts if not any(pattern.fullmatch(text) for pattern in as_patterns)] == []


def test_every_exclusion_and_every_tool_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kin = {"id_dsa", "id_ecdsa", "id_ed25519"}
    assert [name for name in EXCLUDED if name not in kin and f"`{name}`" not in page] == []
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in page] == []

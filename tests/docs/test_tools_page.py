"""The examples of docs/tools.md run, and docs/reference/tools.md is complete and says the numbers of the code."""

import doctest
import re
from pathlib import Path

import pytest

from pagein.engine.log import trajectory
from pagein.engine.log.holdings import Holdings
from pagein.engine.recall import ingest as ingesting
from pagein.engine.recall import recall_resources
from pagein.engine.recall.session_recall import RecallFigures
from pagein.model.read_caps import DEFAULT_CAPS
from pagein.policy.recall import pattern_search, surroundings, text_slices
from pagein.policy.stubs import manifest
from pagein.tools.catalogue import DISABLED, RECALL
from pagein.tools.stats import stats_text

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "tools.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "tools.md").read_text(encoding="utf-8")
APP = """import os

DEBUG = bool(os.environ.get("DEBUG"))

def main():
    print("hello")
    if DEBUG: print("and more")
"""


def section(name: str) -> str:
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", PAGE + REFERENCE, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text(APP)
    examples = doctest.DocTestParser().get_doctest(PAGE, {}, "tools", "docs/tools.md", 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert not done.failed, "".join(told)
    assert done.attempted > 8


def test_every_tool_has_a_section_with_every_argument_and_its_default() -> None:
    for tool in RECALL:
        told = section(f"`{tool.name}`")
        for argument, described in tool.schema["properties"].items():
            row = re.search(rf"^\| `{argument}` \|.*\|(.*)\|$", told, re.MULTILINE)
            assert row is not None, (tool.name, argument)
            if argument in tool.schema["required"]:
                assert "required" in row[1]
            if "default" in described:
                assert row[1].strip() == str(described["default"])
        assert tool.legacy in PAGE


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    peek, search, ingest = (" ".join(section(f"`{name}`").split()) for name in ("peek", "search", "ingest"))
    assert f"{text_slices.LINES} if line is given alone" in peek
    assert f"shows {surroundings.CONTEXT} lines around" in peek
    assert f"{DEFAULT_CAPS.lines} lines and {DEFAULT_CAPS.bytes // 1024} KB" in peek
    assert (
        f"at most {recall_resources.USUAL.per_object} matches of one object and {recall_resources.USUAL.matches} in all"
        in search
    )
    assert (
        f"first {pattern_search.LONGEST_MATCH} characters of a long match and {pattern_search.AROUND} characters on each side"
        in search
    )
    assert f"after {recall_resources.USUAL.seconds * 1000:.0f}ms" in search
    assert f"{ingesting.MAX_FILES} files and {ingesting.MAX_BYTES:,} bytes" in ingest
    assert f"above {ingesting.CONFIRM_ABOVE} files" in ingest
    assert f"({manifest.BUDGET} tokens)" in " ".join(section("Manifest").split())
    assert f"beyond {trajectory.LARGEST // 1_000_000} MB" in " ".join(section("Trajectory log").split())
    assert trajectory.SUFFIX in section("Trajectory log")
    assert trajectory.KEPT == 3
    assert DISABLED in PAGE


def test_every_line_of_stats_is_named() -> None:
    told = section("`stats`")
    names = [line.split(":")[0] for line in stats_text(RecallFigures(Holdings(), None)).split("\n")]
    assert [name for name in names if f"`{name}`" not in told] == []


def test_every_hint_of_peek_is_on_the_page() -> None:
    told = section("`peek`")
    text = "x\n" * 3000
    hints = {
        *text_slices.by_characters("ID", text, 0, 9).hints,
        *text_slices.by_lines("ID", text, 1, 2500).hints,
        *text_slices.by_characters("ID", "[Showing it]").hints,
    }
    shown = [re.escape(one) for one in re.findall(r"`(\[[^`]*\])`", told)]
    patterns = [re.compile(re.sub(r"\b[A-CN]\b", r"\\d+", one)) for one in shown]
    assert [hint for hint in hints if not any(pattern.fullmatch(hint) for pattern in patterns)] == []
    assert len(hints) == 4

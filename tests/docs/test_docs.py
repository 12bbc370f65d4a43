import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from pagein.replay.policies.ablation import LAYERS
from pagein.replay.session_bill import EVERY_POLICY
from pagein.ui.columns import POLICY_MEANINGS

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob("*.md"))
    yield from sorted((root / "docs").rglob("*.md"))


def test_every_link_between_the_docs_leads_somewhere(root: Path) -> None:
    dead = [
        f"{page.relative_to(root)}: {target}"
        for page in pages(root)
        for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


def test_the_generated_pages_are_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/generate_docs.py", "--check"], cwd=root, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_stale_page_is_noticed_and_not_written(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script("generate_docs")
    monkeypatch.setattr(module, "REFERENCE", tmp_path)
    (tmp_path / "cli.md").write_text("old")
    monkeypatch.setattr(sys, "argv", ["generate_docs.py", "--check"])
    assert module.main() == 1
    assert (tmp_path / "cli.md").read_text() == "old"
    monkeypatch.setattr(sys, "argv", ["generate_docs.py"])
    assert module.main() == 0
    assert "pagein replay" in (tmp_path / "cli.md").read_text()


def test_the_comparison_has_the_measured_programs_and_no_figure_of_its_own(
    script: Callable[[str], ModuleType], root: Path
) -> None:
    measured = (root / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    changed = measured.replace("| `trimtok` | -3.3 % | -3.3 %", "| `trimtok` | -4.4 % | -3.5 %", 1)
    lines = [*script("generate_docs").peers(changed)]
    assert lines[0] == "| program | whole bill | breakpoint moved | prompt tokens | quotes lost | faults | refused |"
    assert "| `trimtok` | -4.4 % | -3.5 % | -3.3 % | 0 | 0 | 0 |" in lines
    assert len(lines) == 17


def test_every_policy_is_in_the_docs_and_has_a_meaning(root: Path) -> None:
    page = (root / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    assert [name for name in EVERY_POLICY if f"`{name}`" not in page] == []
    assert set(POLICY_MEANINGS) == set(EVERY_POLICY)


def test_every_layer_that_can_be_taken_away_is_in_the_docs(root: Path) -> None:
    page = (root / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    assert [name for name in LAYERS if f"- `{name}`: " not in page] == []


def test_every_command_of_the_tutorial_has_the_options_it_uses(root: Path) -> None:
    told = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    used = {
        option
        for name in ("README.md", "docs/replay.md", "docs/tutorial.md")
        for line in (root / name).read_text(encoding="utf-8").splitlines()
        if "pagein replay" in line
        for option in re.findall(r"(?<!\S)--[a-z-]+", line)
    }
    assert {option for option in used if f"`{option}" not in told and f", {option}" not in told} <= {"--help"}


def test_the_architecture_places_every_part_of_the_package(root: Path) -> None:
    picture = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = {path.name + ("/" if path.is_dir() else "") for path in (root / "src" / "pagein").iterdir()}
    shown = {part for part in parts if not part.startswith("_") and not part.endswith(".typed")}
    assert {part for part in shown if f"\n  {part} " not in picture} == set()


def test_every_module_that_the_docs_name_by_its_path_exists(root: Path) -> None:
    package = root / "src" / "pagein"
    parts = "|".join(path.name for path in package.iterdir() if path.is_dir() and not path.name.startswith("_"))
    gone = {
        f"{page.relative_to(root)}: {name}"
        for page in pages(root)
        for name in re.findall(rf"`((?:{parts})/[\w/]+\.py)`", page.read_text(encoding="utf-8"))
        if not (package / name).exists() and not (root / name).exists()
    }
    assert gone == set()


def test_no_page_names_a_module_without_its_folder(root: Path) -> None:
    """A bare name says nothing once a module moves. Generated pages say what the code says."""
    names = {path.name for folder in ("src", "tests", "scripts") for path in (root / folder).rglob("*.py")}
    bare = {
        f"{page.relative_to(root)}: {name}"
        for page in pages(root)
        if page.parent.name != "reference"
        for name in re.findall(r"`([\w*]+\.py)`", page.read_text(encoding="utf-8"))
        if (name in names or "*" in name) and not (root / "src" / "pagein" / name).exists()
    }
    assert bare == set()


def test_the_demo_is_shown_between_its_marks_and_nothing_else_changes(
    script: Callable[[str], ModuleType], root: Path
) -> None:
    module = script("show_demo")
    page = (root / "examples" / "README.md").read_text(encoding="utf-8")
    changed = module.with_tables(page, "TABLES\n")
    assert "TABLES" in changed
    assert module.with_tables(module.with_tables(changed, "OTHER\n"), "TABLES\n") == changed
    with pytest.raises(SystemExit, match="marks"):
        module.with_tables("no marks", "x")


def test_the_picture_of_the_demo_is_well_formed_and_loads_nothing(root: Path) -> None:
    text = (root / "docs" / "images" / "demo.svg").read_text(encoding="utf-8")
    tree = ET.fromstring(text)  # noqa: S314 - our own file
    assert tree.tag.endswith("svg")
    assert "href" not in text
    assert len(text) < 200_000


@pytest.mark.slow
def test_the_page_of_the_demo_shows_what_it_gives_today(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/show_demo.py", "--check"], cwd=root, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_every_link_to_a_heading_finds_it(root: Path) -> None:
    dead = []
    for page in pages(root):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
            goal = page if not target else page.parent / target
            if "://" not in target and goal.suffix == ".md" and anchor not in anchors(goal):
                dead.append(f"{page.relative_to(root)}: {target}#{anchor}")
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

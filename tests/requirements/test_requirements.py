"""Requirements are data: each is shown by a test that exists, or deferred with a reason and the capability that it waits for."""

import ast
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from pagein.cli.cli import app
from pagein.settings.keys import KEYS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def has_option(command: str, option: str) -> bool:
    return command in COMMANDS and any(option in parameter.opts for parameter in COMMANDS[command].params)


CAPABILITIES: dict[str, Callable[[], bool]] = {
    "agent hooks": lambda: "hook" in COMMANDS,
    "blame": lambda: "blame" in COMMANDS,
    "followed files of sessions": lambda: any("follow" in name for name in KEYS),
    "layouts": lambda: has_option("replay", "--layout"),
    "inspector overlay in pi": (Path(__file__).parents[2] / "extensions" / "pi" / "overlay.ts").exists,
    "MCP server": lambda: "mcp" in COMMANDS,
    "objects of sessions": lambda: "sessions" in COMMANDS,
    "summaries by a model": lambda: any("summar" in name for name in KEYS),
    "symbol map": lambda: "symbols" in COMMANDS,
    "totals that outlive retention": lambda: "totals" in COMMANDS,
    "unified read": lambda: has_option("read", "--mode"),
}
"""What requirements wait for, and whether a user can reach it yet: by the command, option or folder that brings it."""
LISTS = sorted(Path(__file__).parent.glob("*.toml"))


def requirements(path: Path) -> list[dict[str, object]]:
    found = tomllib.loads(path.read_text(encoding="utf-8"))["requirement"]
    assert isinstance(found, list)
    return found


def named_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_requirement_is_shown_by_a_test_or_deferred_with_a_reason(path: Path) -> None:
    for requirement in requirements(path):
        shown, reason = requirement.get("tests"), requirement.get("deferred")
        assert bool(shown) != bool(reason), requirement["id"]
        assert bool(reason) == (requirement.get("waits_for") in CAPABILITIES), requirement["id"]
        assert requirement["source"], requirement["id"]
        assert requirement["says"], requirement["id"]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_test_that_a_requirement_names_exists(path: Path) -> None:
    named = {str(name) for requirement in requirements(path) for name in requirement.get("tests", ())}  # type: ignore[attr-defined]
    missing = set()
    for name in named:
        file, _, function = name.partition("::")
        if not (ROOT / file).exists() or function not in named_in(ROOT / file):
            missing.add(name)
    assert missing == set()


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_nothing_waits_for_what_is_there(path: Path) -> None:
    waiting = {str(one["id"]): str(one["waits_for"]) for one in requirements(path) if one.get("deferred")}
    assert {name: waits for name, waits in waiting.items() if CAPABILITIES[waits]()} == {}


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_no_requirement_stands_twice(path: Path) -> None:
    ids = [requirement["id"] for requirement in requirements(path)]
    assert len(ids) == len(set(ids))


def test_every_row_of_the_matrix_is_claimed() -> None:
    ids = {requirement["id"] for requirement in requirements(Path(__file__).parent / "readcache.toml")}
    assert {f"matrix:{row:02}" for row in range(1, 31)} <= ids


def test_every_test_of_a_matrix_row_belongs_to_a_claimed_row() -> None:
    for file in (ROOT / "tests").rglob("test_matrix.py"):
        for name in named_in(file):
            if not name.startswith("test_matrix_"):
                continue
            assert 1 <= int(name.removeprefix("test_matrix_")[:2]) <= 30, name


def test_every_defect_of_the_prior_art_is_claimed_or_deferred() -> None:
    ids = {requirement["id"] for requirement in requirements(Path(__file__).parent / "prior_art.toml")}
    assert {f"P{number:02}" for number in range(1, 46)} <= ids


def test_every_complaint_of_users_is_claimed_or_deferred() -> None:
    ids = {requirement["id"] for requirement in requirements(Path(__file__).parent / "users.toml")}
    counts = {1: 7, 2: 7, 3: 6, 4: 6, 5: 3, 6: 4, 7: 1, 8: 6, 9: 3, 10: 5, 11: 5, 12: 2, 13: 1, 14: 1}
    assert ids == {f"U{group}.{number}" for group, count in counts.items() for number in range(1, count + 1)}


def test_every_section_of_two_designs_has_a_row() -> None:
    folder = Path(__file__).parent
    rlm = {str(one["source"]) for one in requirements(folder / "pi_rlm.toml")}
    assert {"3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "4.1", "4.4", "4.5", "6", "8", "10", "14.6"} <= rlm
    assert {f"5.{number}" for number in (1, 3, 4, 5)} | {f"7.{number}" for number in range(1, 7)} <= rlm
    assert {"9.1", "9.2", "11.1", "11.2", "11.3", "11.4", "12.1", "12.2"} <= rlm
    memory = {str(one["source"]).partition(".")[0] for one in requirements(folder / "memory_system.toml")}
    assert {str(number) for number in range(1, 15)} <= memory
    sections = {4: 5, 5: 3, 6: 5, 7: 3, 8: 3, 11: 7, 12: 4}
    every = {str(one["source"]) for one in requirements(folder / "memory_system.toml")}
    assert {f"{section}.{number}" for section, count in sections.items() for number in range(1, count + 1)} <= every | {
        "6.1",
        "6.2",
        "6.3",
    }
    assert {f"3.{number}" for number in range(1, 6)} | {"4.2.1"} <= every


def test_every_requirement_of_the_memory_system_is_shown_on_the_way_of_a_user() -> None:
    inside = ("tests/policy/", "tests/model/")
    rows = requirements(Path(__file__).parent / "memory_system.toml")
    shown = {str(one["id"]): [str(name) for name in one.get("tests", ())] for one in rows}  # type: ignore[attr-defined]
    assert [name for name, tests in shown.items() if tests and all(test.startswith(inside) for test in tests)] == []


def test_every_section_and_every_defect_of_the_unified_read_has_a_row() -> None:
    rows = requirements(Path(__file__).parent / "unified_read.toml")
    sections = {str(one["source"]).partition(" / ")[0] for one in rows}
    assert sections >= {
        "Goal", "Scope Decision", "New Tool Surface", "Mode Routing", "Validation Rules", "Response Contract",
        "Token Budget Policy", "Stabilization", "Integration Points", "API", "Failure Modes & Policies",
        "Backward Compatibility Strategy", "Non-Goals", "Risks & Mitigations",
    }  # fmt: skip
    assert {f"defect:U{number}" for number in range(1, 10)} <= {str(one["id"]) for one in rows}


def test_every_section_of_the_cache_tiers_has_a_row() -> None:
    sections = {str(one["source"]) for one in requirements(Path(__file__).parent / "cache_tiers.toml")}
    assert sections == {
        "Tier Structure",
        "N Progression",
        "Content Hashing",
        "Graduation",
        "Files and Symbols",
        "History Messages",
        "Ripple Promotion",
        "Threshold-Aware Promotion",
        "Ripple Detection",
        "Cache Block Structure",
        "History Format",
        "Symbol Map Exclusion",
        "Demotion",
        "Initialization",
        "Configuration",
        "Persistence",
    }

"""Cited laws and rules are defined, named paths exist, and no document outside the repository is cited."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

DEFINITION = re.compile(r"^(?:\| ([A-Z]\d{1,2}) \||\*\*Law (\d)\. )", re.MULTILINE)
CITED_RULE = re.compile(r"(?<![\w#.\-/])([AOMCRT]\d{1,2})(?:-([AOMCRT]?\d{1,2}))?\b(?!\.\d)")
CITED_LAW = re.compile(r"\b[Ll]aws? (\d+)((?:(?:, | and )\d+)*)")
# Documents that were material while pagein was designed, and are no part of the repository.
FOREIGN = re.compile(
    r"\bnotes/[a-z-]+|\bprior[ -]art\b|\bmemory-system\b|\bpi-rlm spec|\bcache-economics\b|\bprovider[ -](?:notes|rules)\b"
    r"|\bnotes on [a-z]|\breal-sessions\b|\bDESIGN\b|\bunified-read\b|\bcache-tiers\b|\breadcache spec\b|\(spec \d|\bspecs/"
    r"|\bissue \d+(?: \(|, item)"
)
# The pages that define them: each id in one place.
DEFINING = ("docs/laws.md", "docs/reference/rules.md", "docs/reference/caches.md")
FOLDERS = ("src", "docs", "tests", "scripts", "examples", "benchmarks")
OWN = "tests/docs/test_citations.py"
# Lists of requirements have ids of their own, and name the sections of the specifications that they were taken from.
LISTS = "tests/requirements/"
PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|ts|html|js|sh)|(?:[\w.-]+/)+)`")
PAGES_WITH_PATHS = ("docs/laws.md", "docs/architecture.md", "docs/reference/where.md", "CONTRIBUTING.md", "SECURITY.md")
# Names that a reader is told to give, or files that a user has: no paths of this repository.
EXAMPLES = frozenset({"pagein.toml"})


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """The files of the repository that are written by people, by their path."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)  # noqa: S607 - git
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    for name in sorted(done.stdout.split("\0")):
        path = root / name
        folder = name.partition("/")[0]
        is_ours = (folder in FOLDERS and "/fixtures/" not in name) or "/" not in name
        if (
            is_ours
            and name != OWN
            and not name.startswith(LISTS)
            and path.suffix in {".py", ".md", ".toml"}
            and path.is_file()
        ):
            yield name, path.read_text(encoding="utf-8")


def defined(root: Path) -> set[str]:
    return {rule or f"law {law}" for rule, law in definitions(root)}


def definitions(root: Path) -> list[tuple[str, str]]:
    return [found for page in DEFINING for found in DEFINITION.findall((root / page).read_text(encoding="utf-8"))]


def cited(text: str) -> set[str]:
    found: set[str] = set()
    for first, last in CITED_RULE.findall(text):
        found.add(first)
        if last:
            found.add(last if last[0].isalpha() else first[0] + last)
    for first, more in CITED_LAW.findall(text):
        found |= {f"law {number}" for number in (first, *re.findall(r"\d+", more))}
    return found


def test_every_law_and_rule_that_is_cited_is_defined(root: Path) -> None:
    known = defined(root)
    assert {name: missing for name, text in texts(root) if (missing := cited(text) - known)} == {}


def test_a_rule_is_defined_once(root: Path) -> None:
    found = [rule or law for rule, law in definitions(root)]
    assert sorted(found) == sorted(set(found))
    assert [one for one in found if one.isdigit()] == [str(number) for number in range(1, 10)]


def test_every_rule_that_the_code_checks_is_defined(root: Path) -> None:
    from pagein.providers.wire import RULES

    assert set(RULES) - defined(root) == set()


def test_citations_are_told_from_other_words() -> None:
    assert cited("rules M14-M17, C4; law 2 and 3, A1-A3 (T2)") == {
        "M14",
        "M17",
        "C4",
        "law 2",
        "law 3",
        "A1",
        "A3",
        "T2",
    }
    assert cited("UTF-8, x.M1, R4D2, #A3, laws of the house") == set()


def test_no_document_is_cited_that_is_not_in_the_repository(root: Path) -> None:
    offenders = {
        f"{name}:{number}: {match[0]}"
        for name, text in texts(root)
        for number, line in enumerate(text.splitlines(), 1)
        if (match := FOREIGN.search(line))
    }
    assert offenders == set()


@pytest.mark.parametrize("page", PAGES_WITH_PATHS)
def test_every_path_on_the_page_exists(root: Path, page: str) -> None:
    named = set(PATH.findall((root / page).read_text(encoding="utf-8"))) - EXAMPLES
    assert named
    assert {
        name for name in named if not any((top / name).exists() for top in (root, root / "src" / "pagein"))
    } == set()

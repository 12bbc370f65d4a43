"""The rules of the house that no linter knows."""

import ast
import configparser
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_MODULE = 400
MEDIAN_MODULE = 150
# Modules whose names end as those of activities, and why they stay.
NAMED_IN_ING = {
    "engine/window/old_thinking": "thinking is a kind of block",
    "wiring": "the usual word for the place where parts are put together",
}
# A name that may be one bare participle.
PARTICIPLE = re.compile(
    r"_?[A-Za-z]+(ed|ing)"
    r"|_?(kept|told|said|known|held|sent|stood|shown|given|gone|made|read|left|put|meant|found|seen|taken|begun|worn)",
    re.IGNORECASE,
)
# Classes whose names end as participles, and why they stay.
NAMED_AS_PARTICIPLE = {
    "BadSetting": "a setting is a thing: a key with its value",
    "FileDeed": "a deed is a thing: what a call did to a file",
    "Thinking": "thinking is a kind of block, in the providers' own word",
    "TierSeed": "a seed is a thing: what an item begins with",
}
# Class names with more than one class, and why.
SHARED_NAMES: dict[str, str] = {}
# What `import pagein` must not cost its users. The command line's own libraries are among them.
HEAVY = {
    "aiohttp",
    "asyncio",
    "httpx",
    "msgspec",
    "multiprocessing",
    "pydantic",
    "rich",
    "sqlite3",
    "typer",
    "zstandard",
}
# What answering `--version` must not load.
HEAVY_FOR_VERSION = {"aiohttp", "msgspec", "multiprocessing", "sqlite3", "zstandard", "pagein.replay", "pagein.engine"}
NAMES_OF_NOTHING = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after some code."""
    show = f"import sys\n{code}\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return set(done.stdout.split())


def tracked() -> list[Path]:
    """The files of the repository, or a skip where it is none (an unpacked sdist)."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - git
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_importing_pagein_loads_nothing_heavy() -> None:
    assert not loaded("import pagein; pagein.__version__") & HEAVY


def test_the_command_line_starts_without_the_engine() -> None:
    assert not loaded("import pagein.cli.cli") & HEAVY_FOR_VERSION


def test_the_command_line_never_looks_for_garbage_among_its_modules() -> None:
    """A short command would spend a tenth of its time on that. Later garbage is found."""
    found = loaded("import gc, pagein.__main__; assert gc.isenabled() and gc.get_freeze_count() > 10_000")
    assert "pagein.cli.cli" in found


def test_blame_knows_edits_and_no_reads() -> None:
    found = loaded("import pagein.tools.blame_commands")
    assert not found & {"pagein.policy.clients.client_reads", "pagein.policy.reads.knowledge"}


def test_importing_pagein_loads_little() -> None:
    assert len(loaded("import pagein") - loaded("")) < 60


def test_no_module_is_longer_than_it_may_be() -> None:
    lengths = {place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_modules_are_named_by_their_subject() -> None:
    assert [place(path) for path in SOURCES if path.stem in NAMES_OF_NOTHING] == []


def test_modules_are_short_and_named_by_a_thing() -> None:
    assert statistics.median(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES) <= MEDIAN_MODULE
    activities = {place(path.with_suffix("")).removeprefix("pagein/") for path in SOURCES if path.stem.endswith("ing")}
    assert activities == set(NAMED_IN_ING)


@cache
def syntax_trees() -> dict[str, ast.Module]:
    return {place(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


@cache
def class_names() -> list[str]:
    return [node.name for tree in syntax_trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_no_class_is_named_by_a_bare_participle() -> None:
    assert {name for name in class_names() if PARTICIPLE.fullmatch(name)} == set(NAMED_AS_PARTICIPLE)


def test_a_class_name_has_one_meaning() -> None:
    assert {name for name, count in Counter(class_names()).items() if count > 1} == set(SHARED_NAMES)


def place(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


def test_what_is_public_says_what_it_means() -> None:
    """Modules, functions, classes, and the methods of Protocols, which are contracts."""
    assert sorted(missing for name, tree in syntax_trees().items() for missing in undocumented(name, tree)) == []


def undocumented(name: str, tree: ast.Module) -> Iterator[str]:
    if not ast.get_docstring(tree):
        yield name
    yield from (f"{name}: {function.name}" for function in public_functions(tree) if not ast.get_docstring(function))
    for path, owner in public_classes(tree):
        if not ast.get_docstring(owner):
            yield f"{name}: {path}"
        promises = public_functions(owner) if any("Protocol" in ast.unparse(base) for base in owner.bases) else ()
        yield from (
            f"{name}: {path}.{method.name}"
            for method in promises
            if not (ast.get_docstring(method) or is_a_field(method))
        )


def public_functions(owner: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in owner.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node


def public_classes(owner: ast.Module | ast.ClassDef, above: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    for node in owner.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield above + node.name, node
            yield from public_classes(node, f"{above}{node.name}.")


def is_a_field(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A property of a Protocol, which the docstring of the class explains."""
    return "property" in {ast.unparse(mark) for mark in node.decorator_list}


def private_hosts() -> set[str]:
    """Hosts of package registries: the well-known ones, and whatever this machine is set up to use."""
    found = {"pypi." + "org", "files.python" + "hosted.org", "registry.npm" + "js.org", "deb.deb" + "ian.org"}
    addresses = [
        value for name, value in os.environ.items() if name.lower().endswith(("index_url", "npm_config_registry"))
    ]
    for path in (Path("/etc/pip.conf"), Path.home() / ".pip/pip.conf", Path.home() / ".config/pip/pip.conf"):
        settings = configparser.ConfigParser(interpolation=None)
        settings.read(path)
        addresses += [settings[part][key] for part in settings for key in settings[part] if key.endswith("index-url")]
    return found | {host for address in addresses if (host := urlsplit(address).hostname)}


def test_no_file_names_a_registry_or_a_path_of_the_machine_it_was_made_on() -> None:
    hosts = "|".join(map(re.escape, private_hosts()))
    # written in pieces, so that this file does not find itself
    folders = ("work/" + "(main|shared|\\.library)", "tmp/" + "(brief|bash_jobs)", "root" + "/")
    own = [re.escape(str(ROOT))] if len(ROOT.parts) > 2 else []  # a checkout right under the root has too common a name
    paths = "|".join([*(f"/{folder}" for folder in folders), *own])
    forbidden = re.compile(f"(?<![\\w.])({hosts}|{paths})(?![\\w.])".encode())
    offenders = {
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in tracked()
        for match in [forbidden.search(path.read_bytes())]
        if match
    }
    assert offenders == set()


def test_no_file_holds_a_secret() -> None:
    shapes = (
        "sk-" + "ant-[A-Za-z0-9_-]{20}",
        "gh" + "[pousr]_[A-Za-z0-9]{36}",
        "AK" + "IA[0-9A-Z]{16}",
        "BEGIN [A-Z ]*" + "PRIVATE KEY",
    )
    forbidden = re.compile("|".join(shapes).encode())
    offenders = {str(path.relative_to(ROOT)) for path in tracked() if forbidden.search(path.read_bytes())}
    assert offenders == set()


def test_a_lock_is_installed_without_looking_for_newer_releases() -> None:
    """Where pip resolves, it may take up a newer release that a package wants with an extra, and refuse it for want of a hash."""
    with_hashes = [
        line
        for path in (ROOT / "Makefile", *(ROOT / "scripts").glob("*.sh"), *(ROOT / "benchmarks").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "--require-hashes" in line
    ]
    assert with_hashes
    assert all("--no-deps" in line for line in with_hashes)


def test_every_test_folder_stands_for_something() -> None:
    """A test module that collects nothing would pass for ever."""
    empty = [
        path.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "def test_" not in path.read_text(encoding="utf-8")
    ]
    assert empty == []


def test_tests_stand_where_their_subject_stands() -> None:
    """A folder of tests is a package of the source, or one of those that are about all of it."""
    others = {"agents", "behaviour", "benchmarks", "docs", "fixtures", "journeys", "laws", "requirements", "scripts"}
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")}
    packages = {path.parent.relative_to(ROOT / "src" / "pagein") for path in SOURCES}
    assert {folder.as_posix() for folder in folders - packages if folder.parts[0] not in others} == set()

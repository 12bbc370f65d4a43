"""The place where the agent works: a pinned source tree under git, and a pinned test runner."""

import hashlib
import os
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

from scripts.demo_session.plain import Plain
from scripts.demo_session.tools import SHOWN_ROOT, Tools

PACKAGE = "click==8.1.8"
SDIST = "click-8.1.8.tar.gz"
SDIST_SHA256 = "ed53c9d8990d83c2a27deae68e4ee337473f6330c040a31d4225c9574d16096a"
RUNNER = ("pytest==8.3.5", "pluggy==1.5.0", "iniconfig==2.0.0", "packaging==24.2")
_STARTED = "2026-10-01T09:00:00+00:00"


@dataclass(frozen=True, slots=True)
class Supplies:
    """What must be fetched once: the source distribution and a virtual environment with the test runner."""

    sdist: Path
    environment: Path


def fetch(cache: Path) -> Supplies:
    """Download what is not in `cache` yet, with pip as it is configured here. Needs the network the first time."""
    cache.mkdir(parents=True, exist_ok=True)
    sdist, environment = cache / SDIST, cache / "venv"
    if not sdist.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--no-binary", ":all:", "--dest", str(cache), PACKAGE], check=True)
    found = hashlib.sha256(sdist.read_bytes()).hexdigest()
    if found != SDIST_SHA256:
        raise ValueError(f"{sdist}: sha256 is {found}, expected {SDIST_SHA256}; delete it and run again")
    if not (environment / "bin" / "pytest").exists():
        venv.create(environment, with_pip=True, symlinks=True)
        python = str(environment / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *RUNNER], check=True)
    return Supplies(sdist, environment)


def set_up(supplies: Supplies, folder: Path) -> Tools:
    """Unpack the tree below `folder`, commit it, and hand out the tools that work on it."""
    with tarfile.open(supplies.sdist) as archive:
        archive.extractall(folder, filter="data")
    root, scratch = folder / "repo", folder / "scratch"
    (folder / SDIST.removesuffix(".tar.gz")).rename(root)
    (root / "PKG-INFO").unlink()
    scratch.mkdir()
    environment = _environment(supplies, root, scratch)
    paths = sorted(
        {
            (str(root), SHOWN_ROOT),
            (os.path.realpath(root), SHOWN_ROOT),
            (str(scratch), "/scratch"),
            (str(supplies.environment), "/opt/venv"),
            (sys.base_prefix + "/lib/", "/usr/lib/"),
        },
        key=lambda pair: -len(pair[0]),
    )
    tools = Tools(root, environment, Plain(tuple(paths)))
    _commit_everything(root, environment)
    return tools


def _environment(supplies: Supplies, root: Path, scratch: Path) -> dict[str, str]:
    """All that a command sees: nothing of the person or machine that runs the script."""
    return {
        "PATH": f"{supplies.environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(root / "src"),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "80",
        "TERM": "dumb",
        "GIT_AUTHOR_NAME": "Demo Agent",
        "GIT_AUTHOR_EMAIL": "agent@example.com",
        "GIT_COMMITTER_NAME": "Demo Agent",
        "GIT_COMMITTER_EMAIL": "agent@example.com",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
    }


def _commit_everything(root: Path, environment: dict[str, str]) -> None:
    dated = {**environment, "GIT_AUTHOR_DATE": _STARTED, "GIT_COMMITTER_DATE": _STARTED}
    (root / ".gitignore").write_text("__pycache__/\n*.pyc\n", encoding="utf-8")
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        ["-c", "core.autocrlf=false", "commit", "--quiet", "--message=Release version 8.1.8"],
    ):
        subprocess.run(["git", *command], cwd=root, env=dated, check=True)

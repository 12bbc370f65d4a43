"""The git history of a workspace, kept outside of it: the content of each file after each call. An oracle without any code of
pagein.

A commit is made before each model call is answered, so it holds what the calls of the answer before have done.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

_CALL: Final = re.compile(r"\A(?:toolu|call)_[0-9a-f]{16}_\d+\Z")
_RESULT_FIELDS: Final = ("tool_use_id", "call_id", "tool_call_id")
_ORIGIN: Final = re.compile(r"\A([0-9a-f]{40}) \d+ (\d+)")


@dataclass(frozen=True, slots=True)
class Commit:
    """A folder of the workspace before a model call. name: of the script that answers. calls: ids of the calls whose results came."""

    digest: str
    name: str
    calls: frozenset[str]


class WorkspaceGit:
    """A repository with its files in one folder and its work in another."""

    def __init__(self, repository: Path, workspace: Path) -> None:
        self._workspace = workspace
        self._environment = {
            "PATH": os.environ["PATH"],
            "GIT_DIR": str(repository),
            "GIT_WORK_TREE": str(workspace),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "oracle@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        self.commits: list[Commit] = []
        self._seen: set[str] = set()
        self._turn = Lock()  # agents work at the same time, and git refuses a second writer
        self.run("init", "-q")
        self.commit("start", {})  # the files that are there

    def run(self, *arguments: str, given: bytes | None = None) -> bytes:
        """What a git command printed."""
        return subprocess.run(  # noqa: S603 -- git
            ["git", *arguments],  # noqa: S607
            cwd=self._workspace,
            env=self._environment,
            input=given,
            check=True,
            capture_output=True,
        ).stdout

    def commit(self, name: str, body: object, folder: str = ".") -> None:
        """Keep a folder as it is before a model call with this body is answered."""
        with self._turn:
            calls = frozenset(_results_in(body)) - self._seen
            self._seen |= calls
            self.run("add", "-A", "--", folder)
            self.run("commit", "-q", "--allow-empty", "-m", name or "aside")
            self.commits.append(Commit(self.run("rev-parse", "HEAD").decode().strip(), name, calls))

    def commit_after(self, call: str) -> Commit:
        """The first commit in which a call is done."""
        return next(one for one in self.commits if call in one.calls)

    def text(self, commit: str, path: str) -> str | None:
        """The content of a file in a commit; None where there is none."""
        try:
            return self.run("show", f"{commit}:{path}").decode()
        except subprocess.CalledProcessError:
            return None

    def authors(self, path: str) -> list[Commit]:
        """The commit that each line of a file is from."""
        by_digest = {one.digest: one for one in self.commits}
        printed = self.run("blame", "--porcelain", "-w", "-M", "HEAD", "--", path).decode().splitlines()
        return [by_digest[found[1]] for line in printed if (found := _ORIGIN.match(line))]

    def paths_with(self, text: str) -> set[str]:
        """The files in which a text stood in any commit."""
        found = self.run("log", "--format=", "--name-only", f"-S{text}").decode()
        return set(found.split())

    def paths(self) -> set[str]:
        """All files that were there in any commit."""
        return set(self.run("log", "--format=", "--name-only", "--no-renames").decode().split())

    def applied(self, before: str, patch: str, folder: Path) -> str:
        """A text after a patch, as git applies it."""
        folder.mkdir(exist_ok=True)
        (folder / "text").write_bytes(before.encode())
        given = re.sub(r"^(---|\+\+\+) .*$", r"\1 a/text", patch, count=2, flags=re.MULTILINE)
        # outside any repository, in which git would look for the paths
        free = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        command = ["git", "apply", "--unsafe-paths", "-"]
        ran = subprocess.run(command, cwd=folder, env=free, input=given.encode(), check=False, capture_output=True)  # noqa: S603
        assert ran.returncode == 0, (ran.stderr.decode(), given)
        return (folder / "text").read_bytes().decode()


def _results_in(body: object) -> Iterator[str]:
    """The ids of the results in a request, whatever its format."""
    if isinstance(body, dict):
        kind = str(body.get("type", ""))
        for name in _RESULT_FIELDS:
            value = body.get(name)
            if (
                isinstance(value, str)
                and _CALL.match(value)
                and not (name == "call_id" and not kind.endswith("output"))
            ):
                yield value
        for value in body.values():
            yield from _results_in(value)
    elif isinstance(body, Sequence) and not isinstance(body, str | bytes):
        for value in body:
            yield from _results_in(value)

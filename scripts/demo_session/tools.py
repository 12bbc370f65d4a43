"""The agent's tools, in the form of Claude Code's tools, run on a real folder."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scripts.demo_session.plain import Plain
from scripts.demo_session.screenplay import Deed, Option

Json = dict[str, object]
SHOWN_ROOT = "/repo"
_READ_LINES = 2000
_SHELL_CHARACTERS = 30_000
_SHELL_SECONDS = 120
_SNIPPET = 4
_SED = re.compile(r"\bsed -n '(\d+),(\d+)p' ([\w./-]+)")
_CAT = re.compile(r"^cat ([\w./-]+)$")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One tool call as it is recorded. seconds: how long such a call is said to have taken."""

    args: Json
    text: str
    seconds: float
    is_error: bool = False
    ops: tuple[Json, ...] = ()
    meta: Json = field(default_factory=dict)


class ToolError(Exception):
    """The tool refuses. The message is what the model is told."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools over the working tree at `root`; commands get exactly `environment`, dated by `now` for git."""

    root: Path
    environment: Mapping[str, str]
    plain: Plain

    def run(self, deed: Deed, now: str) -> Outcome:
        """Do it. A refusal is an outcome where the deed expects one, else ValueError: the screenplay is wrong."""
        if deed.tool == "Bash":
            return self._bash(deed, now)
        acts: dict[str, Callable[[Deed], Outcome]] = {
            "Read": self._read,
            "Edit": self._edit,
            "Write": self._write,
            "Grep": self._grep,
            "Glob": self._glob,
        }
        try:
            outcome = acts[deed.tool](deed)
        except ToolError as refusal:
            if not deed.fails:
                raise ValueError(f"{deed.tool} {deed.subject}: {refusal}") from refusal
            args: Json = {"file_path": f"{SHOWN_ROOT}/{deed.subject}", **_edit_args(deed.options)}
            return Outcome(args, str(refusal), 0.05, is_error=True, ops=({"op": "edit", "path": deed.subject},))
        if deed.fails:
            raise ValueError(f"{deed.tool} {deed.subject}: expected to be refused, but went through")
        return outcome

    def _read(self, deed: Deed) -> Outcome:
        lines = (self.root / deed.subject).read_text(encoding="utf-8").split("\n")
        if lines and not lines[-1]:
            lines.pop()
        offset, limit = int(deed.options.get("offset", 1)), int(deed.options.get("limit", _READ_LINES))
        shown = lines[offset - 1 : offset - 1 + limit]
        given: Json = {key: deed.options[key] for key in ("offset", "limit") if key in deed.options}
        whole = "limit" not in given
        op: Json = {
            "op": "read",
            "path": deed.subject,
            "start": offset if "offset" in given else None,
            "end": None if whole else offset + limit - 1,
            "via": "native",
        }
        return Outcome(
            {"file_path": f"{SHOWN_ROOT}/{deed.subject}", **given},
            _gutter(shown, offset),
            0.04,
            ops=(op,),
            meta={"start": offset, "lines": len(shown), "total_lines": len(lines)},
        )

    def _edit(self, deed: Deed) -> Outcome:
        path = self.root / deed.subject
        before = path.read_text(encoding="utf-8")
        old, new = str(deed.options["old"]), str(deed.options["new"])
        found = before.count(old)
        if not found:
            raise ToolError(f"String to replace not found in file.\nString: {old}")
        if found > 1 and not deed.options.get("all"):
            raise ToolError(f"Found {found} matches of the string to replace, but replace_all is false.\nString: {old}")
        after = before.replace(old, new)
        path.write_text(after, encoding="utf-8")
        shown = f"{SHOWN_ROOT}/{deed.subject}"
        if deed.options.get("all"):
            text = f"The file {shown} has been updated. All {found} occurrences were replaced."
        else:
            text = (
                f"The file {shown} has been updated. Here's the result of running `cat -n` on a snippet of the edited "
                f"file:\n{_snippet(after, before.index(old), new)}"
            )
        op: Json = {"op": "edit", "path": deed.subject}
        return Outcome({"file_path": shown, **_edit_args(deed.options)}, text, 0.06, ops=(op,))

    def _write(self, deed: Deed) -> Outcome:
        path, content = self.root / deed.subject, str(deed.options["content"])
        text = f"{'Updated' if path.exists() else 'Created'} {SHOWN_ROOT}/{deed.subject}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        args: Json = {"file_path": f"{SHOWN_ROOT}/{deed.subject}", "content": content}
        return Outcome(args, text, 0.05, ops=({"op": "write", "path": deed.subject},))

    def _grep(self, deed: Deed) -> Outcome:
        where, shape = str(deed.options.get("path", "")), str(deed.options.get("mode", "files_with_matches"))
        around = int(deed.options.get("C", 0))
        pattern = re.compile(deed.subject)
        args: Json = {"pattern": deed.subject}
        if where:
            args["path"] = f"{SHOWN_ROOT}/{where}"
        if "glob" in deed.options:
            args["glob"] = deed.options["glob"]
        args["output_mode"] = shape
        if shape == "content":
            args |= {"-n": True} | ({"-C": around} if around else {})
        hits: list[str] = []
        for path in self._files(where, str(deed.options.get("glob", "*"))):
            lines = path.read_text(encoding="utf-8").split("\n")
            found = [number for number, line in enumerate(lines) if pattern.search(line)]
            name = path.relative_to(self.root).as_posix()
            hits += _hits(name, lines, found, around) if shape == "content" else [name] if found else []
        text = "\n".join(hits) if hits else "No matches found"
        if hits and shape != "content":
            text = f"Found {len(hits)} file{'s' if len(hits) > 1 else ''}\n{text}"
        return Outcome(args, text, 0.12)

    def _glob(self, deed: Deed) -> Outcome:
        found = sorted(self.root.glob(deed.subject))
        text = "\n".join(f"{SHOWN_ROOT}/{path.relative_to(self.root).as_posix()}" for path in found if path.is_file())
        return Outcome({"pattern": deed.subject}, text or "No files found", 0.08)

    def _files(self, where: str, glob: str) -> list[Path]:
        start = self.root / where
        if start.is_file():
            return [start]
        return sorted(
            path
            for path in start.rglob(glob)
            if path.is_file() and path.suffix in {".py", ".rst", ".toml", ".md"} and ".git" not in path.parts
        )

    def _bash(self, deed: Deed, now: str) -> Outcome:
        done = subprocess.run(
            ["/bin/bash", "-c", deed.subject],
            cwd=self.root,
            env={**self.environment, "GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=_SHELL_SECONDS,
            check=False,
        )
        if bool(done.returncode) != deed.fails:
            raise ValueError(f"exit status {done.returncode} of: {deed.subject}\n{done.stdout.decode()[-3000:]}")
        text = self.plain(done.stdout.decode("utf-8", "replace")).rstrip("\n")
        if done.returncode:
            text = f"Exit code {done.returncode}\n{text}"
        args: Json = {"command": deed.subject}
        if "why" in deed.options:
            args["description"] = deed.options["why"]
        seconds = 3.4 if "pytest" in deed.subject else 0.4
        return Outcome(args, _cut(text), seconds, is_error=bool(done.returncode), ops=_shell_reads(deed.subject))


def _edit_args(options: Mapping[str, Option]) -> Json:
    args: Json = {"old_string": options.get("old", ""), "new_string": options.get("new", "")}
    return args | ({"replace_all": True} if options.get("all") else {})


def _gutter(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:6d}→{line}" for number, line in enumerate(lines, first))


def _snippet(text: str, position: int, new: str) -> str:
    lines = text.split("\n")
    top = text.count("\n", 0, position)
    start, end = max(0, top - _SNIPPET), min(len(lines), top + new.count("\n") + 1 + _SNIPPET)
    return _gutter(lines[start:end], start + 1)


def _hits(name: str, lines: list[str], found: list[int], around: int) -> list[str]:
    shown: list[str] = []
    last = -1
    for number in found:
        for near in range(max(last + 1, number - around), min(len(lines), number + around + 1)):
            mark = ":" if near in found else "-"
            shown.append(f"{name}{mark}{near + 1}{mark}{lines[near]}")
            last = near
    return shown


def _shell_reads(command: str) -> tuple[Json, ...]:
    """Files that a command line plainly reads, as the corpus does it: best effort."""
    ranges = [
        {"op": "read", "path": path, "start": int(start), "end": int(end), "via": "shell", "filtered": False}
        for start, end, path in _SED.findall(command)
    ]
    whole = [
        {"op": "read", "path": path, "start": None, "end": None, "via": "shell", "filtered": False}
        for path in _CAT.findall(command)
    ]
    return (*ranges, *whole)


def _cut(text: str) -> str:
    """Claude Code shows 30 000 characters of a command's output; the middle goes."""
    if len(text) <= _SHELL_CHARACTERS:
        return text
    half = _SHELL_CHARACTERS // 2
    head, tail = text[:half].rsplit("\n", 1)[0], text[-half:].split("\n", 1)[1]
    gone = text[len(head) : -len(tail)].count("\n") - 1
    return f"{head}\n\n... [{gone} lines truncated] ...\n\n{tail}"

"""The actions of the scripted agent: scenes read from TOML files, one per user task."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("Read", "Edit", "Write", "Grep", "Glob", "Bash")
Option = str | int | bool


@dataclass(frozen=True, slots=True)
class Deed:
    """One tool call. subject: the path, pattern or command; fails: the tool itself is expected to refuse."""

    tool: str
    subject: str
    options: dict[str, Option]
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One model call: what it thinks, says and does. A step without deeds hands the turn back to the user."""

    think: str
    say: str
    deeds: tuple[Deed, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """One user message, `pause` minutes after the previous turn ended, and the model calls that answer it."""

    name: str
    user: str
    pause: float
    steps: tuple[Step, ...]


def _deed(row: dict[str, Option], where: str) -> Deed:
    tools = [key for key in row if key in TOOLS]
    if len(tools) != 1:
        raise ValueError(f"{where}: a deed names one of {', '.join(TOOLS)}; found {sorted(row)}")
    tool = tools[0]
    options = {key: value for key, value in row.items() if key not in {tool, "fails"}}
    return Deed(tool, str(row[tool]), options, fails=bool(row.get("fails", False)))


def read_scene(path: Path) -> Scene:
    """One scene. Raises ValueError naming the file and the step."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    steps = tuple(
        Step(
            think=step.get("think", "").strip(),
            say=step.get("say", "").strip(),
            deeds=tuple(_deed(row, f"{path.name}, step {number}") for row in step.get("do", ())),
        )
        for number, step in enumerate(rows["step"], 1)
    )
    return Scene(path.stem, rows["user"].strip(), float(rows.get("pause", 0)), steps)


def read_scenes(folder: Path) -> Iterator[Scene]:
    """All scenes, in the order of their file names."""
    for path in sorted(folder.glob("*.toml")):
        yield read_scene(path)

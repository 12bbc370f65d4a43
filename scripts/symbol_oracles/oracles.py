"""Definitions by Python's own `ast`, the TypeScript compiler and universal-ctags."""

import ast
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

Place: TypeAlias = tuple[str, int, int]
"""Name, first and last line of a definition itself. A last line of 0 is not known to the oracle."""

_SCRIPT = Path(__file__).with_name("typescript_oracle.cjs")
_BATCH = 200
_GO_KINDS = {"func", "struct", "interface", "type", "talias", "const", "var"}


def python_places(content: bytes) -> Counter[Place] | None:
    """Return the classes and functions of a Python file, and the variables of its module and classes; None if it does not parse."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return None
    return Counter(_python(tree, set(), is_local=False))


def _python(node: ast.AST, seen: set[str], *, is_local: bool) -> Iterator[Place]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.name, child.lineno, child.end_lineno or 0
            yield from _python(child, set(), is_local=not isinstance(child, ast.ClassDef))
            continue
        if not is_local:
            for name in _names(child):
                if name not in seen:
                    seen.add(name)
                    yield name, child.lineno, child.end_lineno or 0  # type: ignore[attr-defined]  # statements have lines
        yield from _python(child, seen, is_local=is_local)


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the plain names that a statement assigns."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [inner for one in node.targets for inner in (one.elts if isinstance(one, ast.Tuple) else [one])]
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    yield from (one.id for one in targets if isinstance(one, ast.Name))


def typescript_places(compiler: Path, files: Sequence[Path]) -> dict[Path, Counter[Place]]:
    """Return the definitions of TypeScript files. compiler: the folder of the package `typescript`."""
    found: dict[Path, Counter[Place]] = {}
    for start in range(0, len(files), _BATCH):
        command = ["node", str(_SCRIPT), str(compiler), *map(str, files[start : start + _BATCH])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            path, places = json.loads(line)
            found[Path(path)] = Counter((name.strip("\"'"), first, last) for _, name, first, last in places)
    return found


def go_places(files: Sequence[Path]) -> dict[Path, Counter[Place]]:
    """Return the definitions of Go files, as universal-ctags finds them. It knows no last line of constants and variables."""
    command = ["ctags", "--output-format=json", "--fields=+neK", "--language-force=Go", "-f", "-", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[Path, Counter[Place]] = {path: Counter() for path in files}
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("kind") in _GO_KINDS and tag["name"] != "_":
            found[Path(tag["path"])][tag["name"], tag["line"], tag.get("end", 0)] += 1
    return found

"""No code compares names of wire formats: what differs between formats is asked of the format (`wire_format.py`).

A comparison is `==`, `!=`, `in`, `not in`, a `case`, or a key of a dict or of a subscript, with a name that is written out or is a constant
of the same module. In the folders of the formats it is one too: a format has no reason to ask which format it is.

Names of vendors are other names, although one is equal: `anthropic`. A dict with vendors for keys has another vendor beside it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pagein
from pagein.providers.vendors import VENDORS
from pagein.providers.wire import FORMATS

SOURCES = sorted(Path(pagein.__file__).parent.rglob("*.py"))
NAMES = frozenset(one.name for one in FORMATS)
OF_VENDORS = frozenset(one.name for one in VENDORS)


def comparisons(tree: ast.Module) -> Iterator[int]:
    """The lines that compare with a format's name."""
    constants = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and named(node.value, frozenset())
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                parts = [
                    part
                    for side in sides
                    for part in (side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side])
                ]
                if any(named(part, constants) for part in parts):
                    yield node.lineno
            case ast.MatchValue(value=value) if named(value, constants):
                yield node.value.lineno
            case ast.Dict(keys=keys) if not by_vendor(keys) and any(key and named(key, constants) for key in keys):
                yield node.lineno
            case ast.Subscript(slice=key) if named(key, constants):
                yield node.lineno


def named(node: ast.expr | None, constants: frozenset[str] | set[str]) -> bool:
    """Whether an expression is the name of a format."""
    if isinstance(node, ast.Name):
        return node.id in constants
    return isinstance(node, ast.Constant) and node.value in NAMES


def by_vendor(keys: list[ast.expr | None]) -> bool:
    """Whether a dict has vendors for keys: a vendor that is no format, and no format that is no vendor."""
    given = {key.value for key in keys if isinstance(key, ast.Constant)}
    return bool(given & (OF_VENDORS - NAMES)) and not given & (NAMES - OF_VENDORS)


def test_no_code_compares_names_of_formats() -> None:
    root = Path(pagein.__file__).parent
    found = {
        f"{path.relative_to(root).as_posix()}:{line}"
        for path in SOURCES
        for line in comparisons(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize(
    "code",
    [
        'api == "anthropic"',
        'api != "openai_chat"',
        'api in ("anthropic", "openai_chat")',
        '"openai_responses" not in apis',
        'match api:\n    case "anthropic":\n        pass',
        'match api:\n    case "x" | "openai_chat":\n        pass',
        '{"anthropic": 1}',
        '{"anthropic": 1, "openai": 2, "openai_chat": 3}',
        '{"openai_chat": 1, "x": 2}',
        'table["anthropic"]',
        'OURS = "anthropic"\napi == OURS',
    ],
)
def test_a_comparison_is_found(code: str) -> None:
    assert list(comparisons(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        '{"anthropic": 1, "openai": 2}',
        'f("anthropic")',
        'api = "anthropic"',
        'name.startswith("anthropic")',
        "api == other",
    ],
)
def test_what_is_no_comparison_with_a_format_is_not_counted(code: str) -> None:
    assert not list(comparisons(ast.parse(code)))


def test_each_vendor_of_a_format_has_a_setting() -> None:
    assert {one.http.vendor for one in FORMATS} <= OF_VENDORS

"""Lines and places of definitions, where files are unusual."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.symbol_oracles.oracles import python_places

from pagein.model.symbols import Definition, FileSymbols
from pagein.workspace.symbols.grammars import load_grammar
from pagein.workspace.symbols.tags import extract_symbols

SOURCES = sorted((Path(__file__).parents[3] / "src").rglob("*.py"))


def python(content: bytes) -> FileSymbols:
    return extract_symbols(load_grammar("python"), content)


def places(symbols: FileSymbols) -> list[tuple[str, int, int, int]]:
    return [(one.qualified, one.whole, one.first, one.last) for one in symbols.definitions]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("final", [True, False])
def test_line_ends_marks_and_missing_final_newlines_change_nothing(end: bytes, mark: bytes, final: bool) -> None:  # noqa: FBT001
    lines = [b"# head", b"@deco", b"class A:", b"    def b(self):", b"        return 1", b"", b"def c(): pass"]
    content = mark + end.join(lines) + (end if final else b"")
    assert places(python(content)) == [("A", 1, 3, 5), ("A.b", 4, 4, 5), ("c", 7, 7, 7)]


def test_only_line_feeds_end_lines() -> None:
    content = "x = 'a\u2028b\x0bc\x85d'\ndef f():\n    '''\u2029'''\n    return 1\n".encode()
    assert places(python(content)) == [("x", 1, 1, 1), ("f", 2, 2, 4)]


def test_what_stands_above_a_definition() -> None:
    content = (
        b"x = 1  # of x\ndef a(): pass\n\n# apart\n\ndef b(): pass\n# one\n# two\n@d(\n  1)\n# three\ndef c(): pass\n"
    )
    assert [(one.name, one.whole) for one in python(content).definitions] == [("x", 1), ("a", 2), ("b", 6), ("c", 7)]


def test_a_syntax_error_costs_what_it_covers() -> None:
    symbols = python(b"def a():\n    pass\n\ndef broken(:\n\nclass C:\n    def d(self): pass\n")
    assert symbols.has_errors
    assert "a" in [one.name for one in symbols.definitions]


def test_an_empty_file_has_no_symbols_and_no_errors() -> None:
    assert python(b"") == FileSymbols("python")


def test_bytes_that_are_no_utf8_are_lines_too() -> None:
    assert places(python(b"# caf\xe9\ndef a():\n    return '\xe9'\n")) == [("a", 1, 2, 3)]


def test_a_name_defined_twice_is_there_twice() -> None:
    symbols = python(
        b"class A:\n    @property\n    def a(self): ...\n    @a.setter\n    def a(self, v): ...\n    a = 1\n    a = 2\n"
    )
    assert [(one.name, one.first) for one in symbols.definitions] == [("A", 1), ("a", 3), ("a", 5), ("a", 6)]


@pytest.mark.parametrize("path", SOURCES[::9], ids=lambda path: path.name)
def test_our_own_sources_as_ast_sees_them(path: Path) -> None:
    content = path.read_bytes()
    wanted = python_places(content)
    assert wanted is not None
    found = [(one.name, one.first, one.last) for one in python(content).definitions]
    assert sorted(wanted.elements()) == sorted(found)


NAMES = st.sampled_from(["a", "b", "Cafe", "caf\u00e9", "_x"])


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Lines of a Python suite of classes, functions and statements."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["class", "def", "async def", "value", "text", "pass"]))
        name = draw(NAMES)
        if kind in ("class", "def", "async def") and depth < 3:
            lines += draw(st.sampled_from([[], ["# about"], ["@d"], ["@d(", "  1)"]]))
            lines.append(f"{kind} {name}{'' if kind == 'class' else '()'}:")
            lines += [f"    {line}" for line in draw(blocks(depth + 1))]
        elif kind == "value":
            lines.append(f"{name} = {draw(st.sampled_from(['1', '(1, 2)', 'f(3)']))}")
        elif kind == "text":
            lines.append(f"{name} = '{draw(st.sampled_from(['', 'def z(): pass', 'u' + chr(0x2028)]))}'")
        else:
            lines.append("pass")
    return lines


@given(blocks(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_python_has_the_places_that_ast_gives(lines: list[str], end: str, is_ended: bool) -> None:  # noqa: FBT001
    content = (end.join(lines) + (end if is_ended else "")).encode()
    ast.parse(content)
    symbols = python(content)
    wanted = python_places(content)
    assert wanted is not None
    assert sorted((one.name, one.first, one.last) for one in symbols.definitions) == sorted(wanted.elements())
    check_nesting(symbols.definitions)


def check_nesting(definitions: tuple[Definition, ...]) -> None:
    for place, one in enumerate(definitions):
        assert one.whole <= one.first <= one.last
        assert one.start <= one.head_end <= one.end
        if one.parent >= 0:
            outer = definitions[one.parent]
            assert one.parent < place
            assert outer.start <= one.start <= one.end <= outer.end

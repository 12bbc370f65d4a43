"""Find the symbols of one file in its syntax tree.

Rules of this file
------------------
1. Places are of bytes, and lines end at line feeds, so that byte order marks, CRLF and unusual line separators change nothing.
2. A definition itself begins after its decorators and attributes, also where the grammar puts these into it.
3. Variables count only at the level of modules and types. Definitions inside a function are local to it.
4. A syntax error loses only the symbols that it covers, and is reported.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from pagein.model.symbols import CONTAINERS, Definition, FileSymbols, ImportLine, SymbolKind
from pagein.workspace.symbols.grammars import Grammar

if TYPE_CHECKING:
    from tree_sitter import Node

Captures: TypeAlias = "Mapping[str, Sequence[Node]]"
_BLANK: Final = b" \t\r\n\f"
_LEADING: Final = frozenset(
    ("decorator", "attribute_list", "attribute_item", "attribute_declaration", "annotation", "marker_annotation")
)
"""Nodes in front of a definition that do not belong to the definition itself."""
_MOST_LEADING: Final = 32
_LOCAL: Final = frozenset(("variable", "constant", "property"))
_SEPARATORS: Final = ("::", "\\", "/")
_LUA_METHOD: Final = re.compile(r"^([\w.]+):(\w+)$")
_QUOTES: Final = "\"'`<>"


@dataclass(frozen=True, slots=True)
class _TaggedScope:
    """A definition or a named scope, before its neighbours are known. kind: "" for a scope."""

    start: int
    end: int
    order: int
    kind: str
    name: str
    owner: str
    first: int
    last: int
    head_end: int


def extract_symbols(grammar: Grammar, content: bytes) -> FileSymbols:
    """Return the symbols of a file with this content."""
    from tree_sitter import QueryCursor

    root = grammar.parser.parse(content).root_node
    found: dict[int, _TaggedScope] = {}  # by the place of the name
    imports: list[ImportLine] = []
    heads: dict[int, int] = {}
    prefix = ""
    for order, captures in QueryCursor(grammar.definitions).matches(root):
        if "head" in captures:
            _add_head(heads, captures, content)
        elif "import" in captures:
            imports += _imports(captures, content)
        elif "namespace" in captures:
            prefix = _dotted(_text(captures["name"][0], content)) + "."
        elif "name" in captures:
            for place, one in _definitions(order, captures, content):
                if place not in found or order < found[place].order:
                    found[place] = one
    definitions = _nested(sorted(found.values(), key=lambda one: (one.start, -one.end, one.order)), heads, prefix)
    referred = QueryCursor(grammar.references).captures(root).get("ref", ())
    places = ((node.start_byte, node.end_byte) for node in referred)
    counts = Counter(content[start:end] for start, end in places if start not in found)
    return FileSymbols(
        grammar.language,
        tuple(definitions),
        {_decoded(name): count for name, count in sorted(counts.items())},
        tuple(sorted(imports, key=lambda one: (one.first, one.last, one.module))),
        root.has_error,
    )


def _definitions(order: int, captures: Captures, content: bytes) -> Iterator[tuple[int, _TaggedScope]]:
    key, node = next((key, nodes[0]) for key, nodes in captures.items() if key == "scope" or key.startswith("def."))
    kind = key.partition(".")[2]
    start, first = _own_start(node)
    end = _trimmed(content, start, node.end_byte)
    # a newline that belongs to the node, as after a macro, is not a line of it
    last = node.end_point.row + 1 - content.count(b"\n", end, node.end_byte)
    body = captures["body"][0] if "body" in captures else node.child_by_field_name("body")
    owner = _dotted(_text(captures["owner"][0], content)) if "owner" in captures else ""
    if body is not None and kind not in _LOCAL:
        head_end = _trimmed(content, start, body.start_byte)
    else:
        line_end = content.find(b"\n", start, end)
        head_end = end if line_end < 0 else _trimmed(content, start, line_end)
    for name in captures["name"]:
        yield (
            name.start_byte,
            _TaggedScope(start, end, order, kind, _dotted(_text(name, content)), owner, first, last, head_end),
        )


def _own_start(node: "Node") -> tuple[int, int]:
    """Return the start of the definition itself: its byte and its line."""
    ahead = node.child(0) if node.child_count else node
    if ahead.type != "modifiers" and ahead.type not in _LEADING and not ahead.is_extra:
        return _place(node)
    children: list[Node] = node.children[:_MOST_LEADING]
    if children and children[0].type == "modifiers":
        children = [*children[0].children, *children[1:]]
    return _place(next((one for one in children if one.type not in _LEADING and not one.is_extra), node))


def _place(node: "Node") -> tuple[int, int]:
    return node.start_byte, node.start_point.row + 1


def _nested(found: Iterable[_TaggedScope], heads: Mapping[int, int], prefix: str) -> list[Definition]:
    """Return the definitions with their parents and qualified names. `found` is sorted by place, outer ones first."""
    out: list[Definition] = []
    around: list[
        tuple[_TaggedScope, str, int]
    ] = []  # with the qualified name, and the place of the definition that holds it
    seen: set[tuple[int, str]] = set()
    for one in found:
        while around and not (one.end <= around[-1][0].end and (one.start, one.end) != _extent(around[-1][0])):
            around.pop()
        outer, above, parent = around[-1] if around else (None, prefix.rstrip("."), -1)
        inside = outer is None or outer.kind == "" or outer.kind in CONTAINERS
        qualified = ".".join(part for part in (above, one.owner, one.name) if part)
        if one.kind == "":
            around.append((one, qualified, parent))
            continue
        if one.kind in _LOCAL:
            if not inside or (parent, qualified) in seen or one.name == "_":
                continue
            seen.add((parent, qualified))
        kind = _settled_kind(one, outer)
        name = one.name.rpartition(".")[2]
        whole = _whole(one.first, heads)
        out.append(
            Definition(name, qualified, kind, one.first, one.last, whole, one.start, one.end, one.head_end, parent)
        )
        if kind != "type":  # `typedef struct a { } b` holds a, which is no part of b
            around.append((one, qualified, len(out) - 1))
    return out


def _extent(one: _TaggedScope) -> tuple[int, int]:
    return one.start, one.end


def _settled_kind(one: _TaggedScope, outer: _TaggedScope | None) -> SymbolKind:
    """Return the kind; a function in a type is a method."""
    is_member = outer is not None and (outer.kind == "" or outer.kind in CONTAINERS - {"module", "namespace"})
    if one.kind == "function" and (is_member or ("." in one.name and outer is None)):
        return "method"
    return cast(SymbolKind, one.kind)


def _whole(first: int, heads: Mapping[int, int]) -> int:
    """Return the first line of what stands directly above a line: decorators, attributes, comments."""
    while first - 1 in heads:
        first = heads[first - 1]
    return first


def _add_head(heads: dict[int, int], captures: Captures, content: bytes) -> None:
    """Note the lines of a comment, decorator or template head at the beginning of its line, by its last line."""
    node = captures["head"][0]
    start, until = node.start_byte, captures.get("head.end", (node,))[0]
    line = content.rfind(b"\n", 0, start) + 1
    if content[line:start].strip(_BLANK + b"\xef\xbb\xbf"):
        return
    end = _trimmed(content, start, until.end_byte)
    last = until.end_point.row + 1 - content.count(b"\n", end, until.end_byte)
    first = node.start_point.row + 1
    heads[last] = min(first, heads.get(last, first))


def _imports(captures: Captures, content: bytes) -> Iterator[ImportLine]:
    node = captures["import"][0]
    last = node.end_point.row + (1 if node.end_point.column else 0)
    modules = [" ".join(_text(one, content).split()).strip(_QUOTES) for one in captures.get("module", ())]
    for module in modules or _text(node, content).split()[1:2]:
        yield ImportLine(module, node.start_point.row + 1, last)


def _trimmed(content: bytes, start: int, end: int) -> int:
    """Return the end without trailing blanks."""
    while end > start and content[end - 1] in _BLANK:
        end -= 1
    return end


def _dotted(name: str) -> str:
    """Return a name with dots between its parts, whatever the language writes there."""
    if name.isidentifier():
        return name
    for separator in _SEPARATORS:
        name = name.replace(separator, ".") if separator != "/" or len(name) > 1 else name
    name = _LUA_METHOD.sub(r"\1.\2", name)
    if name.startswith("operator "):  # C++: `operator bool() const`
        name = name.partition("(")[0]
    return " ".join(name.split()).strip(".") or name


def _text(node: "Node", content: bytes) -> str:
    return _decoded(content[node.start_byte : node.end_byte])


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")

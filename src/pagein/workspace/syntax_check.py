"""The places where a text cannot be parsed, by tree-sitter."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pagein.errors import BadInput, BadSetting
from pagein.workspace.symbols.grammars import load_grammar
from pagein.workspace.symbols.languages import language_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST: Final = 100
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """A place that cannot be parsed. line: from 1."""

    line: int
    message: str


def syntax_faults(path: str, text: str) -> tuple[SyntaxFault, ...] | None:
    """Return the first places of a text that cannot be parsed as the language of this file, in order.

    None if the language is unknown, its grammar is not installed, or the text is too long.
    """
    language = language_of(path)
    content = text.encode("utf-8", "surrogatepass")
    if language is None or len(content) > _MOST_BYTES:
        return None
    try:
        grammar = load_grammar(language.name)
    except (BadInput, BadSetting):
        return None
    from tree_sitter import Parser

    known = grammar.parser.language
    if known is None:
        return None
    root = Parser(known).parse(content).root_node  # a parser of its own, because threads cannot share one
    found: dict[int, SyntaxFault] = {}
    for fault in _faults(root, content):
        found.setdefault(fault.line, fault)
        if len(found) >= _MOST:
            break
    return tuple(found[line] for line in sorted(found))


def _faults(root: "Node", content: bytes) -> Iterator[SyntaxFault]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        line = content.count(b"\n", 0, node.start_byte) + 1 if node.is_missing or node.is_error else 0
        if node.is_missing:
            yield SyntaxFault(line, f"{node.type} is missing")
        elif node.is_error:
            told = content[node.start_byte : node.end_byte].decode("utf-8", "replace").strip().partition("\n")[0]
            yield SyntaxFault(line, f"cannot be parsed: {told[:_SHOWN]}" if told else "cannot be parsed")
        elif node.has_error:
            waiting.extend(reversed(node.children))

"""A file in a symbol map: a compact block of its imports, definitions with signatures, and reference counts.

The block depends on the contents of files alone, never on who asks, so that it stays the same while they do, and can be cached.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.symbols import Definition, FileSymbols

LEGEND: Final = "# path <-references from other files ->references to them (by name: approximate); line: signature"
"""What a map says first."""
_LONGEST: Final = 160
_MOST_IMPORTS: Final = 12
_CLOSER: Final = re.compile(r"\s*(?:\{|:|=>|\bdo)$")


@dataclass(frozen=True, slots=True)
class MapBlock:
    """A file's part of a map.

    text: the block. signatures: of the definitions, in their order.
    into: references from other files. out_of: references to other files.
    """

    path: str
    text: str
    language: str
    definitions: tuple[Definition, ...]
    signatures: tuple[str, ...]
    imports: tuple[str, ...]
    into: int
    out_of: int
    has_errors: bool


def signature_of(content: bytes, definition: Definition) -> str:
    """Return the signature of a definition in one line, cut if too long."""
    text = " ".join(content[definition.start : definition.head_end].decode("utf-8", "replace").split())
    if definition.head_end < definition.end:  # a body follows
        text = _CLOSER.sub("", text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def map_block(path: str, symbols: FileSymbols, signatures: Sequence[str], into: int, out_of: int) -> MapBlock:
    """Return the block of a file. signatures: of its definitions, in their order."""
    modules = tuple(dict.fromkeys(one.module for one in symbols.imports))
    partly = " (parts could not be parsed)" if symbols.has_errors else ""
    lines = (f"{path} <-{into} ->{out_of}{partly}", *_lines(symbols, modules, signatures))
    return MapBlock(
        path,
        "\n".join(lines),
        symbols.language,
        symbols.definitions,
        tuple(signatures),
        modules,
        into,
        out_of,
        symbols.has_errors,
    )


def _lines(symbols: FileSymbols, modules: Sequence[str], signatures: Sequence[str]) -> Iterator[str]:
    if modules:
        more = f", and {len(modules) - _MOST_IMPORTS} more" if len(modules) > _MOST_IMPORTS else ""
        yield f"  imports {', '.join(modules[:_MOST_IMPORTS])}{more}"
    depths = _depths(symbols.definitions)
    for definition, signature, depth in zip(symbols.definitions, signatures, depths, strict=True):
        if depth is not None:
            yield f"{'  ' * (depth + 1)}{definition.first}: {signature}"


def _depths(definitions: Sequence[Definition]) -> list[int | None]:
    """Return the depth of each definition; None for definitions local to a function, which a map leaves out."""
    depths: list[int | None] = []
    for one in definitions:
        if one.parent < 0:
            depths.append(0)
            continue
        above, outer = depths[one.parent], definitions[one.parent]
        depths.append(None if above is None or outer.kind in ("function", "method") else above + 1)
    return depths


def blocks_within(blocks: Iterator[MapBlock], characters: int | None) -> tuple[tuple[MapBlock, ...], bool]:
    """Return as many blocks as fit, in order, and whether every block did. The last block may be cut, and says so."""
    taken: list[MapBlock] = []
    left = math.inf if characters is None else characters
    for block in blocks:
        if len(block.text) + 1 > left:
            part = _first_lines(block.text, left)
            return (*taken, *([replace(block, text=part)] if part else [])), False
        left -= len(block.text) + 1
        taken.append(block)
    return tuple(taken), True


def _first_lines(text: str, characters: float) -> str:
    """Return the first lines of a block with a note of how many are left out; "" if not even its first line fits."""
    lines = text.split("\n")
    for count in range(len(lines) - 1, 0, -1):
        part = "\n".join((*lines[:count], f"  ... {len(lines) - count} more lines"))
        if len(part) + 1 <= characters:
            return part
    return ""

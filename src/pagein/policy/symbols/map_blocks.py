"""What a symbol map shows of a file: a compact block of its imports, definitions with signatures, and reference counts.

The block depends on the contents of files alone, never on who asks, so that it stays the same while they do, and can be cached.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.model.symbols import Definition, FileSymbols

LEGEND: Final = "# path <-references from other files ->references to them (by name: approximate); line: signature"
"""What a map says first."""
_LONGEST: Final = 160
_MOST_IMPORTS: Final = 12
_CLOSERS: Final = ("{", ":", "=>", "=", "do")


@dataclass(frozen=True, slots=True)
class MapBlock:
    """The block of one file, and the path of the file."""

    path: str
    text: str


def signature_of(content: bytes, definition: Definition) -> str:
    """Return the signature of a definition in one line, cut if it is long."""
    text = " ".join(content[definition.start : definition.head_end].decode("utf-8", "replace").split())
    for closer in _CLOSERS:
        if text.endswith(closer) and not text.endswith((f"\"{closer}", f"'{closer}")):
            inner = text.removesuffix(closer)
            text = inner.rstrip() if not closer.isalpha() or inner.endswith(" ") else text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def map_block(path: str, symbols: FileSymbols, signatures: Sequence[str], into: int, out_of: int) -> MapBlock:
    """Return the block of a file. signatures: of its definitions, in their order."""
    return MapBlock(path, "\n".join(_lines(path, symbols, signatures, into, out_of)))


def _lines(path: str, symbols: FileSymbols, signatures: Sequence[str], into: int, out_of: int) -> Iterator[str]:
    partly = " (parts could not be parsed)" if symbols.has_errors else ""
    yield f"{path} <-{into} ->{out_of}{partly}"
    modules = tuple(dict.fromkeys(one.module for one in symbols.imports))
    if modules:
        more = f", and {len(modules) - _MOST_IMPORTS} more" if len(modules) > _MOST_IMPORTS else ""
        yield f"  imports {', '.join(modules[:_MOST_IMPORTS])}{more}"
    depths = _depths(symbols.definitions)
    for definition, signature, depth in zip(symbols.definitions, signatures, depths, strict=True):
        if depth is not None:
            yield f"{'  ' * (depth + 1)}{definition.first}: {signature}"


def _depths(definitions: Sequence[Definition]) -> list[int | None]:
    """Return how deep each definition stands; None for what is local to a function, which a map leaves out."""
    depths: list[int | None] = []
    for one in definitions:
        if one.parent < 0:
            depths.append(0)
            continue
        above, outer = depths[one.parent], definitions[one.parent]
        depths.append(None if above is None or outer.kind in ("function", "method") else above + 1)
    return depths


def blocks_within(blocks: Iterator[MapBlock], characters: int | None) -> tuple[tuple[MapBlock, ...], bool]:
    """Return as many blocks as fit, in order, and whether all did. One that does not fit ends the map."""
    taken: list[MapBlock] = []
    left = math.inf if characters is None else characters
    for block in blocks:
        left -= len(block.text) + 1
        if left < 0:
            return tuple(taken), False
        taken.append(block)
    return tuple(taken), True


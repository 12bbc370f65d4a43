"""Implement `pagein symbols` as functions with plain results.

The result shapes are stable: they are printed as JSON objects under `--json`, and described in docs/symbols.md. Lines count from 1.
"""

from typing import Any, Final, TypeAlias

from pagein.errors import BadInput
from pagein.model.symbols import AmbiguousSymbol, SymbolScan, SymbolText, UnknownSymbol
from pagein.policy.symbols.lookup import is_at
from pagein.policy.symbols.map_blocks import LEGEND
from pagein.ports import Signal
from pagein.workspace.code_search import is_below
from pagein.workspace.symbols.symbol_index import SymbolIndex
from pagein.workspace.symbols.symbol_reader import SymbolReader

Answer: TypeAlias = dict[str, Any]
APPROXIMATE: Final = "references are counted by name, so they are approximate"


def read_symbol(
    index: SymbolIndex,
    name: str,
    *,
    path: str | None = None,
    include_context: bool = False,
    skipped: frozenset[str] = frozenset(),
    signal: Signal | None = None,
) -> Answer:
    """Return the definition of a name, or the candidates. Raises BadInput without any.

    skipped: names of folders whose definitions count only if the name is defined nowhere else, or with a path.

    Shape of a definition: `{"kind": "definition", "id", "path", "language", "symbol", "name", "qualified", "first", "last",
    "shown_from", "signature", "text", "context": [{"line", "text"}], "references", "scan"}`. Of several: `{"kind": "ambiguous", "name",
    "total", "candidates": [{"id", "path", "symbol", "first", "last", "signature"}], "scan"}`. `symbol` is its kind, such as `method`.
    """
    reader = SymbolReader(index)
    answer = reader.read(name, path=path, include_context=include_context, skipped=skipped, signal=signal)
    if isinstance(answer, UnknownSymbol):
        raise BadInput(_unknown(answer, path))
    scan = _scan(index.state.scan)
    if isinstance(answer, AmbiguousSymbol):
        candidates = [
            {
                "id": one.id,
                "path": one.path,
                "symbol": one.kind,
                "first": one.first,
                "last": one.last,
                "signature": one.signature,
            }
            for one in answer.candidates
        ]
        return {"kind": "ambiguous", "name": name, "total": answer.total, "candidates": candidates, "scan": scan}
    return {"kind": "definition", **_definition(answer), "references": _references(reader, answer), "scan": scan}


def list_symbols(
    index: SymbolIndex,
    path: str | None = None,
    *,
    question: str = "",
    characters: int | None = None,
    skipped: frozenset[str] = frozenset(),
) -> Answer:
    """Return the symbol map of a workspace, or of a file or folder in it.

    path: relative to the workspace; None for all. question: words; files whose definitions and paths have them come first.
    skipped: names of folders that are left out, unless the path is one of them or below one.

    Shape: `{"kind": "map", "path", "legend", "files": [{"path", "language", "references_in", "references_out", "has_errors", "imports",
    "block", "definitions": [{"symbol", "name", "qualified", "first", "last", "shown_from", "signature", "references"}]}], "is_whole",
    "total", "left_out", "note", "scan"}`. `left_out` counts files in skipped folders, and `block` is the file's part of the map as text.
    """
    reader = SymbolReader(index)
    place = None if path is None else f"/{path}"
    skips = frozenset[str]() if path is not None and not skipped.isdisjoint(path.split("/")) else skipped
    left = frozenset(one for one in index.state.files if is_below(one, skips))
    found = reader.map(question, path=place, without=left, characters=characters)
    if path is not None and not found.files:
        reasons = dict(found.scan.failed)
        why = f"it could not be parsed: {reasons[path]}" if path in reasons else "it has no file with a known language"
        raise BadInput(f"no symbols in {path}: {why}{_not_seen(found.scan)}")
    files = [
        {
            "path": one.path,
            "language": one.language,
            "references_in": one.into,
            "references_out": one.out_of,
            "has_errors": one.has_errors,
            "imports": list(one.imports),
            "block": one.text,
            "definitions": [
                {
                    "symbol": definition.kind,
                    "name": definition.name,
                    "qualified": definition.qualified,
                    "first": definition.first,
                    "last": definition.last,
                    "shown_from": definition.whole,
                    "signature": signature,
                    "references": reader.references_to(definition.name),
                }
                for definition, signature in zip(one.definitions, one.signatures, strict=True)
            ],
        }
        for one in found.blocks
    ]
    return {
        "kind": "map",
        "path": path,
        "legend": LEGEND,
        "files": files,
        "is_whole": found.is_whole,
        "total": found.files,
        "left_out": sum(place is None or is_at(one, place, index.state.files) for one in left),
        "note": APPROXIMATE,
        "scan": _scan(found.scan),
    }


def _definition(answer: SymbolText) -> Answer:
    symbol, definition = answer.symbol, answer.symbol.definition
    return {
        "id": symbol.id,
        "path": symbol.path,
        "language": answer.language,
        "symbol": definition.kind,
        "name": definition.name,
        "qualified": definition.qualified,
        "first": definition.first,
        "last": definition.last,
        "shown_from": answer.first,
        "signature": answer.signature,
        "text": answer.text,
        "context": [{"line": line, "text": text} for line, text in answer.context],
    }


def _references(reader: SymbolReader, answer: SymbolText) -> int:
    return reader.references_to(answer.symbol.definition.name)


def _scan(scan: SymbolScan) -> Answer:
    return {
        "files": scan.files,
        "parsed": scan.parsed,
        "failed": [{"path": path, "reason": reason} for path, reason in scan.failed],
        "partial": list(scan.partial),
        "other_languages": scan.other,
        "excluded": scan.excluded,
        "ignored": scan.ignored,
    }


def _unknown(answer: UnknownSymbol, path: str | None) -> str:
    where = "" if path is None else f" in {path}"
    similar = f"; similar names: {', '.join(answer.similar)}" if answer.similar else ""
    scan = answer.scan
    return f"nothing is defined as {answer.name[:80]!r}{where}{similar} ({scan.files} files were looked at{_not_seen(scan)})"


def _not_seen(scan: SymbolScan) -> str:
    failed = f"; {len(scan.failed)} could not be parsed, such as {scan.failed[0][0]}" if scan.failed else ""
    partial = f"; {len(scan.partial)} only in part, such as {scan.partial[0]}" if scan.partial else ""
    return failed + partial

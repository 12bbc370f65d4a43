"""The tag queries of each language, on a sample file: every definition with its lines, names and signature."""

from pathlib import Path

import pytest

from pagein.model.symbols import FileSymbols
from pagein.policy.symbols.map_blocks import signature_of
from pagein.workspace.symbols.grammars import load_grammar
from pagein.workspace.symbols.languages import LANGUAGES, language_of
from pagein.workspace.symbols.tags import extract_symbols

SAMPLES = Path(__file__).parents[2] / "fixtures" / "symbols"


def written(symbols: FileSymbols, content: bytes) -> str:
    """What was found, one line each: lines with the head, kind, qualified name, name of what encloses it, signature."""
    lines = []
    for one in symbols.definitions:
        parent = symbols.definitions[one.parent].name if one.parent >= 0 else "-"
        place = f"{one.whole}/{one.first}-{one.last}"
        lines.append(f"{place} {one.kind} {one.qualified} in {parent} | {signature_of(content, one)}")
    lines += [f"{one.first}-{one.last} import {one.module}" for one in symbols.imports]
    lines += [f"{name} x{count}" for name, count in symbols.references.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("language", [one.name for one in LANGUAGES])
def test_the_symbols_of_a_sample(language: str) -> None:
    (sample,) = (path for path in (SAMPLES / language).iterdir() if path.name.lower().startswith("sample."))
    found = language_of(sample.name.removesuffix(".txt"))  # no Python of this project, so not named as such
    assert found is not None
    assert found.name == language
    content = sample.read_bytes()
    symbols = extract_symbols(load_grammar(language), content)
    assert not symbols.has_errors
    assert written(symbols, content) == (SAMPLES / language / "expected.txt").read_text(encoding="utf-8")


def test_every_ending_belongs_to_one_language() -> None:
    endings = [ending for one in LANGUAGES for ending in one.endings]
    assert len(endings) == len(set(endings))


@pytest.mark.parametrize("name", ["README", "a.txt", ".py", "a.", "dir.py/file", "x.PY", "a.d.ts"])
def test_files_by_their_names(name: str) -> None:
    found = language_of(name)
    expected = {".py": "python", "x.PY": "python", "a.d.ts": "typescript"}
    assert (found.name if found else None) == expected.get(name)

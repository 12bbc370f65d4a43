"""Load grammars and tag queries. Each grammar is imported when its first file is parsed.

The queries are this project's own: a folder in `queries/` for each language. `definitions.scm` finds definitions (`@def.KIND` with
`@name`, maybe with `@body` and `@owner`), names around them (`@scope`, `@namespace`), imports (`@import` with `@module`) and what belongs
above a definition (`@head`); `references.scm` finds names that are referred to (`@ref`).
"""

import functools
import importlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from pagein.errors import BadInput, BadSetting
from pagein.workspace.symbols.languages import LANGUAGES, language_named

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

_REMEDY: Final = "symbols need more than is installed: pip install 'pagein[{}]'"


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language ready to be parsed. Parsers are not shared between threads."""

    language: str
    parser: "Parser"
    definitions: "Query"
    references: "Query"


def check_grammars() -> None:
    """Raise BadSetting, with the remedy, if tree-sitter or every grammar is missing."""
    for language in LANGUAGES:
        try:
            importlib.import_module("tree_sitter")
            importlib.import_module(language.module)
        except ImportError as problem:
            cause = problem
        else:
            return
    raise BadSetting(f"{_REMEDY.format('symbols')} ({cause})") from cause


@functools.cache
def load_grammar(name: str) -> Grammar:
    """Return the grammar of a language with its queries.

    Raises BadSetting if the grammar is not installed, BadInput if its version does not fit tree-sitter or the queries.
    """
    language = language_named(name)
    try:
        from tree_sitter import Language, Parser, Query

        module = importlib.import_module(language.module)
    except ImportError as problem:
        extra = "symbols-all" if language.is_extra else "symbols"
        raise BadSetting(f"{_REMEDY.format(extra)} ({problem})") from problem
    try:
        if language.is_extra:
            grammar: Language = module.get_language(language.function)
        else:
            grammar = Language(getattr(module, language.function)())
        definitions = Query(grammar, _queries(language.queries, "definitions.scm"))
        references = Query(grammar, _queries(language.queries, "references.scm"))
        return Grammar(name, Parser(grammar), definitions, references)
    except (AttributeError, TypeError, ValueError) as problem:  # tree-sitter's QueryError is a ValueError
        raise BadInput(f"the grammar {language.module} does not fit: {problem}") from problem


def _queries(folders: tuple[str, ...], file: str) -> str:
    place = resources.files("pagein.workspace.symbols") / "queries"
    found = [place / folder / file for folder in folders]
    return "\n".join(one.read_text(encoding="utf-8") for one in found if one.is_file())

"""Find where a target may be cut, with the symbols of code where a grammar for it is installed.

A text is parsed in a process of its own, which may die or hang: then the text is cut as one without symbols.
"""

import threading
from collections.abc import Sequence

from pagein.model.symbols import Definition, FileSymbols
from pagein.policy.delegation.part_edges import Edges, find_edges
from pagein.workspace.symbols.crew import ParseOrder, ParserCrew
from pagein.workspace.symbols.languages import language_of
from pagein.workspace.symbols.symbol_index import LARGEST_FILE

_SECONDS = 20.0


def edges_of(text: str, title: str, stop: threading.Event | None = None) -> Edges:
    """Return the edges of a text. Takes as long as parsing does. Raises AbortedOperation once `stop` is set.

    title: path of the file, if the text is one.
    """
    return find_edges(text, title, _definitions(text, title, stop))


def _definitions(text: str, path: str, stop: threading.Event | None) -> Sequence[Definition]:
    language = language_of(path)
    content = b"" if language is None else text.encode("utf-8", "surrogatepass")
    if language is None or len(content) > LARGEST_FILE:
        return ()
    crew = ParserCrew(1, _SECONDS)
    try:
        (parsed,) = crew.parse(iter([ParseOrder(path, "", language.name, content)]), stop)
    finally:
        crew.close()
    return parsed.answer.definitions if isinstance(parsed.answer, FileSymbols) else ()

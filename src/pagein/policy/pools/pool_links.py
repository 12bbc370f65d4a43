"""The objects that a text refers to: links between double brackets, and Markdown links to files."""

import posixpath
import re
from typing import Final

MOST_LINKS: Final = 50
"""Most references of one text that bring in metadata."""
_NOTE: Final = ".md"
_WIKI: Final = re.compile(r"\[\[([^\[\]|#^\n]{1,200})")
_MARKDOWN: Final = re.compile(r"\]\(([^()\s#?]{1,300})")


def links_in(text: str, path: str = "") -> tuple[str, ...]:
    """Return the names and paths that a text refers to, each once, in their order.

    path: path of the text's own file, for relative links.
    """
    found = [(match.start(), match[1].strip()) for match in _WIKI.finditer(text)]
    folder = posixpath.dirname(path)
    for match in _MARKDOWN.finditer(text):
        target = match[1]
        if "://" not in target and not target.startswith("mailto:"):
            found.append((match.start(), posixpath.normpath(posixpath.join(folder, target))))
    return tuple(dict.fromkeys(name for _, name in sorted(found) if name))[:MOST_LINKS]


def paths_of(name: str, path: str) -> tuple[str, ...]:
    """Return the paths that a name in the file at `path` may mean, the likeliest first: a note's suffix is mostly left out.

    A name is looked up from the file's folder, and then from the working folder.
    """
    places = dict.fromkeys((posixpath.normpath(posixpath.join(posixpath.dirname(path), name)), name))
    return tuple(dict.fromkeys(f"{place}{suffix}" for place in places for suffix in ("", _NOTE)))

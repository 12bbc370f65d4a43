"""Path filters as people write them: a file, a folder, or a glob."""

import re
from functools import lru_cache
from typing import Final

from pagein.errors import BadInput

_MAGIC: Final = re.compile(r"[*?\[]")
_SET: Final = re.compile(r"\[[!^]?\]?[^\]]*\]")
_WORD: Final = re.compile("[A-Za-z0-9_-]{3,}")
"""No sign that means more than itself in a filter, or is told apart from others in a path, or is stored otherwise."""


def path_matches(wanted: str, path: str) -> bool:
    """Return whether a path matches a person's filter.

    Without `*`, `?` or `[`: the path itself, its last parts (`auth.py`, `src/auth.py`), or a folder that it lies in.
    With them a glob over its last parts, or from the root where it begins with `/`: `*` and `?` stay within one part,
    `**` does not.
    Raises BadInput for a glob with an invalid set.
    """
    return _compile_path(wanted).search("/" + path.replace("\\", "/").strip("/")) is not None


def path_words(wanted: str) -> list[str]:
    """Return words that are in every path that a filter matches, for an index of paths. Raises BadInput as `path_matches`."""
    _compile_path(wanted)
    return _WORD.findall(_SET.sub("*", wanted) if _MAGIC.search(wanted) else wanted)


@lru_cache(maxsize=64)
def _compile_path(wanted: str) -> re.Pattern[str]:
    plain = wanted.replace("\\", "/") if not _MAGIC.search(wanted) else wanted
    start = "^/" if plain.startswith("/") else "/"
    inner = plain.strip("/").removeprefix("./")
    if not _MAGIC.search(plain):
        return re.compile(start + re.escape(inner) + "(?:/|$)")
    try:
        return re.compile(start + _expression(inner) + "$", re.DOTALL)
    except re.error as problem:
        raise BadInput(f"not a glob: {wanted[:80]!r}: {problem}") from problem


_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
_SIGNS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _expression(glob: str) -> str:
    return "".join(_piece(token) for token in _TOKEN.findall(glob))


def _piece(token: str) -> str:
    if token in _SIGNS:
        return _SIGNS[token]
    if len(token) > 1:
        inside = token[1:-1].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
        # never a slash, whatever is in the set
        return f"(?!/)[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
    return re.escape(token)

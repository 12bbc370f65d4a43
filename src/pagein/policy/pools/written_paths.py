"""The files that a shell command writes, moves or deletes, by the words of the command: what is shown of them is out of date.

Best effort: a program may write any file. Only commands that name what they write are looked at.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.model.messages import ToolCall
from pagein.policy.clients.file_accesses import arguments_of
from pagein.policy.clients.known_files import absolute_path
from pagein.policy.clients.shell_reads import command_line, pipelines

_IN_PLACE: Final = frozenset(["sed", "gsed", "perl", "ruby"])
_EDITS: Final = re.compile(r"-[pnElsruz0]*i.*|--in-place(=.*)?")
_EACH: Final = frozenset(["tee", "truncate", "mv", "rm", "unlink"])
_LAST: Final = frozenset(["cp", "install", "patch"])
_GIT: Final = frozenset(["checkout", "restore", "mv", "rm"])


def written_paths(call: ToolCall, folder: str) -> tuple[str, ...]:
    """Return the files that a call of a shell writes, absolute where the folder is known, each once.

    folder: the session's working folder, "" if unknown.
    """
    line, moved_to = command_line(arguments_of(call.arguments))
    base = absolute_path(moved_to, folder) if moved_to else folder
    found: dict[str, None] = {}
    for pipeline in pipelines(line or ""):
        for words in pipeline:
            if words[:1] == ["cd"] and len(words) > 1:
                base = absolute_path(words[1], base)
            found |= dict.fromkeys(absolute_path(word, base) for word in _written(words))
    return tuple(found)


def _written(words: Sequence[str]) -> Iterator[str]:
    """Yield the files that one command writes."""
    for place, word in enumerate(words):
        target = word.lstrip("12&") if word.startswith((">", "1>", "2>", "&>")) else ""
        if target.startswith(">"):
            name = target.lstrip(">|") or (words[place + 1] if place + 1 < len(words) else "")
            yield from (one for one in (name,) if one and not one.startswith("/dev/"))
    name = words[0].rsplit("/", 1)[-1] if words else ""
    named = [word for word in words[1:] if word and not word.startswith(("-", ">"))]
    if (name in _IN_PLACE and any(_EDITS.fullmatch(word) for word in words[1:])) or name in _EACH:
        yield from named
    elif name in _LAST:
        yield from named[-1:]
    elif name == "git" and named[:1] and named[0] in _GIT:
        yield from named[1:]

"""Find the files that a shell command writes, moves or deletes. The texts shown of them before are out of date.

Best effort: a program may write any file. Only commands that name what they write are looked at.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pagein.model.messages import ToolCall
from pagein.policy.clients.known_files import absolute_path
from pagein.policy.clients.profile import arguments_of
from pagein.policy.clients.shell_reads import command_line, pipelines

_IN_PLACE: Final = frozenset(["sed", "gsed", "perl", "ruby"])
_EDITS: Final = re.compile(r"-[pnElsruz0]*i.*|--in-place(=.*)?")
_EACH: Final = frozenset(["tee", "truncate"])
_TAKES_AWAY: Final = frozenset(["mv", "rm", "unlink"])
_LAST: Final = frozenset(["cp", "install", "patch"])
_RESTORES: Final = frozenset(["checkout", "restore"])


def written_paths(call: ToolCall, folder: str) -> Mapping[str, bool]:
    """Return the paths that a shell call changes, and for each path whether the call writes the file.

    False stands for a moved or deleted file. Paths are absolute where the folder is known.

    folder: the session's working folder, "" if unknown.
    """
    line, moved_to = command_line(arguments_of(call.arguments))
    base = absolute_path(moved_to, folder) if moved_to else folder
    found: dict[str, bool] = {}
    for pipeline in pipelines(line or ""):
        for words in pipeline:
            if words[:1] == ["cd"] and len(words) > 1:
                base = absolute_path(words[1], base)
            found |= {absolute_path(word, base): is_written for word, is_written in _changed(words)}
    return found


def _changed(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each path that a command changes, with True for a written file."""
    for place, word in enumerate(words):
        target = word.lstrip("12&") if word.startswith((">", "1>", "2>", "&>")) else ""
        if target.startswith(">"):
            name = target.lstrip(">|") or (words[place + 1] if place + 1 < len(words) else "")
            yield from ((one, True) for one in (name,) if one and not one.startswith("/dev/"))
    name = words[0].rsplit("/", 1)[-1] if words else ""
    named = [word for word in words[1:] if word and not word.startswith(("-", ">"))]
    if name == "git" and named[:1]:
        name, named = named[0], named[1:]
        if name in _RESTORES:
            yield from ((one, True) for one in named)
    if (name in _IN_PLACE and any(_EDITS.fullmatch(word) for word in words[1:])) or name in _EACH:
        yield from ((one, True) for one in named)
    elif name in _TAKES_AWAY:
        yield from ((one, name == "mv" and place == len(named) - 1) for place, one in enumerate(named))
    elif name in _LAST:
        yield from ((one, True) for one in named[-1:])

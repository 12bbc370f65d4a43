"""Find the files named in the output of a call: folder lists, finds, searches, and shell commands of these kinds.

Best effort: output has many forms, and a path that is missed can still be read. So a line that may be anything else names
nothing.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.model.fields import text as text_field
from pagein.model.messages import ToolCall
from pagein.policy.clients.known_files import absolute_path
from pagein.policy.clients.profile import Op, arguments_of
from pagein.policy.clients.shell_reads import command_line, pipelines

MOST_PATHS: Final = 200
"""Most files that one output brings in."""
_FOLDERS: Final = ("path", "dir_path", "directory", "dir")
_PATH: Final = re.compile(r"(?:[A-Za-z]:[\\/])?[\w.@+/\\-][\w.@+ /\\-]{0,299}")
_HIT: Final = re.compile(r"((?:[A-Za-z]:)?[^:\n]{1,300}?):\d+(?::\d+)?[:-]|((?:[A-Za-z]:)?[^:\n]{1,300}?):(?=\S)")
_LONG_LINE: Final = re.compile(r"([-dlbcps])[-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+\d+\s+\S+\s+\S+\s+\S+\s+(.+)")
_BARE: Final = frozenset(
    [
        "Makefile",
        "Dockerfile",
        "LICENSE",
        "README",
        "CHANGELOG",
        "Gemfile",
        "Rakefile",
        "Jenkinsfile",
        "Procfile",
        "Justfile",
        "Vagrantfile",
    ]
)
"""Names of files without a suffix. Other names without one may be folders."""
_SUFFIX: Final = re.compile(r"\w{1,12}")
_SEARCHES: Final = frozenset(["grep", "rg", "ag", "ack", "egrep", "fgrep", "search"])
_FINDS: Final = frozenset(["find", "fd", "glob", "fdfind"])
_LISTS: Final = frozenset(["ls", "list", "list_directory", "listdir", "dir"])


def found_paths(op: Op, call: ToolCall, output: str, folder: str) -> tuple[str, ...]:
    """Return the files that an output names, absolute where the folder is known, each once.

    op: the operation of the call's tool. folder: the session's working folder, "" if unknown.
    """
    row = arguments_of(call.arguments)
    name, base = _kind_of_tool(op, call.name), folder
    if op == "exec":
        line, moved_to = command_line(row)
        chain = [one for one in pipelines(line or "") if any(one)]
        if len(chain) != 1 or len(chain[0]) != 1:
            return ()  # what several commands print together is anybody's
        words = chain[0][0]
        base = absolute_path(moved_to, folder) if moved_to else folder
        name = "find" if words[:2] == ["git", "ls-files"] else words[0].rpartition("/")[2]
        base = _listed_folder(words, base) if name == "ls" else base
    elif name in _LISTS:
        base = absolute_path(text_field(row, *_FOLDERS) or ".", folder)
    found = (absolute_path(path, base) for path in _named(name, output))
    return tuple(dict.fromkeys(found))[:MOST_PATHS]


def _kind_of_tool(op: Op, name: str) -> str:
    name = name.lower()
    if op not in ("list", "search", "other") or name in _LISTS | _FINDS | _SEARCHES:
        return name
    return {"list": "find", "search": "grep"}.get(op, "")


def _listed_folder(words: Sequence[str], base: str) -> str:
    folders = [word for word in words[1:] if not word.startswith("-")]
    return absolute_path(folders[0], base) if len(folders) == 1 else base


def _named(name: str, output: str) -> Iterator[str]:
    for line in output.split("\n"):
        told = line.strip()
        if name in _SEARCHES:
            hit = _HIT.match(told)
            path = (hit[1] or hit[2]) if hit is not None else told
        elif name in _LISTS:
            long = _LONG_LINE.fullmatch(told)
            if long is not None and long[1] != "-":
                continue
            path = told if long is None else long[2]
        elif name in _FINDS:
            path = told
        else:
            return
        if _is_file(path):
            yield path


def _is_file(path: str) -> bool:
    """Return whether a text is the path of a file, and not of a folder or anything else."""
    name = posixpath.basename(path.replace("\\", "/"))
    if _PATH.fullmatch(path) is None or not name or name in (".", "..") or path.endswith(("/", ".")):
        return False
    if " " in path and "/" not in path:
        return False  # words of a message
    stem, _, suffix = name.rpartition(".")
    return name in _BARE or (bool(stem) and _SUFFIX.fullmatch(suffix) is not None)

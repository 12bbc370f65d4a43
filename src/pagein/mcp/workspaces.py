"""The folders readable for an MCP client, and the folder meant by a call."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pagein.workspace.target_state import is_inside, root_of


def workspace_of(path: str, folders: Sequence[str]) -> str:
    """Return the folder for looking up a path: the innermost folder around the path, else the first folder.

    A path outside of all is looked up in the first, and refused there.
    """
    if not Path(path).is_absolute():
        return folders[0]
    holding = [one for one in folders if is_inside(path, root_of(one)) or is_inside(path, str(Path(one).absolute()))]
    return max(holding, key=len, default=folders[0])


def folders_of(roots: Iterable[str]) -> tuple[str, ...]:
    """Return the folders on this machine among a client's roots, which are addresses."""
    found = []
    for one in roots:
        try:
            address = urlsplit(one)
        except ValueError:  # no address at all; the other roots still hold
            continue
        folder = unquote(address.path)
        if address.scheme == "file" and address.netloc in ("", "localhost") and Path(folder).is_dir():
            found.append(folder)
    return tuple(dict.fromkeys(found))

"""`pagein search --code`: search the files of the workspace.

Heavy imports are inside the functions, as in `cli`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagein.cli.archive_access import print_answer
from pagein.errors import BadInput


@dataclass(frozen=True, slots=True)
class WorkspaceSearch:
    """A search as it was typed.

    regex: whether the pattern is an expression. seconds: most time.
    """

    pattern: str
    regex: bool
    ignore_case: bool
    path: str | None
    limit: int
    seconds: float


def search_workspace(
    asked: WorkspaceSearch, *, session: str | None, workspace: Path, store: str | None, as_json: bool
) -> None:
    """Search, and print the hits. With a session, the search counts for the guards of its reads.

    Raises BadInput for an unusable pattern or path.
    """
    from pagein.ui.code_views import show_code_hits

    pattern = _pattern(asked)
    answer = _alone(pattern, asked, workspace) if session is None else _in(session, pattern, asked, workspace, store)
    if asked.regex and answer["notice"] is not None:
        raise BadInput(answer["notice"])
    print_answer(answer, show_code_hits, as_json=as_json)


def _pattern(asked: WorkspaceSearch) -> str:
    """Return the pattern as the tool takes it, in which a text between slashes is an expression."""
    flags = "i" if asked.ignore_case else ""
    if asked.regex:
        return f"/{asked.pattern}/{flags}"
    is_plain = not flags and not (asked.pattern.startswith("/") and asked.pattern.count("/") > 1)
    return asked.pattern if is_plain else f"/{re.escape(asked.pattern)}/{flags}"


def _alone(pattern: str, asked: WorkspaceSearch, workspace: Path) -> dict[str, Any]:
    from pagein import wiring
    from pagein.tools import code_search as commands
    from pagein.workspace.code_search import CodeSearch

    settings = wiring.usual()
    query = commands.query_of(pattern, asked.path, asked.limit, asked.seconds, skips=settings.guards.folders)
    found = CodeSearch(str(workspace.absolute()), settings.excluded).search(query)
    return commands.results_values(pattern, found, len(found.hits))


def _in(session: str, pattern: str, asked: WorkspaceSearch, workspace: Path, store: str | None) -> dict[str, Any]:
    from pagein import wiring
    from pagein.tools.calls import Call
    from pagein.tools.search import SEARCH

    given = {"pattern": pattern, "search_type": "code", "limit": asked.limit, "path": asked.path}
    with wiring.open(store, workspace=workspace) as engine:
        told = SEARCH.answer(engine.session(session, workspace=workspace), Call(given))
    if told.is_error:
        raise BadInput(told.text)
    return dict(told.details)

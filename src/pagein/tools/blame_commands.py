"""Implement `pagein blame` as a function with a plain result.

The result shape is stable: it is printed as a JSON object under `--json`, described in docs/reference/answers.md. Times are seconds since 1970.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput, NotRecallable
from pagein.model.derived_versions import FILES
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.blame.known_states import LineOrigin, lines_of
from pagein.policy.blame.line_origins import line_origins
from pagein.ports import ObjectStore
from pagein.tools.file_history import FileHistory, file_history, turn_of, words_of_each
from pagein.workspace.git_blame import GitAbsence, GitBlame, GitLine

Answer: TypeAlias = dict[str, Any]
ANSWERS: Final = ("agent", "person", "mixed", "unknown")


def blame(
    store: ObjectStore,
    path: str,
    text: str | None,
    git: GitBlame | GitAbsence,
    *,
    lines: tuple[int, int] | None = None,
    machine: str | None = None,
) -> Answer:
    """Return who wrote each line of a file last.

    path: absolute. text: of the file now; None for the newest whole text in the store.
    lines: first and last line wanted, from 1.
    machine: id of the machine that has the file; None if files of all machines are meant.

    Shape: `{"path", "from": "disk" or "store", "versions", "git": {"path", "head", "changed"} or null, "no_git": why or null, "counts":
    {answer: lines}, "matches": {match: lines}, "sources": [...], "lines": [...]}`. A source is `{"version", "path", "op", "at", "session",
    "turn", "request", "agent", "models"}`; a line `{"line", "answer", "match", "source": place in sources or null, "commit", "author",
    "committed_at", "commit_path", "commit_line", "text"}`.
    """
    known = file_history(store, path, machine)
    shown = lines_of(text) if text is not None else _newest(known, path)
    commits = _commits(git, len(shown))
    others = [file_history(store, one, machine) for one in git.elsewhere] if isinstance(git, GitBlame) else []
    dates = [None if one is None else one.at for one in commits]
    origins = line_origins(known.states, shown, dates, [other.states for other in others])
    versions = [version for those in (known, *others) for version in those.versions]
    states = [state for those in (known, *others) for state in those.states]
    wanted = range(len(shown)) if lines is None else range(lines[0] - 1, min(lines[1], len(shown)))
    if lines is not None and not wanted:
        raise BadInput(f"{path} has {len(shown)} lines; --line {lines[0]}-{lines[1]} asks for none of them")
    found = dict.fromkeys(state for j in wanted if (state := origins[j].state) is not None)
    used = {state: place for place, state in enumerate(found)}
    return {
        "path": path,
        "from": "store" if text is None else "disk",
        "versions": len(versions),
        "git": {"path": git.path, "head": git.head, "changed": git.is_changed} if isinstance(git, GitBlame) else None,
        "no_git": git.why if isinstance(git, GitAbsence) else None,
        "counts": {name: sum(origins[j].answer == name for j in wanted) for name in ANSWERS},
        "matches": dict(Counter(origins[j].match for j in wanted)),
        "sources": _sources(store, [(versions[state], states[state].deed) for state in used]),
        "lines": [_line(j + 1, origins[j], used, commits[j], shown[j]) for j in wanted],
    }


def _newest(known: FileHistory, path: str) -> Sequence[str]:
    for state in reversed(known.states):
        if state.lines is not None and state.spans is None:
            return state.lines
    raise NotRecallable(
        f"{path} is no file, and the store has no whole text of it; `pagein objects --path` lists what it has"
    )


def _commits(git: GitBlame | GitAbsence, count: int) -> Sequence[GitLine | None]:
    if isinstance(git, GitBlame) and len(git.lines) == count:
        return git.lines
    return [None] * count


def _line(number: int, origin: LineOrigin, used: Mapping[int, int], commit: GitLine | None, text: str) -> Answer:
    return {
        "line": number,
        "answer": origin.answer,
        "match": origin.match,
        "source": None if origin.state is None else used[origin.state],
        "commit": None if commit is None else commit.commit,
        "author": None if commit is None else commit.author,
        "committed_at": None if commit is None else commit.at,
        "commit_path": None if commit is None else commit.path,
        "commit_line": None if commit is None else commit.number,
        "text": text,
    }


def _sources(store: ObjectStore, sources: Sequence[tuple[Version, str]]) -> list[Answer]:
    sessions: dict[str | None, Answer] = {}
    found = []
    requests = words_of_each(store, [version for version, _ in sources])
    for (version, deed), request in zip(sources, requests, strict=True):
        session = None if version.writer.session == FILES else version.writer.session
        if session not in sessions:
            sessions[session] = _agent(store, session)
        found.append(
            {
                "version": f"{version.id}@{version.number}",
                "path": version.metadata.get("path"),
                "op": deed,
                "at": version.at,
                "session": session,
                "turn": turn_of(version) or None,
                "request": request,
                **sessions[session],
            }
        )
    return found


def _agent(store: ObjectStore, session: str | None) -> Answer:
    """Return the client and the models of a session."""
    query = Query(types=frozenset({"session"}), where={"session_id": session or ""}, limit=1)
    found = store.objects(query) if session else ()
    models = found[0].metadata.get("models") if found else None
    return {
        "agent": str(found[0].metadata.get("harness") or "") if found else "",
        "models": [str(one) for one in models] if isinstance(models, tuple) else [],
    }

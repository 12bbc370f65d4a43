"""The answers of `pagein blame` in the formats of others: Agent Trace records and git-ai notes. Nothing is written anywhere."""

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

from pagein.errors import BadInput
from pagein.providers.prices.price_lookup import newest_prices

Answer = Mapping[str, Any]
_TYPES: Final = {"agent": "ai", "person": "human", "mixed": "mixed", "unknown": "unknown"}
_SHORT: Final = 14


# --- Agent Trace 0.1 ---


def agent_trace(answer: Answer, version: str, at: float) -> dict[str, Any]:
    """Return an Agent Trace record of the lines. Hashes are SHA-256 over the lines, each with a line feed.

    Its numbers of lines are of the file now. So it names a revision only if the file is there as it is now.

    version: of pagein. at: the time of the record.
    """
    told = answer["git"]
    groups: dict[tuple[str, int | None], list[Answer]] = defaultdict(list)
    for line in answer["lines"]:
        has_turn = line["answer"] in ("agent", "mixed") and line["source"] is not None
        groups[_TYPES[line["answer"]], line["source"] if has_turn else None].append(line)
    path = told["path"] if told else answer["path"].lstrip("/")
    conversations = [
        _conversation(kind, None if place is None else answer["sources"][place], lines)
        for (kind, place), lines in groups.items()
    ]
    files = [{"path": path, "conversations": conversations}]
    name = hashlib.sha256(json.dumps([at, files], sort_keys=True).encode()).digest()[:16]
    return {
        "version": "0.1",  # of Agent Trace 0.1.0: its schema takes two numbers
        "id": str(uuid.UUID(bytes=name, version=5)),
        "timestamp": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"vcs": {"type": "git", "revision": told["head"]}} if told and not told["changed"] else {}),
        "tool": {"name": "pagein", "version": version},
        "files": files,
    }


def _conversation(kind: str, source: Answer | None, lines: Sequence[Answer]) -> dict[str, Any]:
    contributor: dict[str, Any] = {"type": kind}
    told: dict[str, Any] = {"contributor": contributor, "ranges": [_range(run) for run in _runs(lines, "line")]}
    if source is None:
        return told
    if len(source["models"]) == 1:
        contributor["model_id"] = _model_id(source["models"][0])
    session = f"urn:pagein:session:{quote(source['session'])}"
    prompt = {"type": "prompt", "url": f"{session}:turn:{source['turn']}"}
    return {"url": session, **told, "related": [{"type": "session", "url": session}, prompt]}


def _range(run: Sequence[Answer]) -> dict[str, Any]:
    text = "".join(f"{line['text']}\n" for line in run)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"start_line": run[0]["line"], "end_line": run[-1]["line"], "content_hash": f"sha256:{digest}"}


def _model_id(model: str) -> str:
    """Return the model with its provider in front; the model alone if the price table has none of this name."""
    known = newest_prices(model)
    return model if known is None or "/" in model else f"{known.provider}/{model}"


def _runs(lines: Iterable[Answer], number: str) -> Iterator[list[Answer]]:
    """Yield the runs of lines with numbers in sequence."""
    ordered = sorted(lines, key=lambda line: int(line[number]))
    for _, run in groupby(enumerate(ordered), key=lambda pair: pair[1][number] - pair[0]):
        yield [line for _, line in run]


# --- git-ai authorship/3.0.0 ---


def git_ai_notes(answer: Answer) -> dict[str, str]:
    """Return the text of a note for each commit that git names for a line of an agent.

    Lines of other answers stay untracked. Raises BadInput if git gives no answer for the file.
    """
    if answer["git"] is None:
        raise BadInput(f"a git-ai note is about a commit, but {answer['no_git']}; commit {answer['path']} first")
    by_commit: dict[str, list[Answer]] = defaultdict(list)
    for line in answer["lines"]:
        if line["answer"] == "agent" and line["commit"] is not None:
            by_commit[line["commit"]].append(line)
    return {commit: _note(commit, lines, answer["sources"]) for commit, lines in by_commit.items()}


def _note(commit: str, lines: Sequence[Answer], sources: Sequence[Answer]) -> str:
    out: list[str] = []
    sessions: dict[str, Any] = {}
    for path, group in groupby(
        sorted(lines, key=lambda line: str(line["commit_path"])), key=lambda line: line["commit_path"]
    ):
        out.append(f'"{path}"' if any(letter.isspace() for letter in path) else path)
        by_key: dict[str, list[Answer]] = defaultdict(list)
        for line in group:
            source = sources[line["source"]]
            name = _session_key(source)
            sessions[name] = {"agent_id": _agent_id(source)}
            by_key[f"{name}::{_trace_key(source)}"].append(line)
        out += [f"  {key} {_spans(those)}" for key, those in by_key.items()]
    about = {"schema_version": "authorship/3.0.0", "base_commit_sha": commit, "prompts": {}, "sessions": sessions}
    return "\n".join([*out, "---", json.dumps(about, indent=2), ""])


def _agent_id(source: Answer) -> dict[str, str]:
    model = source["models"][0] if len(source["models"]) == 1 else "unknown"
    return {"tool": source["agent"] or "unknown", "id": source["session"], "model": model}


def _session_key(source: Answer) -> str:
    return "s_" + _digest(f"{source['agent'] or 'unknown'}:{source['session']}")


def _trace_key(source: Answer) -> str:
    return "t_" + _digest(f"{source['session']}:{source['turn']}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_SHORT]


def _spans(lines: Sequence[Answer]) -> str:
    runs = [(run[0]["commit_line"], run[-1]["commit_line"]) for run in _runs(lines, "commit_line")]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)

"""Find the sessions recorded by the user's own agents on this machine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pagein.errors import BadInput
from pagein.model.messages import UnreadableLine
from pagein.policy.clients.client_prompts import is_client_prompt
from pagein.policy.eviction.session_work import words_of_person
from pagein.replay.readers.opencode import database_sessions
from pagein.replay.readers.row_fields import Row, object_at, objects, text
from pagein.replay.readers.rows import DAMAGE, decode, decode_json, raw_lines
from pagein.replay.readers.source import Source

_LOOKED_AT: Final = 24
_LONGEST: Final = 200

AGENTS: Final = "Claude Code, codex, pi, opencode, Gemini CLI or Copilot CLI"
"""The agents whose sessions are found."""


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A recorded session on this machine, with the facts available without reading it.

    mtime: last change, seconds since 1970.
    size: bytes; 0 for a file with many sessions.
    title: its name, else the user's first words. title, cwd: None where not cheap to find.
    """

    source: Source
    agent: str
    path: Path
    mtime: float
    size: int
    title: str | None = None
    cwd: str | None = None


def discover(home: Path, env: Mapping[str, str], *, titles: bool = True) -> list[FoundSession]:
    """Return the recorded sessions of Claude Code, codex, pi, OpenCode, Gemini CLI and Copilot CLI, newest first.

    Reads only; an unreadable file or folder is omitted.

    home: the user's home folder.
    env: CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR, XDG_DATA_HOME, OPENCODE_DB, GEMINI_CLI_HOME and
    COPILOT_HOME move folders.
    titles: whether to look into the files for titles and folders.
    """
    readers = (_claude_code, _codex, _pi, _gemini_cli, _copilot_cli)
    files = [file for reader in readers for file in reader(home, env)]
    found = [*(one for path, agent in files for one in _looked_at(path, agent, titles)), *_opencode(home, env)]
    return sorted(found, key=lambda session: (-session.mtime, str(session.path), session.source.label))


def _folder(env: Mapping[str, str], key: str, default: Path) -> Path:
    told = env.get(key, "")
    return Path(told).expanduser() if told else default


def _claude_code(home: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    told = env.get("CLAUDE_CONFIG_DIR", "")
    folders = [Path(part) for part in told.split(",") if part] or [home / ".claude", home / ".config" / "claude"]
    for folder in folders:
        for path in _files(folder / "projects", ("*.jsonl",)):
            name = "claude-code/subagent" if path.name.startswith("agent-") else "claude-code"
            yield path, name


def _codex(home: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    root = _folder(env, "CODEX_HOME", home / ".codex")
    seen: set[str] = set()
    for folder in (root / "sessions", root / "archived_sessions"):
        for path in _files(folder, ("rollout-*.jsonl", "rollout-*.jsonl.zst")):
            name = path.name.removesuffix(".zst")
            if name not in seen:
                seen.add(name)
                yield path, "codex"


def _pi(home: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    root = _folder(env, "PI_CODING_AGENT_DIR", home / ".pi" / "agent")
    for path in _files(root / "sessions", ("*.jsonl",)):
        yield path, "pi"


def _gemini_cli(home: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    root = _folder(env, "GEMINI_CLI_HOME", home) / ".gemini" / "tmp"
    for path in _files(root, ("session-*.json", "session-*.jsonl")):
        if path.parent.name == "chats":
            yield path, "gemini-cli"
    for path in _files(root, ("*.jsonl",)):
        if path.parent.parent.name == "chats":
            yield path, "gemini-cli/subagent"


def _copilot_cli(home: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    root = _folder(env, "COPILOT_HOME", home / ".copilot") / "session-state"
    for path in _files(root, ("events.jsonl",)):
        yield path, "copilot-cli"


def _opencode(home: Path, env: Mapping[str, str]) -> Iterator[FoundSession]:
    root = _folder(env, "XDG_DATA_HOME", home / ".local" / "share") / "opencode"
    seen: set[str] = set()
    named = env.get("OPENCODE_DB", "")
    databases = [root / named] if named and named != ":memory:" else sorted(root.glob("opencode*.db"))
    for path in databases:
        for found in _in_database(path):
            seen.add(found.source.member or "")
            yield found
    for path in _files(root / "storage" / "session", ("*.json",)):
        if path.stem not in seen:
            yield from _stored_sessions(path)


def _in_database(path: Path) -> Iterator[FoundSession]:
    try:
        rows = database_sessions(path) if path.is_file() else []
    except BadInput:
        return
    for session, title, cwd, changed in rows:
        source = Source(f"{path.name}:{session}", path, member=session)
        yield FoundSession(source, "opencode", path, changed, 0, title or None, cwd or None)


def _stored_sessions(path: Path) -> Iterator[FoundSession]:
    try:
        row = decode_json(path.read_bytes())
        status = path.stat()
    except (OSError, ValueError):
        return
    info: Row = row if isinstance(row, dict) else {}
    told = text(info, "title"), text(info, "directory")
    yield FoundSession(Source(path.name, path), "opencode", path, status.st_mtime, status.st_size, *told)


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        try:
            yield from sorted(folder.rglob(pattern))
        except OSError:
            continue


def _looked_at(path: Path, agent: str, titles: bool) -> Iterator[FoundSession]:  # noqa: FBT001 - passed on
    try:
        status = path.stat()
    except OSError:
        return
    if not status.st_size:
        return
    title, cwd = _title_and_cwd(path) if titles else (None, None)
    yield FoundSession(Source(path.name, path), agent, path, status.st_mtime, status.st_size, title, cwd)


def _title_and_cwd(path: Path) -> tuple[str | None, str | None]:
    """Return title and folder from the first lines of a file. Damage is left for the reader to report."""
    title: str | None = None
    words: str | None = None
    cwd: str | None = None
    try:
        for place, item in enumerate(raw_lines(Source(path.name, path))):
            row = item if isinstance(item, UnreadableLine) else decode(*item)
            if isinstance(row, UnreadableLine) or place >= _LOOKED_AT or ((title or words) and cwd):
                break
            title = title or text(row, "customTitle", "summary", "name")
            words = words or _first_words(row)
            cwd = cwd or text(row, "cwd") or text(object_at(row, "payload"), "cwd")
            cwd = cwd or text(object_at(object_at(row, "data"), "context"), "cwd")
    except DAMAGE:
        return None, None
    return title or words, cwd


def _first_words(row: Row) -> str | None:
    """Return the user's own words in a line of Claude Code, codex or pi; None if it has none."""
    for said in (object_at(row, "message"), object_at(row, "payload")):
        if text(said, "role") != "user" or row.get("isMeta"):
            continue
        content = said.get("content")
        for part in [content] if isinstance(content, str) else [text(one, "text") for one in objects(content)]:
            if part and not is_client_prompt(part) and (words := words_of_person(part)):
                return " ".join(words.split())[:_LONGEST]
    return None

"""Small real sessions in files, and the command as a process."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.command_server import run_command


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `pagein` with a home folder of its own."""

    def run(*arguments: str | Path, cwd: Path | None = None, **env: str) -> Ran:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "LC_ALL") if name in os.environ}
        done = run_command(*arguments, env={**keep, "HOME": str(home), **env}, cwd=cwd)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of forty calls, half of which read a file, with a pause of ten minutes after thirty of them."""
    return write_session(tmp_path / "sessions" / "one.jsonl")


def write_session(path: Path, calls: int = 40, size: int = 9_000, title: str = "tidy the parser") -> Path:
    rows: list[dict[str, object]] = [
        {
            "kind": "session",
            "schema": "pagein-session/1",
            "id": path.stem,
            "source": "made-up",
            "agent": "scripted",
            "models": ["claude-opus-4-6"],
            "started": "2026-03-01T09:00:00Z",
            "parent": None,
            "flags": {},
        },
        _message(0, "user", [{"type": "text", "text": title}], second=0),
    ]
    for call in range(calls):
        path_read = f"src/part_{call}.py"
        is_read = call % 2 == 0
        name = "Read" if is_read else "Bash"
        asked: dict[str, object] = {
            "type": "tool_call",
            "id": f"c{call}",
            "name": name,
            "args": {"file_path": path_read} if is_read else {"command": f"make part-{call}"},
            "ops": [{"op": "read", "path": path_read, "via": "native"}] if is_read else [],
        }
        text = "".join(
            f"line {number} of part {call}: value_{number * call} = {number}\n" for number in range(size // 40)
        )
        answered: dict[str, object] = {
            "type": "tool_result",
            "id": f"c{call}",
            "name": name,
            "text": text,
            "is_error": False,
        }
        # a pause in which the cache goes cold, so that what is old by then leaves
        pause = 600 if call >= 30 else 0
        rows.append(_message(2 * call + 1, "assistant", [asked], second=20 * call + 10 + pause))
        rows.append(_message(2 * call + 2, "tool", [answered], second=20 * call + 12 + pause))
    end = 20 * calls + 620
    rows.append(_message(2 * calls + 1, "assistant", [{"type": "text", "text": "Done."}], second=end))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _message(number: int, role: str, blocks: list[dict[str, object]], second: int) -> dict[str, object]:
    at = f"2026-03-01T09:{second // 60:02}:{second % 60:02}.000Z"
    return {"kind": "msg", "i": number, "role": role, "ts": at, "content": blocks}

import json
import os
import shutil
from pathlib import Path

import zstandard

from pagein.replay.readers import discover, read_source


def _copy(source: Path, target: Path, at: float) -> None:
    target.parent.mkdir(parents=True)
    shutil.copy(source, target)
    os.utime(target, (at, at))


def test_the_sessions_of_all_four_agents_are_found_newest_first(fixtures: Path, tmp_path: Path) -> None:
    _copy(fixtures / "claude-code.jsonl", tmp_path / ".claude/projects/-srv-shop/cc-1.jsonl", 4000)
    _copy(fixtures / "codex.jsonl", tmp_path / ".codex/sessions/2026/03/02/rollout-2026-03-02-cx-1.jsonl", 3000)
    _copy(fixtures / "pi-v3.jsonl", tmp_path / ".pi/agent/sessions/--srv-shop--/x_pi-three.jsonl", 2000)
    storage = tmp_path / ".local/share/opencode/storage"
    shutil.copytree(fixtures / "opencode/storage", storage)
    os.utime(storage / "session/p1/ses_shop1.json", (1000, 1000))
    found = discover(tmp_path, {})
    assert [(session.agent, session.mtime) for session in found] == [
        ("claude-code", 4000),
        ("codex", 3000),
        ("pi", 2000),
        ("opencode", 1000),
    ]
    assert {session.cwd for session in found} == {"/srv/shop"}
    assert found[3].title == "Tax"
    assert all(session.size > 0 for session in found)
    assert [next(read_source(session.source)).head.id for session in found] == ["cc-1", "cx-1", "pi-three", "ses_shop1"]


def test_sessions_of_gemini_cli_and_copilot_cli_are_found_too(fixtures: Path, tmp_path: Path) -> None:
    chats = ".gemini/tmp/shop/chats"
    _copy(fixtures / "gemini-cli.json", tmp_path / chats / "session-2026-03-02T09-00-gm1.json", 4)
    _copy(fixtures / "gemini-cli.json", tmp_path / "moved" / chats / "session-1.json", 3)
    (tmp_path / ".gemini/tmp/shop/logs.json").write_text("[]")
    _copy(fixtures / "copilot-cli.jsonl", tmp_path / ".copilot/session-state/cp-1/events.jsonl", 2)
    _copy(fixtures / "copilot-cli.jsonl", tmp_path / "state/session-state/cp-1/events.jsonl", 1)
    found = discover(tmp_path, {})
    assert [(session.agent, session.mtime) for session in found] == [("gemini-cli", 4), ("copilot-cli", 2)]
    assert found[1].cwd == "/srv/shop"
    moved = discover(tmp_path, {"GEMINI_CLI_HOME": str(tmp_path / "moved"), "COPILOT_HOME": str(tmp_path / "state")})
    assert [(session.agent, session.mtime) for session in moved] == [("gemini-cli", 3), ("copilot-cli", 1)]


def test_variables_of_the_environment_move_the_folders(fixtures: Path, tmp_path: Path) -> None:
    _copy(fixtures / "claude-code.jsonl", tmp_path / "a/projects/p/cc-1.jsonl", 3)
    _copy(fixtures / "codex.jsonl", tmp_path / "b/archived_sessions/rollout-1.jsonl", 2)
    _copy(fixtures / "pi-v3.jsonl", tmp_path / "c/sessions/x.jsonl", 1)
    env = {name: str(tmp_path / folder) for name, folder in (("CLAUDE_CONFIG_DIR", "a"), ("CODEX_HOME", "b"))}
    found = discover(tmp_path / "home", {**env, "PI_CODING_AGENT_DIR": str(tmp_path / "c")})
    assert [session.agent for session in found] == ["claude-code", "codex", "pi"]


def test_a_rollout_that_codex_compressed_is_found_once(fixtures: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".codex/sessions/2026/01/01"
    _copy(fixtures / "codex.jsonl", folder / "rollout-1.jsonl", 1)
    packed = zstandard.ZstdCompressor().compress((fixtures / "codex.jsonl").read_bytes())
    (folder / "rollout-1.jsonl.zst").write_bytes(packed)
    (folder / "rollout-2.jsonl.zst").write_bytes(packed)
    found = discover(tmp_path, {})
    assert sorted(session.path.name for session in found) == ["rollout-1.jsonl", "rollout-2.jsonl.zst"]
    assert {next(read_source(session.source)).head.id for session in found} == {"cx-1"}


def test_unreadable_files_are_left_to_the_reader_to_report(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/p"
    folder.mkdir(parents=True)
    (folder / "empty.jsonl").touch()
    (folder / "torn.jsonl").write_bytes(b'{"type":"user","cw')
    database = tmp_path / ".local/share/opencode/opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"SQLite format 3\0 and no more")
    (folder / "named.jsonl").write_text(json.dumps({"type": "custom-title", "customTitle": "Tax", "sessionId": "s"}))
    asked = [{"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat"}}]
    asked += [{"type": "user", "message": {"role": "user", "content": "<system-reminder>x</system-reminder>mend  it"}}]
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)))
    assert {session.path.name: session.title for session in discover(tmp_path, {})} == {
        "torn.jsonl": None,
        "asked.jsonl": "mend it",
        "named.jsonl": "Tax",
    }

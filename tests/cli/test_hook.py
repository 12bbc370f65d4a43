"""`pagein hook claude-code`: a call that would write pagein's own text into a file is blocked, and nothing else is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.receipt_reads import read

import pagein
from pagein.engine.receipts import ReceiptedReads
from pagein.gateway.guard_reports import GuardReports
from pagein.installation.agents import AGENTS
from pagein.tools import catalogue
from pagein.tools.calls import Call

LINES = "".join(f"value_{number} = compute({number})\n" for number in range(40))
MARKER = "[readcache: unchanged, 41 lines]"


def ask(folder: Path, told: object, **environment: str) -> str:
    """Why a call is denied; "" for one that is let through. The exit status tells nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "pagein", "hook", "claude-code"],
        input=told if isinstance(told, str) else json.dumps(told),
        env=os.environ | {"PAGEIN_STORE": str(folder / "s.pagein"), "PAGEIN_OFF": ""} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    if not done.stdout:
        return ""
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert (said["hookEventName"], said["permissionDecision"]) == ("PreToolUse", "deny")
    return str(said["permissionDecisionReason"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which a read was answered by a marker."""
    folder = tmp_path_factory.mktemp("hook")
    (folder / "a.py").write_text(LINES)
    (folder / "has.md").write_text(f"about {MARKER}\n")
    with pagein.open(folder / "s.pagein", workspace=folder) as engine:
        reads = ReceiptedReads(engine.session("mcp-claude-code", workspace=folder))
        assert read(reads, "a.py", known=[read(reads, "a.py").receipt]).result.text == MARKER
    return folder


def call(tool: str, **given: object) -> dict[str, object]:
    return {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given, "session_id": "x"}


BLOCKED = {
    "write": call("Write", file_path="b.py", content=f"x = 1\n{MARKER}\n"),
    "edit": call("Edit", file_path="a.py", old_string="value_0 = compute(0)", new_string=MARKER),
    "several edits": call("MultiEdit", file_path="a.py", edits=[{"old_string": "a", "new_string": MARKER}]),
    "notebook": call("NotebookEdit", notebook_path="b.ipynb", new_source=MARKER),
    "here document": call("Bash", command=f"cat > b.py <<'E'\n{MARKER}\nE"),
    "patch": call("Bash", command=f"apply_patch '*** Begin Patch\n*** Add File: b.py\n+{MARKER}\n*** End Patch'"),
}
PLAIN = call("Write", file_path="b.py", content=LINES)
LET_THROUGH: dict[str, object] = {
    "a marker that nobody served": call("Write", file_path="b.py", content="[readcache: unchanged, 77 lines]"),
    "a foreign stub": call("Write", file_path="b.py", content="[pagein: pg-01234567-89abcdef | x]"),
    "text that is in the file": call("Write", file_path="has.md", content=f"all about {MARKER}\n"),
    "text that goes": call("Edit", file_path="a.py", old_string=f"x {MARKER}", new_string=f"y {MARKER}"),
    "a search": call("Bash", command=f"grep -rF '{MARKER}' ."),
    "pipes and redirects": call("Bash", command="ls | sort > names.txt 2>&1 && wc -l < names.txt"),
    "no JSON": "{broken",
    "another form": {"tool": "Write"},
    "nothing": "",
}


@pytest.mark.parametrize("told", BLOCKED.values(), ids=BLOCKED)
def test_a_served_marker_does_not_get_into_a_file(served: Path, told: object) -> None:
    said = ask(served, told)
    assert said.startswith("This call would write text into a file that only stands for other text.")
    assert MARKER in said


@pytest.mark.parametrize("told", LET_THROUGH.values(), ids=LET_THROUGH)
def test_everything_else_is_let_through(served: Path, told: object) -> None:
    assert ask(served, told) == ""


def test_without_a_store_and_while_off_calls_are_let_through_and_no_guard_is_reported(
    served: Path, tmp_path: Path
) -> None:
    home, store = {"XDG_DATA_HOME": str(tmp_path)}, str(served / "s.pagein")
    reports = GuardReports(tmp_path / "pagein" / "guards")
    assert ask(tmp_path, BLOCKED["write"], **home) == ""
    assert not reports.is_guarded("x", store)
    assert ask(served, BLOCKED["write"], PAGEIN_OFF="1", **home) == ""
    assert not reports.is_guarded("x", store)
    assert ask(served, PLAIN, **home) == ""
    assert reports.is_guarded("x", store)


@pytest.mark.parametrize("status", [0, 1, 2, 127])
def test_a_pagein_that_does_not_know_the_hook_blocks_nothing(tmp_path: Path, status: int) -> None:
    old = tmp_path / "pagein"
    if status != 127:  # then there is none
        old.write_text(f"#!/bin/sh\necho 'No such command' >&2\nexit {status}\n")
        old.chmod(0o700)
    entries = [one.entry([str(old), "mcp"]) for one in AGENTS["claude-code"].user_hooks]
    for entry in entries:
        command = json.loads(json.dumps(entry))["hooks"][0]["command"]
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603, S607
        assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("event", ["PreCompact", "SessionEnd"])
def test_what_a_session_said_is_in_the_store_before_its_window_is_gone(
    served: Path, tmp_path: Path, event: str
) -> None:
    transcript = tmp_path / "projects" / "-app" / f"{event}.jsonl"
    transcript.parent.mkdir(parents=True)
    common = {"sessionId": event, "cwd": str(served), "version": "2.1.197", "isSidechain": False}
    words = f"the invoice rounding of {event} is wrong"
    rows: list[dict[str, object]] = [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": words}},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "message": {
                "id": "m",
                "model": "x",
                "role": "assistant",
                "content": [{"type": "text", "text": "I mend it."}],
            },
        },
    ]
    times = {"timestamp": "2026-11-23T10:00:00.000Z"}
    transcript.write_text("".join(json.dumps({**one, **common, **times}) + "\n" for one in rows))
    told = {"hook_event_name": event, "transcript_path": str(transcript), "cwd": str(served), "session_id": event}
    assert ask(served, told) == ""
    with pagein.open(served / "s.pagein", workspace=served) as engine:
        found = engine.session("later", workspace=served)
        text = catalogue.answer(found, "search", Call({"pattern": words, "everything": True})).text
    assert words in text
    assert ask(served, {**told, "transcript_path": str(tmp_path / "missing.jsonl")}) == ""

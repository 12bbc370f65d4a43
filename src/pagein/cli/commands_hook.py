"""The command that agents run before a write of a file, and at the end of a window or session, registered by `cli`.

Rules of this file
------------------
1. A call is blocked only if it is proven that its text is pagein's own. Whatever goes wrong lets it through (law 7).
2. The exit status blocks nothing: an older pagein that does not know this command ends with the status that would. What
   stands on standard output does.
3. Most calls hold nothing that looks like pagein's text. They cost the start of this process, and open no store.
4. The first file write of a session is reported to the gateway that uses the same store (`gateway.guard_reports`). Only then does
   the gateway mask texts in arguments, because only then does something stop the model from writing such a mask.

Heavy imports are inside the command, as in `cli`.
"""

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pagein.cli.agent_names import agent_name, list_agents

_REFUSED: Final = 1
_ENDS: Final = frozenset({"PreCompact", "SessionEnd"})
"""Events after which the window, or the session, is gone."""
_LONGEST: Final = 16 * 1024 * 1024
_LARGEST: Final = 8 * 1024 * 1024
_WRITERS: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_WRITES: Final = ("<<", "*** Begin Patch")
"""What a shell command has that writes a text of its own into a file."""


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(epilog="Example: pagein install claude-code --yes  # puts it into Claude Code's settings")(hook)


def hook(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="claude-code (or claude).", callback=agent_name)],
) -> None:
    """Answer a hook of an agent: block a call that would write pagein's own text into a file, and remember sessions.

    Reads the event as JSON on standard input. Before a tool is used, a call that would write a stub or a marker of pagein's
    into a file is denied, with the remedy, as JSON on standard output. Before a compaction and at the end of a session, the session's transcript is imported into the store. After any failure the agent continues.
    """
    if agent != "claude-code":
        sys.stderr.write(f"pagein: there is no hook for {agent!r}; there is {list_agents(['claude-code'])}\n")
        raise typer.Exit(_REFUSED)
    try:
        told = json.loads(sys.stdin.buffer.read(_LONGEST))
        if told.get("hook_event_name") in _ENDS:
            _remember(told)
            return
        _report(told)
        found = _remedy(told)
    except Exception as problem:  # noqa: BLE001 - rule 1
        sys.stderr.write(f"pagein: the event was not looked at: {type(problem).__name__}: {problem}\n")
        return
    if found:
        denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": found}
        sys.stdout.write(json.dumps({"hookSpecificOutput": denied}) + "\n")


def _remember(told: dict[str, Any]) -> None:
    """Take a session's transcript into the folder's store, if the folder has a store. Raises PageinError."""
    from pagein.gateway.kill_switch import Switch, default_switch

    if Switch(default_switch(), os.environ).is_off():
        return
    from pagein import wiring
    from pagein.archive import find_store

    transcript = Path(str(told["transcript_path"])).expanduser()
    os.chdir(_folder(told))
    place = find_store()
    with wiring.open_intake(place.store, workspace=place.workspace, jobs=1) as intake:
        intake.remember([transcript], named=True)


def _report(told: dict[str, Any]) -> None:
    """Report that the session's file writes are checked. After a failure, told on standard error, nothing is masked."""
    from pagein.gateway.guard_reports import GuardReports, default_folder
    from pagein.gateway.kill_switch import Switch, default_switch

    session, reports = told.get("session_id"), GuardReports(default_folder())
    if told.get("tool_name") not in _WRITERS or not isinstance(session, str) or reports.is_reported(session):
        return
    if Switch(default_switch(), os.environ).is_off():
        return
    from pagein import wiring
    from pagein.archive import find_store

    here = Path.cwd()
    try:
        os.chdir(_folder(told))
        place = find_store()
        address = wiring.public_address(place.store, workspace=place.workspace)
        file = wiring.store_file(place.store, workspace=place.workspace)
        if address is not None and (file is None or file.is_file()):  # where nothing is stored, no gateway is at work
            reports.report(session, address, time.time())  # noqa: TID251 - the rim reads the clock
    except Exception as problem:  # noqa: BLE001 - rule 1
        sys.stderr.write(f"pagein: the session was not reported: {type(problem).__name__}: {problem}\n")
    finally:
        os.chdir(here)


def _folder(told: dict[str, Any]) -> Path:
    return Path(os.environ.get("CLAUDE_PROJECT_DIR") or told.get("cwd") or ".")


def _remedy(told: dict[str, Any]) -> str:
    """Return the reason to block a call, with the remedy; "" for an allowed call."""
    name, given = str(told["tool_name"]), told["tool_input"]
    arguments = json.dumps(given, ensure_ascii=False)
    from pagein.policy.reads.echo_forms import may_echo

    if not may_echo(arguments) or (name == "Bash" and not any(one in str(given.get("command")) for one in _WRITES)):
        return ""
    from pagein.gateway.kill_switch import Switch, default_switch

    if Switch(default_switch(), os.environ).is_off():
        return ""
    from pagein import wiring
    from pagein.archive import find_store
    from pagein.engine.log.served_markers import served_markers
    from pagein.model.messages import ToolCall
    from pagein.policy.reads.echo_guard import OwnTexts, echoes, remedy

    os.chdir(_folder(told))
    place = find_store()
    with closing(wiring.open_for_upkeep(place.store, workspace=place.workspace)) as store:
        secret = store.secret()
        owned = OwnTexts(lambda one: one.is_made_with(secret), served_markers(store))
        found = echoes(ToolCall("", name, arguments), owned, _before(given))
    return remedy(found) if found else ""


def _before(given: dict[str, Any]) -> str:
    """Return the present text of the file before a call's write; "" for a missing file."""
    path = given.get("file_path") or given.get("notebook_path")
    file = Path(path) if isinstance(path, str) else None
    if file is None or not file.is_file() or file.stat().st_size > _LARGEST:
        return ""
    return file.read_text(encoding="utf-8", errors="replace")

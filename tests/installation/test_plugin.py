"""The plugin folder for Claude Code, and the whole of `pagein install` with its hooks, by the command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pagein
from pagein.cli.commands_install import install
from pagein.installation.agents import AGENTS
from pagein.providers.tokens.vocabularies import exact_counter

PLUGIN = Path(__file__).parents[2] / "extensions" / "claude-code"
SETTINGS = '// mine\n{\n\t"hooks" : { "Stop": [ ],},  // none\n\t"theme":"dark"\n}'


def test_the_plugin_has_what_install_puts_in() -> None:
    agent, command = AGENTS["claude-code"], ["pagein", "mcp"]
    assert agent.project is not None
    servers = json.loads((PLUGIN / ".mcp.json").read_text())
    assert servers == {"mcpServers": {"pagein": agent.project.entry(command)}}
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
    assert hooks == {"hooks": {one.keys[-1]: [one.entry(command)] for one in agent.project_hooks}}
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("pagein", pagein.__version__)


def test_the_skill_is_short() -> None:
    counter = exact_counter("gpt-5.5")
    if counter is None:
        pytest.skip("the extra tokens is not installed")
    assert counter.count((PLUGIN / "skills" / "pagein" / "SKILL.md").read_text()) < 400


def test_the_command_puts_the_server_and_all_hooks_in_and_takes_them_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = home / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(SETTINGS)

    def run(*arguments: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "pagein", *arguments],
            env=os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(tmp_path / "data")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    planned = run("install", "claude-code")
    assert ("nothing was written" in planned, "start it by `pagein run claude`" in planned) == (True, True)
    assert file.read_text() == SETTINGS
    assert planned.count(f"--- {file}\n") == 1, "a second difference would not apply to the file as it is"
    run("install", "claude-code", "--yes")
    assert file.read_text().count("hook claude-code") == 3
    assert run("install", "claude-code", "--yes").count("nothing to do") == 2
    installed = file.read_text()
    planned = run("uninstall", "claude-code")
    leaving = [line for line in planned.splitlines() if line.startswith("-") and "hook claude-code" in line]
    assert (planned.count("nothing was written"), len(leaving)) == (2, 3)
    assert file.read_text() == installed
    run("uninstall", "claude", "--yes")  # by its command
    assert file.read_text() == SETTINGS
    assert not (home / ".claude.json").exists()
    assert run("uninstall", "claude-code", "--yes").count("nothing to do") == 2


def test_what_the_server_still_needs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    install("codex")
    assert "pip install" not in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed
    install("codex")
    assert "pip install 'pagein[mcp]'" in capsys.readouterr().out

"""What `pagein doctor` reads in the files of the agents."""

import json
from pathlib import Path

import pytest

from pagein.gateway.client_setup import CLIENTS, read_client_setups
from pagein.gateway.clients.client import ClientSetup, ConfigPlaces, is_same

URL = "http://127.0.0.1:8790"
CODEX = f'[model_providers.pagein]\nname = "pagein"\nbase_url = "{URL}/v1"\n'


def _looked(folder: Path, **environment: str) -> dict[str, ClientSetup]:
    places = ConfigPlaces(folder, folder / "work", environment)
    return {one.client.name: one for one in read_client_setups(URL, places)}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_without_any_file_nothing_points_here_and_each_agent_is_told_how(tmp_path: Path) -> None:
    found = _looked(tmp_path)
    assert list(found) == [client.name for client in CLIENTS]
    assert not any(one.points_here for one in found.values())
    assert all(one.problems for one in found.values())


def test_a_codex_provider_that_is_chosen_points_here(tmp_path: Path) -> None:
    _write(tmp_path / ".codex/config.toml", 'model_provider = "pagein"\n' + CODEX)
    assert _looked(tmp_path)["codex"].points_here


def test_a_codex_choice_below_a_table_is_named_with_the_remedy(tmp_path: Path) -> None:
    _write(tmp_path / "c/config.toml", '[tools]\nweb_search = true\nmodel_provider = "pagein"\n' + CODEX)
    [problem] = _looked(tmp_path, CODEX_HOME=str(tmp_path / "c"))["codex"].problems
    assert "model_provider is below [tools]" in problem
    assert "above the first [table]" in problem


def test_a_codex_entry_that_nobody_chose_is_told(tmp_path: Path) -> None:
    _write(tmp_path / ".codex/config.toml", 'model_provider = "openai"\n' + CODEX)
    [problem] = _looked(tmp_path)["codex"].problems
    assert 'model_provider = "openai" chooses another' in problem


def test_settings_of_claude_code_outvote_the_shell(tmp_path: Path) -> None:
    shell = {"ANTHROPIC_BASE_URL": URL, "ENABLE_TOOL_SEARCH": "true"}
    assert _looked(tmp_path, **shell)["Claude Code"].points_here
    _write(tmp_path / ".claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}}))
    [problem] = _looked(tmp_path, **shell)["Claude Code"].problems
    assert "outvotes the shell" in problem
    assert "settings.json" in problem
    _write(tmp_path / "work/.claude/settings.local.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": URL}}))
    assert _looked(tmp_path, **shell)["Claude Code"].points_here


def test_claude_code_is_told_of_its_window_unless_something_keeps_it(tmp_path: Path) -> None:
    shell = {"ANTHROPIC_BASE_URL": URL, "ENABLE_TOOL_SEARCH": "true"}
    assert "200k" in _looked(tmp_path, **shell)["Claude Code"].remarks[0]
    assert not _looked(tmp_path, **shell, ANTHROPIC_MODEL="claude-sonnet-5[1m]")["Claude Code"].remarks
    assert not _looked(tmp_path, **shell, _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL="1")["Claude Code"].remarks
    _write(tmp_path / ".claude/settings.json", json.dumps({"model": "opus[1m]"}))
    assert not _looked(tmp_path, **shell)["Claude Code"].remarks


def test_opencode_settings_may_hold_comments(tmp_path: Path) -> None:
    text = '{\n  // as "always" // and\n  "provider": {"anthropic": {"options": {"baseURL": "http://localhost:8790/v1",},},},\n  /* ** */\n}'
    _write(tmp_path / ".config/opencode/opencode.jsonc", text)
    assert _looked(tmp_path)["opencode"].points_here


def test_an_opencode_address_without_its_path_does_not_point_here(tmp_path: Path) -> None:
    _write(tmp_path / "work/opencode.json", json.dumps({"provider": {"anthropic": {"options": {"baseURL": URL}}}}))
    assert not _looked(tmp_path)["opencode"].points_here


def test_models_of_pi_point_here_with_the_path_of_their_format(tmp_path: Path) -> None:
    for address in (URL, f"{URL}/v1"):
        _write(tmp_path / ".pi/agent/models.json", json.dumps({"providers": {"anthropic": {"baseUrl": address}}}))
        assert _looked(tmp_path)["pi"].points_here


@pytest.mark.parametrize("file", [".codex/config.toml", ".pi/agent/models.json", ".claude/settings.json"])
def test_a_file_that_is_damaged_is_named_and_the_others_are_looked_at(tmp_path: Path, file: str) -> None:
    _write(tmp_path / file, "{ no")
    found = _looked(tmp_path)
    assert len(found) == len(CLIENTS)
    assert (
        sum(
            " is not JSON" in problem or " is not TOML" in problem for one in found.values() for problem in one.problems
        )
        == 1
    )


def test_addresses_are_compared_by_what_they_reach() -> None:
    assert is_same("http://localhost:8790/", URL)
    assert is_same(f"{URL}/t-abc", URL)
    assert not is_same("http://127.0.0.1:8791", URL)
    assert not is_same("http://example.com:8790", URL)
    assert not is_same("http://[", URL)
    assert not is_same(None, URL)

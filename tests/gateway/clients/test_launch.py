"""How each client is pointed to the gateway by its environment and its command line."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pagein.errors import BadSetting
from pagein.gateway.client_setup import LAUNCHES
from pagein.gateway.clients.client import ConfigPlaces
from pagein.gateway.clients.launch import (
    AgentEndpoint,
    LaunchPlan,
    LaunchRequest,
    choose_upstreams,
    is_same_upstream,
)
from pagein.providers.vendors import VENDORS

URL = "http://127.0.0.1:8790"
CORP = "https://llm.example.com"


def _planned(
    command: str, home: Path, *arguments: str, told: Mapping[str, str] | None = None, whole: bool = False, **set_to: str
) -> tuple[LaunchPlan, Mapping[str, str]]:
    """The plan, and the upstream of each vendor."""
    launch = next(one for one in LAUNCHES if one.command == command)
    places = ConfigPlaces(home, home / "work", set_to)
    upstreams, through = choose_upstreams(launch.endpoints(places, arguments), told or {}, lambda one: URL in one)
    own = frozenset(one.name for one in VENDORS if is_same_upstream(upstreams[one.name], one.address))
    return launch.plan(LaunchRequest(URL, places, arguments, through, own, whole)), upstreams


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_claude_code_gets_the_address_and_its_tool_search_by_variables(tmp_path: Path) -> None:
    plan, upstreams = _planned("claude", tmp_path, ANTHROPIC_API_KEY="k")
    assert plan.environment == {"ANTHROPIC_BASE_URL": URL, "ENABLE_TOOL_SEARCH": "true"}
    assert plan.arguments == ()
    assert upstreams["anthropic"] == "https://api.anthropic.com"
    assert "200k" in plan.remarks[0]


@pytest.mark.parametrize("how", ["shell", "file"])
def test_a_gateway_that_claude_code_used_before_stays_behind_pagein(tmp_path: Path, how: str) -> None:
    if how == "file":
        _write(tmp_path / ".claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": CORP}}))
    shell = CORP if how == "shell" else ""
    plan, upstreams = _planned("claude", tmp_path, ANTHROPIC_BASE_URL=shell)
    assert upstreams["anthropic"] == CORP
    assert "ENABLE_TOOL_SEARCH" not in plan.environment  # only the vendor's own address is known to have it
    if how == "file":
        assert plan.arguments[0] == "--settings"
        assert json.loads(plan.arguments[1]) == {"env": {"ANTHROPIC_BASE_URL": URL}}


def test_two_addresses_for_one_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="a key must not reach another host"):
        _planned("claude", tmp_path, told={"anthropic": "https://other.example.com"}, ANTHROPIC_BASE_URL=CORP)


def test_an_address_that_is_the_gateway_itself_is_no_upstream(tmp_path: Path) -> None:
    assert _planned("claude", tmp_path, ANTHROPIC_BASE_URL=URL)[1]["anthropic"] == "https://api.anthropic.com"


def test_claude_code_keeps_what_the_user_decided(tmp_path: Path) -> None:
    plan, _ = _planned("claude", tmp_path, "--model", "opus[1m]", ENABLE_TOOL_SEARCH="false", ANTHROPIC_API_KEY="k")
    assert plan.environment == {"ANTHROPIC_BASE_URL": URL}
    assert plan.remarks == ()


def test_the_whole_window_is_for_the_vendors_own_address(tmp_path: Path) -> None:
    plan, _ = _planned("claude", tmp_path, whole=True, ANTHROPIC_API_KEY="k")
    assert plan.environment["_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"] == "1"
    assert plan.remarks == ()
    with pytest.raises(BadSetting, match="whole-window"):
        _planned("claude", tmp_path, whole=True, ANTHROPIC_BASE_URL=CORP)


def test_a_claude_code_that_uses_no_base_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="CLAUDE_CODE_USE_BEDROCK"):
        _planned("claude", tmp_path, CLAUDE_CODE_USE_BEDROCK="1")
    _write(tmp_path / ".claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": CORP}}))
    with pytest.raises(BadSetting, match=r"--settings is taken by your own"):
        _planned("claude", tmp_path, "--settings", "mine.json")


def test_a_login_of_codex_keeps_its_provider_and_so_its_threads(tmp_path: Path) -> None:
    _write(tmp_path / ".codex/auth.json", "{}")
    plan, _ = _planned("codex", tmp_path, OPENAI_API_KEY="k")
    assert plan.arguments == ("-c", f'openai_base_url="{URL}/v1"')
    assert plan.remarks == ()


def test_a_key_alone_needs_a_provider_of_its_own_which_hides_threads(tmp_path: Path) -> None:
    plan, _ = _planned("codex", tmp_path, OPENAI_API_KEY="k")
    assert plan.arguments[:2] == ("-c", "model_provider=pagein")
    assert "supports_websockets=false" in plan.arguments[3]
    assert "resume" in plan.remarks[0]


def test_a_provider_of_the_users_own_in_codex_keeps_its_host(tmp_path: Path) -> None:
    entry = f'[model_providers.corp]\nname = "corp"\nbase_url = "{CORP}/openai"\nenv_key = "CORP_KEY"\n'
    _write(tmp_path / ".codex/config.toml", f'[profiles.work]\nmodel_provider = "corp"\n{entry}')
    plan, upstreams = _planned("codex", tmp_path, "-p", "work", OPENAI_API_KEY="k")
    assert upstreams["openai"] == f"{CORP}/openai"
    assert plan.arguments[1] == f'model_providers.corp.base_url="{URL}"'  # its address has no version, so ours has none
    assert _planned("codex", tmp_path, OPENAI_API_KEY="k")[1]["openai"] == "https://api.openai.com"


def test_opencode_gets_the_address_of_each_provider_over_its_files(tmp_path: Path) -> None:
    plan, _ = _planned("opencode", tmp_path, OPENCODE_CONFIG_CONTENT='{"theme": "dark"}')
    told = json.loads(plan.environment["OPENCODE_CONFIG_CONTENT"])
    assert told["theme"] == "dark"
    assert {name: one["options"]["baseURL"] for name, one in told["provider"].items()} == {
        "anthropic": f"{URL}/v1",
        "openai": f"{URL}/v1",
    }


def test_of_two_hosts_of_one_kind_only_the_one_in_use_goes_through(tmp_path: Path) -> None:
    mine = {"mine": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{CORP}/v1"}}}
    _write(tmp_path / "work/opencode.json", json.dumps({"model": "mine/large", "provider": mine}))
    plan, upstreams = _planned("opencode", tmp_path)
    assert upstreams["openai"] == f"{CORP}/v1"
    assert set(json.loads(plan.environment["OPENCODE_CONFIG_CONTENT"])["provider"]) == {"anthropic", "mine"}
    plan, upstreams = _planned("opencode", tmp_path, "-m", "openai/gpt-5.1")
    assert upstreams["openai"] == "https://api.openai.com"
    assert set(json.loads(plan.environment["OPENCODE_CONFIG_CONTENT"])["provider"]) == {"anthropic", "openai"}
    plan, _ = _planned("opencode", tmp_path, "-m", "openrouter/some")
    assert plan.remarks == ("openrouter does not go through pagein, only anthropic, openai",)


def test_pi_gets_its_addresses_by_an_extension(tmp_path: Path) -> None:
    mine = {"mine": {"baseUrl": CORP, "api": "anthropic-messages"}}
    _write(tmp_path / ".pi/agent/models.json", json.dumps({"providers": mine}))
    plan, upstreams = _planned("pi", tmp_path, "--model", "mine/large")
    assert upstreams["anthropic"] == CORP
    assert json.loads(plan.environment["PAGEIN_PI_BASE_URLS"]) == {"mine": URL, "openai": f"{URL}/v1"}
    assert Path(plan.arguments[1]).is_file()


def test_a_login_that_sends_nothing_to_a_gateway_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="selectedType"):
        _planned("gemini", tmp_path)
    _write(tmp_path / ".gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    assert _planned("gemini", tmp_path)[0].environment == {"GOOGLE_GEMINI_BASE_URL": URL}


def test_no_provider_is_pointed_to_an_upstream_that_is_not_its_own() -> None:
    from pagein.gateway.clients.launch import Endpoints

    known = (
        AgentEndpoint("openai", "openai"),
        AgentEndpoint("a", "openai", f"{CORP}/a/v1"),
        AgentEndpoint("b", "openai", f"{CORP}/b/v1"),
    )
    for chosen, through in [("openai", ["openai"]), ("a", ["a"]), ("b", ["b"]), ("", ["openai"])]:
        upstreams, found = choose_upstreams(Endpoints(known, chosen), {}, lambda _: False)
        assert [one.name for one in found.known] == through
        assert all(
            is_same_upstream(upstreams["openai"], one.address or "https://api.openai.com") for one in found.known
        )

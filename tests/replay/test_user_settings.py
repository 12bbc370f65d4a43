"""A replay decides by the settings that hold for the user."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pagein.cli.cli import app
from pagein.engine.engine import Settings
from pagein.policy.eviction.presets import PRESETS
from pagein.policy.eviction.residency import PRICED
from pagein.providers.prices.price_lookup import prices
from pagein.replay.policies.pagein_policy import settings_for

ROOT = Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "examples" / "demo-session.jsonl.gz")


def test_settings_hold_but_for_the_prices() -> None:
    usual = Settings(residency=PRESETS["thrifty"].residency, manifest=True)
    found = settings_for(prices("claude-opus-4-6"), 300, usual)
    assert (found.residency.rules, found.manifest) == (PRESETS["thrifty"].residency.rules, True)
    assert found.residency.economics == settings_for(prices("claude-opus-4-6"), 300).residency.economics
    assert settings_for(prices("claude-opus-4-6"), 300).residency.rules == PRICED.rules


def test_a_setting_that_cannot_be_is_told_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEIN_KEEP_CALLS", "many")
    done = CliRunner().invoke(app, ["replay", DEMO, "--quiet"])
    assert done.exit_code != 0
    assert "PAGEIN_KEEP_CALLS: takes a whole number of 0 or more, not 'many'" in str(done.exception) + done.output


def test_a_replay_uses_the_users_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["replay", DEMO, "--json", "--policy", "pagein", "--no-stress", "--jobs", "1"]
    usual = CliRunner().invoke(app, asked)
    monkeypatch.setenv("PAGEIN_PREVIEWS_FROM", "0")
    monkeypatch.setenv("PAGEIN_KEEP_CALLS", "1000000")
    monkeypatch.setenv("PAGEIN_KEEP_READS", "1000000")
    monkeypatch.setenv("PAGEIN_KEEP_CALLS_FREE", "0")
    lossless = CliRunner().invoke(app, asked)
    assert (usual.exit_code, lossless.exit_code) == (0, 0)
    assert usual.stdout != lossless.stdout

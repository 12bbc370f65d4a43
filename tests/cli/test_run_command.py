"""What `pagein run --print-env` prints, without a gateway and without an agent."""

import json
from collections.abc import Callable
from typing import Protocol


class Ran(Protocol):
    """What the fixture `run` returns."""

    status: int
    out: str
    err: str


def test_options_of_pagein_may_stand_behind_the_agents_name(run: Callable[..., Ran]) -> None:
    before = run("run", "--print-env", "--json", "claude", "-p", "--print-env")
    behind = run("run", "--json", "claude", "--print-env", "--whole-window", "--", "-p", "--print-env")
    assert (before.status, behind.status) == (0, 0)
    assert json.loads(before.out)["command"] == ["claude", "-p", "--print-env"]
    assert json.loads(behind.out)["command"] == json.loads(before.out)["command"]
    assert json.loads(behind.out)["environment"] != json.loads(before.out)["environment"]


def test_without_an_agent_the_agents_are_named(run: Callable[..., Ran]) -> None:
    done = run("run")
    assert done.status == 2
    assert "name the agent to run, as in pagein run claude; there are claude-code (or claude), codex" in done.err


def test_an_agent_is_called_by_its_name_or_by_its_command_in_every_command(run: Callable[..., Ran]) -> None:
    by_name, by_command = (run("run", "--json", name, "--print-env").out for name in ("claude-code", "claude"))
    assert json.loads(by_name)["command"] == json.loads(by_command)["command"] == ["claude"]
    assert run("install", "claude", "--json").out == run("install", "claude-code", "--json").out
    for command in ("run", "install", "hook"):
        assert "claude-code (or claude)" in run(command, "nobody").err


def test_it_is_told_that_no_gateway_fits_also_where_another_one_runs(run: Callable[..., Ran]) -> None:
    done = run("run", "--print-env", "--anthropic", "http://127.0.0.1:1", "claude")
    assert (
        "no gateway that fits runs yet; pagein run claude starts one, at a free port if http://127.0.0.1:" in done.err
    )

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

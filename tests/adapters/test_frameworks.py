"""Frameworks over the SDKs: the example of each in docs/adapters.md runs against the simulated provider."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pagein.simulator import SimulatedProvider

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"
CALL = {"tool": "make", "args": {"target": "all"}}
CAPTURE = {"capture": {"id": 'peek\\("(pg-[0-9a-f-]+)"\\)'}}
PEEK = {"tool": "peek", "args": {"id": "{{id}}", "line": 199, "lines": 2}}
SCRIPT: list[Any] = [[CALL], [CAPTURE, {"text": "Looking. "}, PEEK], [{"text": "It is line 198."}]]
EXAMPLES = re.findall(r"## (.+?)\n.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
# Previews whatever they cost: what is tested here is the way of a call. A process of its own: frameworks leave event loops behind.
BEFORE = """
from pagein.engine.engine import Settings
from pagein.policy.eviction.residency import Residency
import pagein
store = pagein.open("s.pagein", settings=Settings(Residency(economics=None, batch_tokens=40_000)))
run_make = lambda target: "".join(f"line {number} of what make said at length\\n" for number in range(400))
"""


@pytest.mark.parametrize(("title", "example"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_the_example_runs_and_the_model_recalls(title: str, example: str, tmp_path: Path) -> None:
    """Each example defines `answer`: what the agent says after it ran `make`, whose output has left the window."""
    program = BEFORE + example.replace('session="fix-login")', 'session="fix-login", engine=store)') + "print(answer)\n"
    assert "engine=store" in program, title
    with SimulatedProvider(SCRIPT) as provider:
        keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        addresses = {"ANTHROPIC_BASE_URL": provider.url, "OPENAI_BASE_URL": provider.url + "/v1"}
        done = subprocess.run(  # noqa: S603 -- our own page
            [sys.executable, "-W", "ignore", "-c", program],
            env={**os.environ, **keys, **addresses},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "It is line 198." in done.stdout
        second, third = [json.dumps(one.body) for one in provider.requests[1:]]
        assert not provider.bill().refused
    assert "line 200 of what make said" not in second
    assert "line 198 of what make said" in third


def test_there_is_an_example_for_each() -> None:
    names = "Anthropic SDK, OpenAI SDK, Pydantic AI, LangChain and LangGraph, OpenAI Agents SDK"
    assert ", ".join(title for title, _ in EXAMPLES) == names

"""Frameworks over the SDKs: the example of each in docs/adapters.md runs against the simulated provider."""

import gc
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.policy.eviction.residency import Residency
from pagein.simulator import SimulatedProvider

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"
PREVIEWED = Settings(Residency(economics=None, batch_tokens=40_000))
OUTPUT = "".join(f"line {number} of what make said at length\n" for number in range(400))
CALL = {"tool": "make", "args": {"target": "all"}}
CAPTURE = {"capture": {"id": 'peek\\("(pg-[0-9a-f-]+)"\\)'}}
PEEK = {"tool": "peek", "args": {"id": "{{id}}", "line": 199, "lines": 2}}
SCRIPT: list[Any] = [[CALL], [CAPTURE, {"text": "Looking. "}, PEEK], [{"text": "It is line 198."}]]
EXAMPLES = re.findall(r"## (.+?)\n.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("title", "example"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_the_example_runs_and_the_model_recalls(
    title: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example defines `answer`: what the agent says after it ran `make`, whose output has left the window."""
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    with (
        SimulatedProvider(SCRIPT) as provider,
        pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=PREVIEWED) as engine,
    ):
        for name, url in (("ANTHROPIC", provider.url), ("OPENAI", provider.url + "/v1")):
            monkeypatch.setenv(f"{name}_API_KEY", "k")
            monkeypatch.setenv(f"{name}_BASE_URL", url)
        names: dict[str, Any] = {"run_make": lambda target: OUTPUT, "store": engine}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of frameworks, and of connections that they leave to the collector
            exec(compile(_on_engine(example), title, "exec"), names)  # noqa: S102 -- our own page
            answer = str(names["answer"])
            names.clear()
            gc.collect()
        assert "It is line 198." in answer
        second, third = [json.dumps(one.body) for one in provider.requests[1:]]
        assert "line 200 of what make said" not in second
        assert "line 198 of what make said" in third
        assert not provider.bill().refused


def _on_engine(example: str) -> str:
    """The example on the test's own store."""
    return example.replace('session="fix-login")', 'session="fix-login", engine=store)')


def test_there_is_an_example_for_each() -> None:
    assert len(EXAMPLES) >= 5
    assert Engine is pagein.Engine

"""The agent loop in `examples/` runs, recalls and costs less, as its page says."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pagein
from pagein.simulator import SimulatedProvider

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent_loop.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_agent_loop", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_runs_and_recalls_what_left_the_window(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 -- our own example
        [sys.executable, str(EXAMPLE), "--store", str(tmp_path / "s.pagein")],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    assert "26 calls, 0 refused" in done.stdout
    assert "recalled: list part-0: row 120, checksum 1864900898" in done.stdout


def test_the_loop_costs_less_than_half_and_keeps_the_conversation_whole(example: ModuleType) -> None:
    bills, texts = [], []
    for plain in (True, False):
        with SimulatedProvider(example.model()) as provider, pagein.open(":memory:") as engine:
            url = provider.url
            session = None if plain else engine.session("example")
            messages = example.agent(lambda request, url=url: example.post(url, request), session)
            bills.append(provider.bill())
            texts.append([block["content"] for one in messages[2::2] for block in one["content"]])
    assert [bill.refused for bill in bills] == [0, 0]
    assert bills[1].bit < bills[0].bit / 2
    assert texts[1][: example.STEPS] == texts[0][: example.STEPS]


def test_a_loop_that_is_begun_again_on_its_store_sends_the_same_bytes(example: ModuleType, tmp_path: Path) -> None:
    bodies: list[object] = []
    with SimulatedProvider(example.model()) as provider, pagein.open(tmp_path / "s.pagein") as engine:
        url = provider.url

        def call(request: object) -> object:
            bodies.append(request)
            return example.post(url, request)

        messages = example.agent(call, engine.session("example"))
    again = []
    for count in range(1, len(messages), 2):
        with pagein.open(tmp_path / "s.pagein") as engine:  # each call in a process of its own, as it were
            prepared = engine.session("example").prepare({**_fields(bodies[0]), "messages": messages[:count]})
            again.append(prepared.request)
    assert again == bodies


def _fields(request: object) -> dict[str, object]:
    assert isinstance(request, dict)
    return request

"""`pagein tune` on made-up sessions, as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, write_session

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    for place in range(6):
        write_session(folder / f"session-{place}.jsonl", calls=20, size=3_000 + 200 * place)
    return folder


def test_the_choices_are_told_in_a_table_with_the_advice(run: Run, history: Path) -> None:
    ran = run("tune", history, "--jobs", "1")
    assert ran.status == 0, ran.err
    assert "careful, keep-alive off" in ran.out
    assert "thrifty, keep-alive on" in ran.out
    assert "in force" in ran.out
    assert "Advice: " in ran.out


def test_json_has_every_choice_and_the_advice_can_be_written(run: Run, history: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('# mine\nresidency = "careful"\n')
    ran = run("tune", history, "--jobs", "1", "--json", "--yes", PAGEIN_CONFIG=str(own))
    found = json.loads(ran.out)
    assert (found["sessions"], found["earlier"], found["later"], len(found["tried"])) == (6, 4, 2, 6)
    assert found["in_force"] == {"residency": "careful", "keep_alive": False}
    advice = found["advice"]
    written = own.read_text()
    assert f'residency = "{advice["residency"]}"' in written
    assert written.startswith("# mine") or advice != found["in_force"]


def test_nothing_to_tune_by_names_the_remedy(run: Run, tmp_path: Path) -> None:
    ran = run("tune")
    assert ran.status == 2
    assert "pagein tune FILE" in ran.err
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = run("tune", empty)
    assert ran.status == 2
    assert "nothing to tune by" in ran.err

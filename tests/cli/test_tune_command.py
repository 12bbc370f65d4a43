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
    assert 0 <= found["assume_reserve"] <= 6
    assert found["in_force"] == {"residency": "careful", "keep_alive": False}
    assert (found["skipped"], found["outvoted"]) == ([], {})
    advice = found["advice"]
    written = own.read_text()
    assert f'residency = "{advice["residency"]}"' in written
    assert written.startswith("# mine") or advice != found["in_force"]


def test_files_that_are_no_sessions_are_told(run: Run, history: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("not a session\n")
    ran = run("tune", history / "session-0.jsonl", broken, "--jobs", "1", COLUMNS="42", PAGEIN_THINKING="kept")
    assert "broken.jsonl" in ran.err
    # a narrow terminal cuts no figure, and tells what is in force
    assert "\u2026" not in ran.out
    assert "(in force)" in ran.out
    assert "Note: your own thinking" in " ".join(ran.out.split())


def test_what_outvotes_the_advice_is_told(tmp_path: Path) -> None:
    from pagein.cli.commands_tune import _outvoted
    from pagein.replay.results.recommendation import Candidate
    from pagein.settings.sources import load_config

    advice = Candidate("thrifty", keep_alive=True, policy="some")
    (tmp_path / "pagein.toml").write_text('residency = "balanced"\n')
    none = {"PAGEIN_CONFIG": "", "XDG_CONFIG_HOME": str(tmp_path)}
    told = load_config(tmp_path, environment={**none, "PAGEIN_KEEP_ALIVE": "0"})
    assert _outvoted(advice, told) == {"residency": str(tmp_path / "pagein.toml"), "keep_alive": "PAGEIN_KEEP_ALIVE"}
    assert _outvoted(Candidate("balanced", keep_alive=False, policy="some"), told) == {}


def test_nothing_to_tune_by_names_the_remedy(run: Run, tmp_path: Path) -> None:
    ran = run("tune")
    assert ran.status == 2
    assert "pagein tune FILE" in ran.err
    assert "on this machine since 3d; name" in run("tune", "--since", "3d").err
    assert "not a time: 'soon'" in run("tune", "--since", "soon").err
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = run("tune", empty)
    assert ran.status == 2
    assert "nothing to tune by" in ran.err

"""`pagein tune` on made-up sessions, as a user runs it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, write_session

from pagein import wiring

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


def test_sessions_that_ran_behind_pagein_are_left_out_unless_they_are_named(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".pi" / "agent" / "sessions" / "--repo--"
    files = [write_session(folder / f"session-{place}.jsonl", calls=6) for place in range(3)]
    for place, file in enumerate(files):
        os.utime(file, (1_790_000_000 + place, 1_790_000_000 + place))
    run("remember", files[0], files[1])  # remembered is not journaled by a gateway
    said = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "tidy the parser"}]}
    with wiring.open(tmp_path / "home" / ".local" / "share" / "pagein" / "stores" / "shop-1.pagein") as engine:
        engine.prepare(json.dumps(said).encode(), "anthropic", at=1.0, hint="session-2")

    ran = run("tune", "--jobs", "1", "--limit", "1", "--json")
    assert json.loads(ran.out)["sessions"] == 1
    assert "1 recording left out, of sessions that ran behind pagein" in ran.err
    assert f"name it: pagein tune {files[2]}" in ran.err
    assert json.loads(run("tune", "--jobs", "1", "--json").out)["sessions"] == 2
    named = run("tune", *files, "--jobs", "1", "--json")
    assert (json.loads(named.out)["sessions"], named.err) == (3, "")

    offered = run("replay")
    assert (offered.status, "session-1" in offered.err) == (2, True)
    assert f"name it: pagein replay {files[2]}" in offered.err
    assert offered.err.rstrip().endswith(f"for example: pagein replay {files[1]}")
    for file in files[:2]:
        file.unlink()
    assert run("tune").err.startswith("pagein: 1 recording left out")


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

"""The question of the first `pagein serve`: asked once in a terminal, with figures, and kept as a setting."""

import shutil
from pathlib import Path

import pytest
import typer

from pagein.cli import keepalive_question
from pagein.cli.keepalive_question import OFF, OwnFigures, answer_for
from pagein.settings.sources import VARIABLE, load_config

SESSIONS = Path(__file__).resolve().parents[1] / "fixtures" / "sessions"


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own" / "pagein.toml"
    path.parent.mkdir()
    path.write_text("# mine\nport = 9000\n")
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def recorded_home(tmp_path: Path) -> Path:
    """A home folder with one session of Claude Code."""
    folder = tmp_path / "home" / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True)
    shutil.copy(SESSIONS / "claude-code.jsonl", folder / "cc-1.jsonl")
    return tmp_path / "home"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepalive_question, "_is_terminal", lambda: True)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("answer", [True, False])
def test_the_answer_is_written_and_not_asked_for_again(
    own_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    answer: bool,
) -> None:
    monkeypatch.setattr(keepalive_question, "measure_own", lambda: OwnFigures(3, 0.93, 0.91, 2))
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: answer)
    assert answer_for(load_config(tmp_path / "work"), may_ask=True) is answer
    told = capsys.readouterr().err
    assert "your newest 3 sessions" in told
    assert "93.0% of what it is without pagein; with 2 such requests, 91.0%" in told
    assert str(own_file) in told
    config = load_config(tmp_path / "work")
    assert config.gateway.keep_alive is answer
    assert config.gateway.port == 9000
    assert "# mine" in own_file.read_text()
    assert answer_for(config, may_ask=True) is None
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("own_file")
def test_without_a_terminal_it_stays_off_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer_for(load_config(tmp_path), may_ask=True) is None
    assert capsys.readouterr().err == OFF + "\n"


@pytest.mark.usefixtures("own_file", "terminal")
def test_a_person_who_set_it_or_ruled_it_out_is_not_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer_for(load_config(tmp_path, {"keep_alive": False}), may_ask=True) is None
    assert answer_for(load_config(tmp_path, {"marks": "respected"}), may_ask=True) is None
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("own_file", "terminal")
def test_figures_come_from_the_persons_own_sessions(
    recorded_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: recorded_home)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)
    found = keepalive_question.measure_own()
    assert found is not None
    assert found.sessions == 2  # one of them a sub-agent's
    assert 0 < found.yes <= 1.02
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "nobody")
    assert keepalive_question.measure_own() is None
    assert "measuring" in capsys.readouterr().err

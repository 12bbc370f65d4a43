"""`pagein config` shows settings with their origin, and edits files without touching anything else in them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pagein.cli.cli import app
from pagein.errors import PageinError

OWN = '# mine\nport = 9000 # the usual one\n\n# that much\nresidency = "careful"\n'


def config(*arguments: str, **environment: str) -> str:
    """What the command printed. Raises what it raised."""
    done = CliRunner().invoke(app, ["config", *arguments], env=environment, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.toml").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEIN_CONFIG", str(tmp_path / "own.toml"))
    return tmp_path


def test_what_differs_is_shown_with_the_place_that_set_it(folder: Path) -> None:
    (folder / "pagein.toml").write_text("budget = 3.5\n")
    told = json.loads(config("--json", PAGEIN_RECALLS="2"))["settings"]
    origins = {one["name"]: (one["value"], one["set_by"]) for one in told}
    assert origins["port"] == (9000, str(folder / "own.toml"))
    assert origins["budget"] == (3.5, "pagein.toml")
    assert origins["recalls"] == (2, "environment (PAGEIN_RECALLS)")
    assert "grace" not in origins


def test_an_edit_keeps_everything_else_and_taking_it_out_gives_the_file_back(folder: Path) -> None:
    assert config("port=9001").startswith("port = 9001  (")
    assert (folder / "own.toml").read_text() == OWN.replace("9000", "9001")
    for arguments in (("grace=30",), ("port=9000",), ("--unset", "grace")):
        config(*arguments)
    assert (folder / "own.toml").read_text() == OWN


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("residencey",), "did you mean residency"),
        (("port=many",), "port takes"),
        (("port=99999",), "port must be from 0 to 65535"),
        (("--project", "port=1"), "cannot be set by a workspace"),
        (("--unset",), "--unset takes the name"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(PageinError, match=words):
        config(*arguments)
    assert (folder / "own.toml").read_text() == OWN
    assert not (folder / "pagein.toml").exists()

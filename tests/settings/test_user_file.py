"""A flag written into the user's settings file: the rest of the file stays as it was."""

from pathlib import Path

import pytest

from pagein.errors import BadSetting
from pagein.settings.sources import VARIABLE, load_config
from pagein.settings.user_file import with_value, write_value, write_values

OWN = '# mine\nport = 9000 # the usual one\n\nthinking = "kept"\n'


def test_a_new_file_is_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "pagein.toml"
    assert write_value("keep_alive", value=True, environment={VARIABLE: str(path)}) == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_config(tmp_path, environment={VARIABLE: str(path)}).gateway.keep_alive


def test_everything_else_in_the_file_stays() -> None:
    path = Path("pagein.toml")
    assert with_value(path, OWN, "keep_alive", True) == OWN + "keep_alive = true\n"  # noqa: FBT003
    changed = with_value(path, OWN + "keep_alive = false # not yet\n", "keep_alive", True)  # noqa: FBT003
    assert changed == OWN + "keep_alive = true # not yet\n"
    assert with_value(path, OWN, "excluded", ("*.sql", "dumps/*")) == OWN + 'excluded = ["*.sql", "dumps/*"]\n'
    assert with_value(path, changed, "keep_alive", None) == OWN
    assert with_value(path, OWN, "keep_alive", None) == OWN


def test_permissions_and_links_of_a_file_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "pagein.toml"
    real.write_text(OWN)
    real.chmod(0o640)
    link.symlink_to(real)
    write_value("keep_alive", value=False, environment={VARIABLE: str(link)})
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "keep_alive = false" in real.read_text()


def test_a_file_that_is_no_toml_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pagein.toml"
    path.write_text("port = \n")
    with pytest.raises(BadSetting, match="cannot be changed"):
        write_value("keep_alive", value=True, environment={VARIABLE: str(path)})
    assert path.read_text() == "port = \n"


def test_the_ends_of_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "pagein.toml"
    path.write_bytes(b'# mine\r\nresidency = "careful"\r\nport = 9000\r\n')
    write_value("residency", value="thrifty", environment={VARIABLE: str(path)})
    assert path.read_bytes() == b'# mine\r\nresidency = "thrifty"\r\nport = 9000\r\n'


def test_several_values_are_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('residency = """careful"""\n')
    write_values({"residency": "thrifty", "keep_alive": True}, {VARIABLE: str(path)})
    gateway = load_config(tmp_path, environment={VARIABLE: str(path)})
    assert (gateway.values["residency"], gateway.values["keep_alive"]) == ("thrifty", True)

"""`pagein service` writes a definition, starts it by the system's own command, and takes exactly that back."""

import json
import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pagein.cli.cli import app
from pagein.errors import PageinError
from pagein.installation.user_service import user_service

_SYSTEMCTL = (
    '#!/bin/sh\necho "$@" >>"$HOME/called"\n[ "$2" != --quiet ] || [ -e "$HOME/.config/systemd/user/pagein.service" ]\n'
)


def service(home: Path, *arguments: str) -> Result:
    environment = {"HOME": str(home), "XDG_CONFIG_HOME": "", "PATH": f"{home / 'bin'}:/usr/bin:/bin"}
    return CliRunner().invoke(app, ["service", *arguments], env=environment, catch_exceptions=False)


def test_a_service_is_shown_installed_and_taken_back(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "systemctl").write_text(_SYSTEMCTL)
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    file, called = tmp_path / ".config/systemd/user/pagein.service", tmp_path / "called"
    shown = service(tmp_path, "install")
    assert "nothing was done" in shown.stdout
    assert not file.exists()
    assert not called.exists()
    assert service(tmp_path, "install", "--yes").exit_code == 0
    assert file.read_text() in shown.stdout
    assert not json.loads(service(tmp_path, "install", "--yes", "--json").stdout)["changed"]
    assert service(tmp_path, "status").stdout.startswith("running")
    assert service(tmp_path, "uninstall", "--yes").exit_code == 0
    assert not file.exists()
    assert "--user disable --now pagein.service" in called.read_text()
    assert service(tmp_path, "status").exit_code == 1


def test_a_service_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / ".config/systemd/user/pagein.service"
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\n")
    for asked in ("install", "uninstall"):
        with pytest.raises(PageinError, match=str(file)):
            service(tmp_path, asked, "--yes")
    assert file.read_text() == "[Service]\n"


def test_both_systems_get_a_definition_that_they_can_read(tmp_path: Path) -> None:
    command = ["/opt/a b/python", "-m", "pagein", "serve", "--note=100%"]
    mac = user_service("darwin", tmp_path, {}, command, 501)
    assert plistlib.loads(mac.text.encode())["ProgramArguments"] == command
    assert mac.is_ours(mac.text)
    linux = user_service("linux", tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "c")}, command, 501)
    assert 'ExecStart="/opt/a b/python" "-m" "pagein" "serve" "--note=100%%"' in linux.text
    assert linux.file == tmp_path / "c/systemd/user/pagein.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
@pytest.mark.parametrize(("wrong", "complains"), [("", False), ("Restart=sometimes\n", True)])
def test_systemd_finds_nothing_to_complain_of_in_the_unit(tmp_path: Path, wrong: str, *, complains: bool) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    found = user_service("linux", tmp_path, {}, [str(folder / "python"), "-P", "-m", "pagein", "serve"], 501)
    file = tmp_path / "pagein.service"
    file.write_text(found.text.replace("[Service]\n", f"[Service]\n{wrong}"))
    command = ["systemd-analyze", "--user", "verify", str(file)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert (ran.returncode, bool(ran.stderr)) == (0, complains), ran.stderr

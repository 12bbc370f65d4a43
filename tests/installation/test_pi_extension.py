"""pagein's extension in pi's folder: installed whole, removed to the last byte, without touching other files."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from pagein.errors import BadInput
from pagein.installation.agents import Folders
from pagein.installation.pi_extension import LAUNCH, ExtensionInstaller, extension_files, pi_folder

COMMAND = ["/somewhere/pagein", "pi"]


def snapshot(folder: Path) -> dict[str, str | None]:
    return {
        str(one.relative_to(folder)): one.read_text(encoding="utf-8") if one.is_file() else None
        for one in sorted(folder.rglob("*"))
    }


def installer(tmp_path: Path, *, project: bool = False) -> tuple[ExtensionInstaller, Path]:
    at = Folders(tmp_path / "home", tmp_path / "project", {})
    folder = pi_folder(at, project=project)
    return ExtensionInstaller(folder, tmp_path / "data" / "pi-extensions.json"), folder


@pytest.mark.parametrize("place", ["home/.pi/agent", "project/.pi"])
def test_taking_the_extension_out_gives_every_byte_and_folder_back(tmp_path: Path, place: str) -> None:
    project = place.startswith("project")
    base = tmp_path / place
    base.mkdir(parents=True)
    (base / "settings.json").write_text('{"theme": "dark"}', encoding="utf-8")
    before = snapshot(tmp_path)
    pi, folder = installer(tmp_path, project=project)
    change = pi.plan_install(COMMAND)
    pi.apply(change)
    assert set(extension_files()) | {LAUNCH} == {one.name for one in folder.iterdir()}
    assert json.loads((folder / LAUNCH).read_text(encoding="utf-8"))["command"] == COMMAND
    assert pi.plan_install(COMMAND).done
    pi.apply(pi.plan_removal())
    (tmp_path / "data" / "pi-extensions.json").unlink()
    (tmp_path / "data").rmdir()
    assert snapshot(tmp_path) == before
    assert pi.plan_removal().done


def test_an_older_extension_is_replaced_and_files_that_are_no_longer_part_of_it_go(tmp_path: Path) -> None:
    pi, folder = installer(tmp_path)
    pi.apply(pi.plan_install(COMMAND))
    notes = tmp_path / "data" / "pi-extensions.json"
    (folder / "index.ts").write_text("// older\n", encoding="utf-8")
    (folder / "gone.ts").write_text("// of an older version\n", encoding="utf-8")
    known = json.loads(notes.read_text(encoding="utf-8"))
    known[str(folder)]["files"] |= {
        name: sha256((folder / name).read_bytes()).hexdigest() for name in ("index.ts", "gone.ts")
    }
    notes.write_text(json.dumps(known), encoding="utf-8")
    change = pi.plan_install(COMMAND)
    assert (set(change.written), change.removed) == ({"index.ts"}, ("gone.ts",))
    pi.apply(change)
    assert pi.plan_install(COMMAND).done


def test_what_a_person_changed_is_left_alone(tmp_path: Path) -> None:
    pi, folder = installer(tmp_path)
    pi.apply(pi.plan_install(COMMAND))
    (folder / "index.ts").write_text("// mine\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"index\.ts is not as pagein put it in"):
        pi.plan_install(COMMAND)
    with pytest.raises(BadInput, match=r"index\.ts is not as pagein put it in"):
        pi.plan_removal()


def test_both_halves_have_the_same_version_and_protocol() -> None:
    from pagein import __version__
    from pagein.pi_host.protocol import PROTOCOL

    files = extension_files()
    assert f"PROTOCOL = {PROTOCOL};" in files["protocol.ts"]
    assert f'VERSION = "{__version__}";' in files["protocol.ts"]
    assert json.loads(files["package.json"])["version"] == __version__

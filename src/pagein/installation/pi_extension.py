"""Copy pagein's extension into a folder of pi, and remove exactly that copy again.

Rules of this file
------------------
1. A change is planned first, shown, and made only when a person agrees.
2. The extension is copied, because pi refuses to start if an extension named in its settings is missing.
3. Only files that pagein put in, unchanged since, are replaced or removed. Folders that it made go with them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Final

from pagein.errors import BadInput
from pagein.installation.agents import Folders
from pagein.installation.install_notes import NEW_FILE, NEW_FOLDER, read_notes, write_notes
from pagein.workspace.file_replacement import replace_file

LAUNCH: Final = "launch.json"
"""File that tells the extension how pagein is started."""
_PATIENCE: Final = 5
_CHECKOUT: Final = Path(__file__).resolve().parents[3] / "extensions" / "pi"


@dataclass(frozen=True, slots=True)
class ExtensionChange:
    """A planned change of the extension's folder.

    written: texts of the files to write, by name. removed: names of the files to remove.
    """

    folder: Path
    written: Mapping[str, str]
    removed: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the folder is as it should be."""
        return not self.written and not self.removed


class ExtensionInstaller:
    """The extension in one folder.

    folder: the extension's own folder, which may be missing.
    notes: file with what was put in, by folder.
    """

    def __init__(self, folder: Path, notes: Path) -> None:
        self._folder = folder
        self._notes = notes

    def plan_install(self, command: list[str]) -> ExtensionChange:
        """Return the change that puts the extension in. Raises BadInput for files of somebody else."""
        wanted = {**extension_files(), LAUNCH: json.dumps({"command": command, "patience": _PATIENCE}, indent=2) + "\n"}
        there, known = self._files(), self._known()
        strange = sorted(
            name for name, text in there.items() if text != wanted.get(name) and known.get(name) != _hash(text)
        )
        if strange:
            raise BadInput(f"{self._folder / strange[0]} is not as pagein put it in; move it away, and run this again")
        written = {name: text for name, text in wanted.items() if there.get(name) != text}
        return ExtensionChange(self._folder, written, tuple(sorted(set(there) - set(wanted))))

    def plan_removal(self) -> ExtensionChange:
        """Return the change that takes the extension out. Raises BadInput for foreign files."""
        there, known = self._files(), self._known()
        strange = sorted(name for name, text in there.items() if known.get(name) != _hash(text))
        if strange:
            raise BadInput(f"{self._folder / strange[0]} is not as pagein put it in; remove {self._folder} by hand")
        return ExtensionChange(self._folder, {}, tuple(sorted(there)))

    def apply(self, change: ExtensionChange) -> None:
        """Make and record a change. Raises BadInput if the change is impossible."""
        notes = read_notes(self._notes)
        known = notes.get(str(self._folder), {})
        made = list(known.get("folders", ())) or [str(one) for one in _missing(self._folder)]
        try:
            self._folder.mkdir(mode=NEW_FOLDER, parents=True, exist_ok=True)
            for name, text in change.written.items():
                replace_file(self._folder / name, text, NEW_FILE)
            for name in change.removed:
                (self._folder / name).unlink()
            left = {name: _hash(text) for name, text in self._files().items()}
            if left:
                notes[str(self._folder)] = {"files": left, "folders": made}
            else:
                notes.pop(str(self._folder), None)
                for folder in made:
                    if Path(folder).is_dir() and not any(Path(folder).iterdir()):
                        Path(folder).rmdir()
            write_notes(self._notes, notes)
        except OSError as problem:
            raise BadInput(f"{self._folder} cannot be changed: {problem.strerror or problem}") from problem

    def _files(self) -> dict[str, str]:
        try:
            return {one.name: one.read_text(encoding="utf-8") for one in sorted(self._folder.iterdir())}
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as problem:
            raise BadInput(f"{self._folder} cannot be read: {problem}; mend it, or remove it by hand") from problem

    def _known(self) -> dict[str, str]:
        files = read_notes(self._notes).get(str(self._folder), {}).get("files", {})
        return files if isinstance(files, dict) else {}


def pi_folder(at: Folders, *, project: bool) -> Path:
    """Return the folder of the extension: of a project, or of the user."""
    if project:
        return at.project / ".pi" / "extensions" / "pagein"
    return at.named("PI_CODING_AGENT_DIR", at.home / ".pi" / "agent") / "extensions" / "pagein"


def extension_files() -> dict[str, str]:
    """Return the extension's files by name: those of the installed package, or of the checkout."""
    packaged = resources.files("pagein") / "extensions" / "pi"
    place = packaged if packaged.is_dir() else _CHECKOUT
    names = sorted(one.name for one in place.iterdir() if one.name.endswith(".ts") or one.name == "package.json")
    if not names:
        raise BadInput(f"{place} has no extension; install pagein again")
    return {name: (place / name).read_text(encoding="utf-8") for name in names}


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _missing(folder: Path) -> list[Path]:
    """Return the folders that have to be made for a folder, the innermost first."""
    found = []
    while not folder.exists():
        found.append(folder)
        folder = folder.parent
    return found

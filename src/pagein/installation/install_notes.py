"""The notes of what pagein put into the folders of agents, by name, so that exactly this can be taken out again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pagein.errors import BadInput
from pagein.workspace.file_replacement import replace_file

NEW_FILE: Final = 0o600
"""Permissions of a file that did not exist before: other users may not read it."""
NEW_FOLDER: Final = 0o700
"""Permissions of a folder that did not exist before."""


def read_notes(file: Path) -> dict[str, Any]:
    """Return the notes in a file; empty without the file. Raises BadInput if it cannot be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise BadInput(f"{file} cannot be read: {problem}; remove it, and uninstall by hand") from problem
    return found if isinstance(found, dict) else {}


def write_notes(file: Path, notes: Mapping[str, Any]) -> None:
    """Replace the notes in a file. Raises OSError."""
    file.parent.mkdir(mode=NEW_FOLDER, parents=True, exist_ok=True)
    replace_file(file, json.dumps(notes, indent=2) + "\n", NEW_FILE)

"""Write a setting into a settings file. Everything else in the file stays, comments and order included."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pagein.errors import BadSetting
from pagein.settings.sources import user_file
from pagein.workspace.file_replacement import replace_file

_MODE: Final = 0o600
_FOLDER: Final = 0o700


def write_value(key: str, *, value: bool | str, environment: Mapping[str, str] | None = None) -> Path:
    """Set a flag or a word in the user's file, as `write_values` does."""
    return write_values({key: value}, environment)


def write_values(values: Mapping[str, bool | str], environment: Mapping[str, str] | None = None) -> Path:
    """Set flags and words in the user's file, all of them or none, and return its path. Raises BadSetting as `write_text`."""
    path = user_file(os.environ if environment is None else environment)
    made = read_text(path)
    for key, value in values.items():
        made = with_value(path, made, key, value)
    write_text(path, made)
    return path


def read_text(path: Path) -> str:
    """Return the text of a settings file, "" without one. Raises BadSetting for a file that cannot be read."""
    try:
        # bytes, because reading text would change the ends of lines
        return path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    except (OSError, ValueError) as problem:
        raise BadSetting(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem


def write_text(path: Path, text: str) -> None:
    """Write a settings file. Only the user can read a file that is new.

    Raises BadSetting for a file that cannot be written.
    """
    try:
        path.parent.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else _MODE
        replace_file(path.resolve(), text, mode)
    except OSError as problem:
        raise BadSetting(f"{path}: cannot be written: {problem.strerror or problem}") from problem


def with_value(path: Path, text: str, key: str, value: object) -> str:
    """Return the text of a settings file with this value, which is placed at the end if the key is new; None: without the key.

    Raises BadSetting, with the path, for text that is not TOML.
    """
    # imported here: most commands never write settings
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        if value is not None:
            document[key] = list(value) if isinstance(value, tuple) else value
        elif key in document:
            del document[key]
    except TOMLKitError as problem:
        raise BadSetting(f"{path}: cannot be changed: it is not TOML: {problem}") from problem
    return tomlkit.dumps(document)

"""Write a setting into the user's own settings file."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pagein.errors import BadSetting
from pagein.settings.sources import user_file
from pagein.workspace.file_replacement import replace_file

_VALUE: Final = r"(?:true|false|\"[^\"\\\n]*\"|'[^'\n]*')"
_MODE: Final = 0o600
_FOLDER: Final = 0o700


def write_value(key: str, *, value: bool | str, environment: Mapping[str, str] | None = None) -> Path:
    """Set a flag or a word in the user's file, as `write_values` does."""
    return write_values({key: value}, environment)


def write_values(values: Mapping[str, bool | str], environment: Mapping[str, str] | None = None) -> Path:
    """Set flags and words in the user's file, and return its path. Everything else in the file stays, comments included.

    All are set, or none. Only the user can read a file that is new. Raises BadSetting for a file that cannot be read or written.
    """
    path = user_file(os.environ if environment is None else environment)
    try:
        # bytes, because reading text would change the ends of lines
        made = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        for key, value in values.items():
            made = with_value(made, key, value=value)
        path.parent.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else _MODE
        replace_file(path.resolve(), made, mode)
    except (OSError, ValueError) as problem:
        raise BadSetting(f"{path}: cannot be written: {problem}") from problem
    return path


def with_value(text: str, key: str, *, value: bool | str) -> str:
    """Return the text of a settings file with this flag or word. Raises ValueError for text that is not TOML."""
    told = f"{key} = {json.dumps(value)}"
    if key in tomllib.loads(text):
        made = re.sub(rf"(?m)^[ \t]*[\"']?{key}[\"']?[ \t]*=[ \t]*{_VALUE}", lambda _: told, text, count=1)
    else:  # at the top, because a key behind the name of a table would be the table's
        made = f"{told}\n{text}"
    if not _says(made, key, value):
        raise ValueError(f"{key} is set in a way that cannot be changed here")
    return made


def _says(text: str, key: str, value: object) -> bool:
    try:
        return bool(tomllib.loads(text).get(key) == value)
    except ValueError:
        return False

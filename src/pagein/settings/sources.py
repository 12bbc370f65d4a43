"""Sources of settings: the user's file, the workspace's file, the environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pagein.errors import BadSetting

if TYPE_CHECKING:
    from pagein.settings.layers import Config, SettingsLayer

NAME: Final = "pagein.toml"
VARIABLE: Final = "PAGEIN_CONFIG"
_STORE: Final = "PAGEIN_STORE"


def load_config(
    workspace: str | Path = ".", given: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> "Config":
    """Load the settings for a workspace.

    given: values from the caller or the command line, which win over every other source.
    The user's file is the file that `PAGEIN_CONFIG` names, else `pagein.toml` in the user's configuration folder.
    Raises BadSetting with file, key and remedy.
    """
    from pagein.settings.layers import GIVEN, SettingsLayer, merge_layers, of_environment

    told = os.environ if environment is None else environment
    layers = [
        *_file(user_file(told), own=True, must=bool(told.get(VARIABLE))),
        *_file(Path(workspace) / NAME, own=False),
        of_environment(told),
        SettingsLayer(GIVEN, dict(given or {})),
    ]
    return merge_layers(layers)


def configured_store(workspace: str | Path = ".") -> str | None:
    """Return the store that the settings name; None for the workspace's own.

    Loads the other settings only where there are any, so that commands which only look into a store start fast.
    Raises BadSetting as `load_config`.
    """
    told = {name: value for name, value in os.environ.items() if name.startswith("PAGEIN_") and value.strip()}
    named = [path for path in (user_file(os.environ), Path(workspace) / NAME) if not _is_absent(path)]
    if not named and not told.keys() - {_STORE}:
        return told.get(_STORE, "").strip() or None
    return load_config(workspace).store


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's settings file."""
    named = environment.get(VARIABLE)
    if named:
        return Path(named)
    # imported here: `pagein` itself starts without it
    from platformdirs import user_config_path

    return user_config_path("pagein", appauthor=False) / NAME


def _file(path: Path, *, own: bool, must: bool = False) -> "list[SettingsLayer]":
    """Read a settings file; without a file, return nothing, or raise BadSetting if `must` is set."""
    from pagein.settings.layers import of_file

    if not must and _is_out_of_reach(path):
        return []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError) as problem:
        if must:
            raise BadSetting(f"{VARIABLE}: there is no file {path}") from problem
        return []
    except (OSError, ValueError) as problem:
        raise BadSetting(f"{path}: cannot be read: {problem}") from problem
    return [of_file(str(path), text, own=own)]


def _is_absent(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # loading says what it is
        return False


def _is_out_of_reach(path: Path) -> bool:
    """Return whether permissions hide the file from this user, as with a file in another user's home."""
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return False

"""Read configuration files of coding agents. Never writes."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_COMMENTS: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/')
_LAST_COMMAS: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_LARGEST: Final = 1 << 20


class UnreadableConfig(Exception):
    """An unreadable file; the message names file and reason."""


def read_json(file: Path) -> Mapping[str, Any]:
    """Parse a JSON file, with comments and trailing commas as accepted by its agent."""
    text = _LAST_COMMAS.sub(r"\1", _COMMENTS.sub(r"\1", _text(file)))
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise UnreadableConfig(f"{file} is not JSON: {problem}") from problem
    return value if isinstance(value, dict) else {}


def read_toml(file: Path) -> Mapping[str, Any]:
    """Parse a TOML file."""
    try:
        return tomllib.loads(_text(file))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise UnreadableConfig(f"{file} is not TOML: {problem}") from problem


def tables_in(settings: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
    """The tables in a table of the settings, by name."""
    found = settings.get(key)
    return {name: one for name, one in found.items() if isinstance(one, dict)} if isinstance(found, dict) else {}


def _text(file: Path) -> str:
    """Return the content of a file, "" for a missing file."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise UnreadableConfig(f"{file} cannot be read: {problem.strerror}") from problem

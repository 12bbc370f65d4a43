"""Append a table to a TOML file, and keep the present text unchanged."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from pagein.errors import BadInput
from pagein.installation.json_inserts import Keys, TextInsert


def parse_toml(text: str) -> dict[str, Any]:
    """Return the value of a TOML text. Raises BadInput."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise BadInput(f"is not TOML: {problem}") from problem


def table_insert(text: str, keys: Keys, table: Mapping[str, object]) -> TextInsert:
    """Return the text to append to a TOML text for a table of texts, flags, lists of texts, and tables of texts."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(keys)}]", *(f"{name} = {_written(value)}" for name, value in table.items())]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return TextInsert(len(text), gap + newline.join(lines) + newline)


def _written(value: object) -> str:
    if not isinstance(value, Mapping):
        return json.dumps(value)
    inner = ", ".join(f"{json.dumps(name)} = {json.dumps(one)}" for name, one in value.items())
    return f"{{ {inner} }}"

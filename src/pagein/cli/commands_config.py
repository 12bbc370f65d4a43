"""The command `config`, registered by `cli`: show settings with their origin, and change them.

Heavy imports are inside the commands, as in `cli`.
"""

import difflib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pagein.cli.options import AsJson, Workspace
from pagein.errors import BadInput

if TYPE_CHECKING:
    from pagein.settings.kinds import Key
    from pagein.settings.layers import Config

_NEAREST = 3


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(
        epilog="Examples:\n\npagein config\n\npagein config residency\n\npagein config residency=thrifty\n\npagein config --unset residency"
    )(config)


def config(
    setting: Annotated[
        str | None,
        typer.Argument(metavar="KEY[=VALUE]", help="A setting to show, or to set.", show_default=False),
    ] = None,
    *,
    unset: Annotated[bool, typer.Option("--unset", help="Remove KEY from the file.")] = False,
    project: Annotated[
        bool, typer.Option("--project", help="Change pagein.toml of the workspace, not the user's own file.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show every setting, not only the changed ones.")] = False,
    workspace: Workspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Show settings and their origins, or change a setting in a file.

    Without KEY: the settings that differ from their defaults. A later place wins: default, the user's pagein.toml, the workspace's, PAGEIN_* in
    the environment, options of a command. Everything else in a file stays as it is, comments included. A running gateway reads its settings
    at its start.
    """
    from pagein.settings.keys import KEYS
    from pagein.settings.sources import load_config

    name, equals, value = (setting or "").partition("=")
    name = name.strip()
    if setting is not None and name not in KEYS:
        near = " or ".join(difflib.get_close_matches(name, KEYS, _NEAREST))
        hint = f"did you mean {near}?" if near else "pagein config --all shows them"
        raise BadInput(f"{name!r} is no setting; {hint}")
    if unset and (not name or equals):
        raise BadInput("--unset takes the name of a setting, and no value; for example pagein config --unset residency")
    if unset or equals:
        _change(KEYS[name], None if unset else value.strip(), workspace, project=project)
    found = load_config(workspace)
    if setting is None:
        names: Iterable[str] = KEYS if everything else [one for one in KEYS if found.values[one] != KEYS[one].default]
    else:
        names = [name]
    rows = [_row(KEYS[one], found) for one in names]
    if as_json:
        sys.stdout.write(json.dumps({"settings": rows}) + "\n")
    elif setting is not None:
        sys.stdout.write(_line(rows[0]) + "\n")
    else:
        _print_table(rows)


def _change(key: "Key", text: str | None, workspace: Path, *, project: bool) -> None:
    """Set or remove a value, if the resulting settings are valid. Raises BadSetting otherwise."""
    from pagein.settings.layers import merge_layers, of_environment, of_file
    from pagein.settings.sources import NAME, user_file
    from pagein.settings.user_file import read_text, with_value, write_text

    own, project_file = user_file(os.environ), workspace / NAME
    path = project_file if project else own
    value = None
    if text is not None:
        try:
            value = key.parse_text(text)
        except (TypeError, ValueError):
            raise BadInput(f"{key.name} takes {key.takes}, not {text!r}") from None
    made = with_value(path, read_text(path), key.name, value)
    texts = {file: made if file == path else read_text(file) for file in (own, project_file)}
    layers = [of_file(str(file), text, own=file == own) for file, text in texts.items()]
    merge_layers([*layers, of_environment(os.environ)])
    write_text(path, made)
    sys.stderr.write(f"pagein: wrote {path}\n")


def _row(key: "Key", found: "Config") -> dict[str, object]:
    place = found.origins[key.name]
    return {
        "name": key.name,
        "value": _shown(key, found.values[key.name]),
        "default": _shown(key, key.default),
        "set_by": f"environment ({key.variable})" if place == "environment" else place,
        "takes": key.takes,
        "says": key.says,
    }


def _shown(key: "Key", value: object) -> object:
    """Return a value as it may be shown: the address of a database without its password."""
    from pagein.settings.store_address import without_password

    if key.name == "store" and isinstance(value, str) and "://" in value:
        return without_password(value)
    return list(value) if isinstance(value, tuple) else value


def _line(row: dict[str, object]) -> str:
    default = "" if row["value"] == row["default"] else f", default {_text(row['default'])}"
    return (
        f"{row['name']} = {_text(row['value'])}  ({row['set_by']}{default})\n  {row['says']}\n  Takes {row['takes']}."
    )


def _text(value: object) -> str:
    from pagein.ui.figures import plain

    return plain(json.dumps(value, ensure_ascii=False))


def _print_table(rows: list[dict[str, object]]) -> None:
    if not rows:
        sys.stdout.write("every setting has its default; pagein config --all shows them\n")
        return
    from rich.table import Table

    from pagein.cli.standard_streams import catch_full_disk, console

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("setting", "value", "default", "set by"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(str(row["name"]), _text(row["value"]), _text(row["default"]), str(row["set_by"]))
    with catch_full_disk():
        console().print(table)

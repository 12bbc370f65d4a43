"""Read the configuration files of coding agents for their gateway setup. Never writes.

Each agent has its own order of files and its own precedence; docs/hosts/ describes them for people.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pagein.gateway.client_setup import CLIENTS, Client, misses
from pagein.gateway.http.addresses import is_this_machine, without_token

_COMMENTS: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/')
_LAST_COMMAS: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_LARGEST: Final = 1 << 20
_WHOLE_WINDOW: Final = "[1m]"
"""Suffix of model names for which Claude Code keeps a window of a million tokens at any address."""
_GEMINI_KEY: Final = "gemini-api-key"
FIRST_PARTY: Final = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"


@dataclass(frozen=True, slots=True)
class ConfigPlaces:
    """Places of configuration files.

    environment: variables, some of which move the files
    """

    home: Path
    workspace: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """The setup found for an agent.

    points_here: whether the agent uses the gateway
    problems: reasons why it does not
    remarks: further advice
    """

    client: Client
    points_here: bool
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class _Unfit(Exception):
    """An unreadable file; the message names file and reason."""


def read_client_setups(url: str, places: ConfigPlaces) -> list[ClientSetup]:
    """Return each agent's setup for a gateway at this address, from its files and environment."""
    readers: Mapping[str, Callable[[Client, str, ConfigPlaces], ClientSetup]] = {
        "Claude Code": _claude_code,
        "codex": _codex,
        "opencode": _opencode,
        "pi": _pi,
        "Gemini CLI": _gemini_cli,
    }
    found = []
    for client in CLIENTS:
        try:
            found.append(readers[client.name](client, url, places))
        except _Unfit as problem:
            found.append(ClientSetup(client, points_here=False, problems=(str(problem),)))
    return found


def is_same(told: object, url: str) -> bool:
    """Return whether an address in a file is this address; `localhost` equals any address of this machine."""
    if not isinstance(told, str):
        return False
    try:
        first, second = urlsplit(without_token(told).rstrip("/")), urlsplit(without_token(url).rstrip("/"))
        alike = (first.scheme, first.port, first.path) == (second.scheme, second.port, second.path)
    except ValueError:
        return False
    hosts = (first.hostname or "", second.hostname or "")
    return alike and (hosts[0] == hosts[1] or all(map(is_this_machine, hosts)))


def _claude_code(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    """Read Claude Code's setup.

    The settings' `env` overrides the shell, and the workspace's settings override the user's.
    """
    folder = Path(places.environment.get("CLAUDE_CONFIG_DIR") or places.home / ".claude")
    project = places.workspace / ".claude"
    files = (folder / "settings.json", project / "settings.json", project / "settings.local.json")
    told = dict(places.environment)
    model = told.get("ANTHROPIC_MODEL", "")
    sources: dict[str, Path] = {}
    for file in files:
        settings = _json(file)
        variables = settings.get("env")
        for name, value in variables.items() if isinstance(variables, dict) else ():
            told[name], sources[name] = str(value), file
        model = str(settings.get("model") or model)
    problems = tuple(_with_source(one, sources) for one in misses(client, url, told))
    remarks: tuple[str, ...] = ()
    if is_same(told.get("ANTHROPIC_BASE_URL"), url) and FIRST_PARTY not in told and not model.endswith(_WHOLE_WINDOW):
        remarks = (
            (
                "at this address it takes every window for 200k tokens and compacts early, also where the model has a million; a model "
                f"name that ends in {_WHOLE_WINDOW} brings it back (docs/hosts/claude-code.md says what that costs)"
            ),
        )
    return ClientSetup(client, not problems, problems, remarks)


def _with_source(problem: str, sources: Mapping[str, Path]) -> str:
    name = problem.partition("=")[0]
    return f"{problem}: {sources[name]} says so, and that outvotes the shell" if name in sources else problem


def _gemini_cli(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    """Read Gemini CLI's setup. Without the kind of login in its settings it sends no request to another address."""
    problems = misses(client, url, places.environment)
    home = Path(places.environment.get("GEMINI_CLI_HOME") or places.home)
    file = home / ".gemini" / "settings.json"
    security = _json(file).get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    kind = auth.get("selectedType") if isinstance(auth, dict) else None
    if kind != _GEMINI_KEY:
        problems.append(f"security.auth.selectedType in {file} is not {_GEMINI_KEY}")
    return ClientSetup(client, not problems, tuple(problems))


def _codex(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    file = Path(places.environment.get("CODEX_HOME") or places.home / ".codex") / "config.toml"
    config = _toml(file)
    providers = config.get("model_providers")
    entries = (
        {name: one for name, one in providers.items() if isinstance(one, dict)} if isinstance(providers, dict) else {}
    )
    ours = [name for name, one in entries.items() if is_same(one.get("base_url"), f"{url}/v1")]
    chosen = config.get("model_provider")
    if chosen in ours:
        return ClientSetup(client, points_here=True)
    if not ours:
        return ClientSetup(
            client, points_here=False, problems=(f"nothing in {file} points to the gateway; {_how(client, url)}",)
        )
    lost = next((place for place, value in _misplaced_providers(config) if value in ours), None)
    if lost is not None:
        why = f"model_provider stands below [{lost}] in {file}, where codex does not read it; move it above the first [table]"
    else:
        chooses = f"model_provider = {json.dumps(chosen)} chooses another" if chosen else "no model_provider chooses it"
        why = f'{file} has an entry for the gateway, but {chooses}; write model_provider = "{ours[0]}" above the first [table]'
    return ClientSetup(client, points_here=False, problems=(why,))


def _misplaced_providers(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, object]]:
    """Yield the tables with a `model_provider` that codex ignores there; profiles may have it."""
    for name, value in table.items():
        here = f"{place}.{name}" if place else name
        if isinstance(value, dict) and not here.startswith("profiles"):
            if "model_provider" in value:
                yield here, value["model_provider"]
            yield from _misplaced_providers(value, here)


def _opencode(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    folder = Path(places.environment.get("XDG_CONFIG_HOME") or places.home / ".config") / "opencode"
    named = places.environment.get("OPENCODE_CONFIG")
    stems = (*((Path(named),) if named else ()), folder / "opencode.json", folder / "opencode.jsonc")
    files = (*stems, places.workspace / "opencode.json", places.workspace / "opencode.jsonc")
    addresses = [
        entry.get("options", {}).get("baseURL")
        for file in files
        for entry in _entries(_json(file), "provider")
        if isinstance(entry.get("options"), dict)
    ]
    return _by_addresses(client, url, [f"{url}/v1"], addresses, files)


def _pi(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    file = Path(places.environment.get("PI_CODING_AGENT_DIR") or places.home / ".pi" / "agent") / "models.json"
    addresses = [entry.get("baseUrl") for entry in _entries(_json(file), "providers")]
    return _by_addresses(client, url, [url, f"{url}/v1"], addresses, (file,))


def _by_addresses(
    client: Client, url: str, wanted: Sequence[str], addresses: Sequence[object], files: Sequence[Path]
) -> ClientSetup:
    if any(is_same(told, one) for told in addresses for one in wanted):
        return ClientSetup(client, points_here=True)
    there = [str(file) for file in files if file.is_file()]
    where = f"nothing in {' or '.join(there)} points" if there else f"there is no {files[-1].name}, so nothing points"
    return ClientSetup(client, points_here=False, problems=(f"{where} to the gateway; {_how(client, url)}",))


def _how(client: Client, url: str) -> str:
    return f"pagein serve prints what to set ({client.where})" if url else ""


def _entries(settings: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    found = settings.get(key)
    yield from (one for one in found.values() if isinstance(one, dict)) if isinstance(found, dict) else ()


def _text(file: Path) -> str:
    """Return the content of a file, "" for a missing file."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise _Unfit(f"{file} cannot be read: {problem.strerror}") from problem


def _json(file: Path) -> Mapping[str, Any]:
    """Parse a JSON file, with comments and trailing commas as accepted by its agent."""
    text = _LAST_COMMAS.sub(r"\1", _COMMENTS.sub(r"\1", _text(file)))
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise _Unfit(f"{file} is not JSON: {problem}") from problem
    return value if isinstance(value, dict) else {}


def _toml(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_text(file))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise _Unfit(f"{file} is not TOML: {problem}") from problem

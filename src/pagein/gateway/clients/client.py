"""The contract of a client's setup, and what several clients share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pagein.gateway.http.addresses import is_this_machine, without_token


@dataclass(frozen=True, slots=True)
class ConfigPlaces:
    """Places of configuration files.

    environment: variables, some of which move the files
    """

    home: Path
    workspace: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent.

    settings: lines to set or write, given the gateway's address
    where: place of these lines
    variables: required environment variables, given the address
    read: reads its setup for a gateway at this address. Each agent has its own order of files and its own precedence;
        docs/hosts/ describes them for people. It may raise UnreadableConfig.
    notes: further advice
    vendors: the vendors that it talks to unless told otherwise, as their settings are called; empty for an agent of any vendor
    """

    name: str
    where: str
    settings: Callable[[str], tuple[str, ...]]
    variables: Callable[[str], Mapping[str, str]]
    read: "Callable[[Client, str, ConfigPlaces], ClientSetup]"
    notes: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()


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


def no_variables(_: str) -> Mapping[str, str]:
    """The variables of a client without variables."""
    return {}


def misses(client: Client, url: str, environment: Mapping[str, str]) -> list[str]:
    """Return the differences between the environment and the client's requirements, in words."""
    found = []
    for name, value in client.variables(url).items():
        told = environment.get(name, "")
        if not told:
            found.append(f"{name} is not set here; export {name}={value}")
        elif without_token(told).rstrip("/") != value:
            found.append(f"{name}={without_token(told)}, not {value}")
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


def setup_by_addresses(
    client: Client, url: str, wanted: Sequence[str], addresses: Sequence[object], files: Sequence[Path]
) -> ClientSetup:
    """Return the setup of a client whose files hold these addresses. One of the wanted ones points to the gateway."""
    if any(is_same(told, one) for told in addresses for one in wanted):
        return ClientSetup(client, points_here=True)
    there = [str(file) for file in files if file.is_file()]
    where = f"nothing in {' or '.join(there)} points" if there else f"there is no {files[-1].name}, so nothing points"
    return ClientSetup(client, points_here=False, problems=(f"{where} to the gateway; {where_told(client, url)}",))


def where_told(client: Client, url: str) -> str:
    """Return where the user finds the settings; "" without a gateway."""
    return f"pagein serve prints what to set ({client.where})" if url else ""

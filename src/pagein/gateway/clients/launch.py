"""The contract of a client's start behind the gateway: by environment and command line alone.

Each key goes to the host that the user chose for it: a client is pointed to the gateway only for providers whose requests the gateway sends
to the same address as the client would have done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pagein.errors import BadSetting
from pagein.gateway.clients.client import Client, ConfigPlaces
from pagein.gateway.settings import ends_in_version, join_address
from pagein.providers.vendors import VENDORS


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """A provider in a client's configuration.

    name: its name there
    vendor: the kind of its routes, a name of `VENDORS`
    address: where the client sends its requests; "" for the vendor's own address
    """

    name: str
    vendor: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The providers of a client.

    known: those that can be pointed to a gateway, the built-in ones first
    chosen: name of the provider in use; "" if it is not known
    """

    known: tuple[AgentEndpoint, ...]
    chosen: str = ""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The request to start a client.

    url: address of the gateway
    arguments: the user's own arguments for the client
    endpoints: providers to point to the gateway
    own: vendors whose requests the gateway sends to the vendor's own address
    whole_window: whether the client should believe that it talks to the vendor, for the sake of its window
    """

    url: str
    places: ConfigPlaces
    arguments: tuple[str, ...] = ()
    endpoints: Endpoints = field(default_factory=lambda: Endpoints(()))
    own: frozenset[str] = frozenset()
    whole_window: bool = False


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How to start a client.

    environment: variables to set beside the user's
    arguments: arguments to put before the user's
    remarks: what the user should know, each without a full stop
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client is started.

    command: its program
    client: its setup without a launcher
    endpoints: reads its providers from files, environment and arguments; may raise UnreadableConfig
    plan: raises BadSetting where environment and arguments cannot point it to the gateway, with the remedy
    """

    command: str
    client: Client
    endpoints: Callable[[ConfigPlaces, Sequence[str]], Endpoints]
    plan: Callable[[LaunchRequest], LaunchPlan]


def choose_upstreams(
    found: Endpoints, told: Mapping[str, str], is_gateway: Callable[[str], bool]
) -> tuple[dict[str, str], Endpoints]:
    """Return the upstream of each vendor, and the providers that may go through a gateway with these upstreams.

    told: upstreams that the user's settings of pagein name
    is_gateway: whether an address is a gateway of the user's. A provider that points there is taken for the vendor's own.

    Raises BadSetting if the settings name another address than the client's provider in use.
    """
    known = tuple(
        AgentEndpoint(one.name, one.vendor, "" if is_gateway(one.address) else one.address) for one in found.known
    )
    usual = {one.name: told.get(one.name, one.address) for one in VENDORS}
    upstreams = dict(usual)
    decided: set[str] = set()
    for one in sorted(known, key=lambda one: one.name != found.chosen):
        if one.vendor in decided:
            continue
        decided.add(one.vendor)
        if _is_vendors_own(one):
            continue
        if one.vendor in told and not is_same_upstream(told[one.vendor], one.address):
            raise BadSetting(
                f"the agent sends {one.vendor} requests to {one.address}, but pagein's setting {one.vendor} is {told[one.vendor]}, and a "
                "key must not reach another host than its own; make the two the same, or leave one out"
            )
        upstreams[one.vendor] = one.address
    through = tuple(
        one
        for one in known
        if is_same_upstream(upstreams[one.vendor], usual[one.vendor] if _is_vendors_own(one) else one.address)
    )
    return upstreams, Endpoints(through, found.chosen)


def is_same_upstream(first: str, second: str) -> bool:
    """Return whether two base addresses mean the same upstream, with or without the version at the end."""
    return join_address(first, "/v1/") == join_address(second, "/v1/")


def versioned(url: str, address: str) -> str:
    """Return the gateway's base URL for a client without a version in its paths, with the version of the client's own address."""
    return f"{url}/v1" if not address or ends_in_version(address) else url


def bypass_remarks(endpoints: Endpoints) -> tuple[str, ...]:
    """Return the remark that the provider in use does not go through the gateway, if so."""
    through = [one.name for one in endpoints.known]
    if not endpoints.chosen or endpoints.chosen in through:
        return ()
    return (f"{endpoints.chosen} does not go through pagein, only {', '.join(through)}",)


def option(arguments: Sequence[str], *names: str) -> str:
    """Return the value of the last occurrence of the options, or ""."""
    found = ""
    for place, one in enumerate(arguments):
        if one == "--":
            break
        name, equals, value = one.partition("=")
        if name in names and equals:
            found = value
        elif one in names and place + 1 < len(arguments):
            found = arguments[place + 1]
    return found


def _is_vendors_own(endpoint: AgentEndpoint) -> bool:
    own = {one.name: one.address for one in VENDORS}
    return not endpoint.address or is_same_upstream(endpoint.address, own[endpoint.vendor])

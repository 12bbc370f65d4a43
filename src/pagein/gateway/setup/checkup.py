"""Check a setup from end to end: the findings of `pagein doctor`."""

import asyncio
import json
import stat
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pagein.gateway.client_setup import read_client_setups
from pagein.gateway.clients.client import ClientSetup, ConfigPlaces
from pagein.gateway.http.certificates import trust
from pagein.gateway.kill_switch import Switch
from pagein.gateway.settings import GatewaySettings
from pagein.gateway.setup.inquiry import WAIT, GatewayInquiry, NoAnswer, opener, reason
from pagein.model.messages import Message, Text
from pagein.providers.vendors import VENDORS
from pagein.providers.wire.formats import FORMATS
from pagein.providers.wire.wire_format import WireFormat

if TYPE_CHECKING:
    from pagein.gateway.curation.guarded_curator import Curator

Level: TypeAlias = Literal["fine", "note", "wrong"]

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MODEL: Final = "any"  # the simulated provider accepts any model
_WELL: Final = Message("user", (Text('SCRIPT:[[{"text":"well"}]]'),))


@dataclass(frozen=True, slots=True)
class CheckupNote:
    """A finding.

    level: `fine`; `note`: worth knowing; `wrong`: keeps the gateway from working
    what: the checked subject
    told: the finding
    """

    level: Level
    what: str
    told: str

    def as_json(self) -> dict[str, str]:
        """Return the finding as a JSON object."""
        return {"level": self.level, "what": self.what, "told": self.told}


@dataclass(frozen=True, slots=True)
class CheckupRequest:
    """The setup to check.

    url: expected address of the gateway
    is_url_given: whether the user named this address
    token: file with the user's token
    given: provider addresses requested by name
    home, workspace: folders with the agents' files
    store, caches, round_trip: findings from code outside of this package
    """

    settings: GatewaySettings
    url: str
    switch: Path
    token: Path
    environment: Mapping[str, str]
    given: Mapping[str, str]
    home: Path
    workspace: Path
    store: Callable[[], CheckupNote]
    caches: Callable[[], list[CheckupNote]]
    round_trip: Callable[[], CheckupNote]
    is_url_given: bool = False


def check_setup(asked: CheckupRequest) -> list[CheckupNote]:
    """Return every finding, in the order in which a request passes the checked parts."""
    places = ConfigPlaces(asked.home, asked.workspace, asked.environment)
    setups = read_client_setups(asked.url.rstrip("/"), places)
    here = [one for one in setups if one.points_here]
    gateway, found = _gateway(asked, is_awaited=bool(here) or asked.is_url_given)
    upstreams = {**found.upstreams, **asked.given}
    used = {*asked.given, *found.vendors, *(vendor for one in here for vendor in one.client.vendors)}
    used |= {one.name for one in VENDORS if upstreams.get(one.name) not in (None, one.address)}
    answers = {vendor: _upstream_answer(address, asked.environment) for vendor, address in upstreams.items()}
    return [
        asked.store(),
        *asked.caches(),
        _switch(asked),
        asked.round_trip(),
        gateway,
        *(_upstream(name, one, is_used=name in used) for name, one in answers.items()),
        *_network(answers.values(), is_used=bool(used)),
        *_clients(setups),
    ]


def _clients(setups: Sequence[ClientSetup]) -> Iterator[CheckupNote]:
    """Yield findings on each agent from its files and environment. An agent may bypass the gateway intentionally."""
    for one in setups:
        if one.points_here:
            yield CheckupNote("fine", one.client.name, "it points to the gateway")
        yield from (CheckupNote("note", one.client.name, told) for told in (*one.problems, *one.remarks))


def open_to_others(file: Path) -> str:
    """Return which of a store's files are readable by other users, in words; "" for none."""
    for one in (file, file.with_name(file.name + "-wal")):
        try:
            mode = stat.S_IMODE(one.stat().st_mode)
        except OSError:
            continue
        if mode & _OTHERS:
            return f"{one} could be read by others (mode {mode:o})"
    return ""


def round_trip(url: str, curator: "Curator") -> CheckupNote:
    """Send a request of each wire format through a gateway in this process to a provider at `url`."""
    from pagein.gateway.server import Gateway, GatewayParts

    upstreams: dict[str, Any] = {one.name: url for one in VENDORS}
    settings = GatewaySettings(**upstreams, port=0, grace=WAIT)

    async def go() -> list[str]:
        async with Gateway(settings, GatewayParts(curator)) as gateway:
            return [await asyncio.to_thread(_send_probe, gateway.url, one) for one in FORMATS]

    try:
        answers = asyncio.run(go())
    except OSError as problem:
        return CheckupNote("wrong", "round trip", f"no gateway could be run here: {problem}")
    for form, told in zip(FORMATS, answers, strict=True):
        if told:
            return CheckupNote("wrong", "round trip", f"{form.http.path.format(model=_MODEL)}: {told}")
    return CheckupNote(
        "fine", "round trip", f"requests of all {len(FORMATS)} formats come back from a simulated provider"
    )


def _send_probe(url: str, form: WireFormat) -> str:
    """Return the failure of a minimal request, "" for success."""
    address, body = url + form.http.path.format(model=_MODEL), form.requests.render([_WELL], _MODEL, max_tokens=16)
    headers = {"Content-Type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)  # noqa: S310 -- our own address
    try:
        with opener().open(request, timeout=WAIT) as answer:
            warned = answer.headers.get("x-pagein-warning")
            return f"answered, but with a warning: {warned}" if warned else ""
    except urllib.error.HTTPError as problem:
        with problem:
            return f"answered {problem.code}: {problem.read(300).decode('utf-8', 'replace')}"
    except (OSError, HTTPException) as problem:
        return str(problem) or type(problem).__name__


def _switch(asked: CheckupRequest) -> CheckupNote:
    why = Switch(asked.switch, asked.environment).why()
    if why:
        return CheckupNote("note", "switch", f"off: {why}; everything passes through as it is. pagein on turns it on")
    return CheckupNote("fine", "switch", "on")


@dataclass(frozen=True, slots=True)
class _Upstreams:
    """The upstreams of a gateway, by vendor, and the vendors of its calls so far."""

    upstreams: Mapping[str, str]
    vendors: Sequence[str] = ()


def _gateway(asked: CheckupRequest, *, is_awaited: bool) -> tuple[CheckupNote, _Upstreams]:
    """Return the finding on the gateway, and its upstreams: from the gateway itself, otherwise from the settings.

    is_awaited: whether somebody uses a gateway at this address
    """
    gateway = GatewayInquiry(asked.url, asked.settings.host, asked.token)
    upstreams = _Upstreams(asked.settings.upstreams)
    try:
        value = gateway.health()
    except NoAnswer as problem:
        if is_awaited:
            return CheckupNote("wrong", "gateway", str(problem)), upstreams
        return CheckupNote("note", "gateway", f"{problem}. No agent here is set up for it"), upstreams
    told = f"answers at {gateway.address}, version {value['version']}"
    try:
        state = gateway.overview()
    except NoAnswer as problem:
        return CheckupNote("wrong", "gateway", f"{told}, but {problem}"), upstreams
    upstreams = _Upstreams(state["upstreams"], state.get("vendors", ()))
    if value.get("store"):
        return CheckupNote("wrong", "gateway", f"{told}, but {value['store']}"), upstreams
    if value.get("off") or not value.get("curating"):
        mode = f"switched off: {value['off']}" if value.get("off") else "measuring only"
        return CheckupNote("note", "gateway", f"{told}, {mode}"), upstreams
    return CheckupNote("fine", "gateway", told), upstreams


def _network(answers: Iterable["_UpstreamAnswer"], *, is_used: bool) -> Iterator[CheckupNote]:
    """Yield what keeps a first agent from working where no provider answers, and nothing is set up that it keeps from working now."""
    if not is_used and not any(one.is_there for one in answers):
        yield CheckupNote("note", "network", "no provider answers; an agent needs a connection, or HTTPS_PROXY")


@dataclass(frozen=True, slots=True)
class _UpstreamAnswer:
    """Whether an upstream answers, and the finding in words."""

    is_there: bool
    told: str


def _upstream(vendor: str, answer: _UpstreamAnswer, *, is_used: bool) -> CheckupNote:
    if answer.is_there:
        return CheckupNote("fine", vendor, answer.told)
    more = "" if is_used else ". No agent here is set up for it yet"
    return CheckupNote("wrong" if is_used else "note", vendor, answer.told + more)


def _upstream_answer(address: str, environment: Mapping[str, str]) -> _UpstreamAnswer:
    """Ask an upstream. The request has no credential, so a refusal is expected."""
    trusted = trust(environment)
    try:
        with urllib.request.urlopen(address, timeout=WAIT, context=trusted.context) as answer:  # noqa: S310 -- http and https only, by the settings
            told = answer.status
    except urllib.error.HTTPError as problem:
        with problem:
            told = problem.code
    except (OSError, ValueError, HTTPException) as problem:
        more = f"; {trusted.problem}" if trusted.problem else ""
        return _UpstreamAnswer(is_there=False, told=f"{address} does not answer ({reason(problem)}){more}")
    return _UpstreamAnswer(is_there=True, told=f"{address} answers ({told} to a request without credentials)")

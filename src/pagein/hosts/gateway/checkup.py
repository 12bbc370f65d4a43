"""Whether a setup works from end to end: what `pagein doctor` finds."""

import asyncio
import json
import stat
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pagein.hosts.gateway import tokens
from pagein.hosts.gateway.addresses import is_this_machine, without_token
from pagein.hosts.gateway.certificates import trust
from pagein.hosts.gateway.clients import CLIENTS, misses
from pagein.hosts.gateway.headers import PROOF
from pagein.hosts.gateway.settings import GatewaySettings, Vendor
from pagein.hosts.gateway.switch import Switch

if TYPE_CHECKING:
    from pagein.hosts.gateway.curating import Curator

Level: TypeAlias = Literal["fine", "note", "wrong"]

_WAIT: Final = 5.0
_UNKNOWN: Final = 401
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# The least request of each vendor's; the simulated provider takes any model.
_PATHS: Final = ("/v1/messages", "/v1/chat/completions", "/v1/responses")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. level: `fine`; `note`: worth knowing; `wrong`: keeps the gateway from working."""

    level: Level
    what: str
    told: str

    def as_json(self) -> dict[str, str]:
        """As one JSON object."""
        return {"level": self.level, "what": self.what, "told": self.told}


@dataclass(frozen=True, slots=True)
class Asked:
    """What to look at. url: where the gateway should be. token: the file with the user's token. store, round_trip: findings that
    need more than this package may know.
    """

    settings: GatewaySettings
    url: str
    switch: Path
    token: Path
    environment: Mapping[str, str]
    store: Callable[[], Finding]
    round_trip: Callable[[], Finding]


def checked(asked: Asked) -> list[Finding]:
    """All findings, in the order in which a request meets what they are about."""
    found = [asked.store(), _switch(asked), asked.round_trip(), _gateway(asked)]
    vendors: tuple[Vendor, ...] = ("anthropic", "openai")
    found += [_upstream(vendor, asked.settings.upstream(vendor), asked.environment) for vendor in vendors]
    for client in CLIENTS:
        missing = misses(client, asked.url, asked.environment)
        if missing:
            found += [Finding("note", client.name, one) for one in missing]
        elif client.variables(asked.url):
            found.append(Finding("fine", client.name, "its environment points to the gateway"))
        else:
            found.append(Finding("note", client.name, f"set up in {client.where}, which was not looked at"))
    return found


def open_to_others(file: Path) -> str:
    """Which of a store's files others than their owner may read, in words; "" for none."""
    for one in (file, file.with_name(file.name + "-wal")):
        try:
            mode = stat.S_IMODE(one.stat().st_mode)
        except OSError:
            continue
        if mode & _OTHERS:
            return f"{one} could be read by others (mode {mode:o})"
    return ""


def round_trip(url: str, curator: "Curator") -> Finding:
    """One request of each wire format through a gateway in this process to a provider at `url`."""
    from pagein.hosts.gateway.server import Gateway, Parts

    settings = GatewaySettings(anthropic=url, openai=url, port=0, grace=_WAIT)

    async def go() -> list[str]:
        async with Gateway(settings, Parts(curator)) as gateway:
            return [await asyncio.to_thread(_sent, gateway.url + path) for path in _PATHS]

    try:
        answers = asyncio.run(go())
    except OSError as problem:
        return Finding("wrong", "round trip", f"no gateway could be run here: {problem}")
    for path, told in zip(_PATHS, answers, strict=True):
        if told:
            return Finding("wrong", "round trip", f"{path}: {told}")
    return Finding("fine", "round trip", "requests of all three formats come back from a simulated provider")


def _sent(address: str) -> str:
    """What went wrong with the least request, "" for nothing."""
    said = [{"role": "user", "content": 'SCRIPT:[[{"text":"well"}]]'}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 16, "messages": said}
    if address.endswith("/responses"):
        body = {"model": "gpt-5.1-codex", "input": said}
    elif address.endswith("/completions"):
        body = {"model": "gpt-5.1-codex", "messages": said}
    headers = {"Content-Type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)  # noqa: S310 -- our own address
    try:
        with _opener().open(request, timeout=_WAIT) as answer:
            warned = answer.headers.get("x-pagein-warning")
            return f"answered, but with a warning: {warned}" if warned else ""
    except urllib.error.HTTPError as problem:
        with problem:
            return f"answered {problem.code}: {problem.read(300).decode('utf-8', 'replace')}"
    except OSError as problem:
        return str(problem)


def _switch(asked: Asked) -> Finding:
    why = Switch(asked.switch, asked.environment).why()
    if why:
        return Finding("note", "switch", f"off: {why}; everything passes through as it is. pagein on turns it on")
    return Finding("fine", "switch", "on")


def _gateway(asked: Asked) -> Finding:
    url = without_token(asked.url).rstrip("/")
    try:
        with _opener().open(_own_request(url + "/healthz", asked), timeout=_WAIT) as answer:
            value = json.loads(answer.read(1 << 16))
    except (OSError, ValueError) as problem:
        return Finding("wrong", "gateway", f"none answers at {url} ({_reason(problem)}); start it with pagein serve")
    if not isinstance(value, dict) or "version" not in value:
        return Finding("wrong", "gateway", f"what answers at {url} is no gateway of pagein's")
    told = f"answers at {url}, version {value['version']}"
    if wrong := _page_refused(url, asked) or value.get("store"):
        return Finding("wrong", "gateway", f"{told}, but {wrong}")
    if value.get("off"):
        return Finding("note", "gateway", f"{told}, switched off: {value['off']}")
    if not value.get("curating"):
        return Finding("note", "gateway", f"{told}, measuring only")
    return Finding("fine", "gateway", told)


def _page_refused(url: str, asked: Asked) -> str:
    """Why the gateway's pages are closed to this user's commands, "" where they are open, or where it is no gateway of theirs."""
    asking = _own_request(url + "/metrics", asked)
    if not asking.headers:
        return ""
    try:
        with _opener().open(asking, timeout=_WAIT):
            return ""
    except urllib.error.HTTPError as problem:
        with problem:
            if problem.code != _UNKNOWN:
                return f"its figures are answered with {problem.code}"
        return f"it has another token than {asked.token}: another user started it, or the file is new since; start it again"
    except OSError as problem:
        return f"its figures cannot be had ({_reason(problem)})"


def _own_request(address: str, asked: Asked) -> urllib.request.Request:
    """A request to a page of the gateway's own. The token is shown to the gateway of the settings and to this machine only."""
    host = urlsplit(address).hostname or ""
    token = tokens.read(asked.token) if host == asked.settings.host or is_this_machine(host) else ""
    return urllib.request.Request(address, headers={PROOF: token} if token else {})  # noqa: S310 -- http and https only, by the settings


def _upstream(vendor: Vendor, address: str, environment: Mapping[str, str]) -> Finding:
    """Whether anything answers there. No credential is sent, so a refusal is what is expected."""
    trusted = trust(environment)
    try:
        with urllib.request.urlopen(address, timeout=_WAIT, context=trusted.context) as answer:  # noqa: S310 -- http and https only, by the settings
            told = answer.status
    except urllib.error.HTTPError as problem:
        with problem:
            told = problem.code
    except (OSError, ValueError) as problem:
        more = f"; {trusted.problem}" if trusted.problem else ""
        return Finding("wrong", vendor, f"{address} does not answer ({_reason(problem)}){more}")
    return Finding("fine", vendor, f"{address} answers ({told} to a request without credentials)")


def _opener() -> urllib.request.OpenerDirector:
    """For addresses of this machine: never by way of a proxy."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _reason(problem: BaseException) -> str:
    return str(getattr(problem, "reason", "") or problem)

"""Find a running gateway for an agent, or start a gateway."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from pagein.errors import HostError
from pagein.gateway.announced_store import AnnouncedStore, running_stores
from pagein.gateway.clients.launch import is_same_upstream
from pagein.gateway.http.access_token import read_token
from pagein.gateway.http.addresses import with_token, without_token
from pagein.gateway.launch.lease import Lease, lease_file, take
from pagein.gateway.setup.inquiry import GatewayInquiry, NoAnswer

HOST: Final = "127.0.0.1"
"""Where a gateway listens that an agent's launcher starts."""
_STARTS_IN: Final = 60.0
_TAIL: Final = 600
_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class GatewayWish:
    """The gateway that an agent needs.

    url: where the user's settings expect it
    upstreams: where it must send the requests of each vendor
    store: address of its store; None for a store in memory
    workspace: the folder that is worked in
    settings: fingerprint of its settings
    options: options of `pagein serve` beside port, host and log
    """

    url: str
    upstreams: Mapping[str, str]
    store: str | None
    workspace: str
    settings: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayPlaces:
    """Files of gateways and of their launchers.

    folder: announcements and leases
    token: file with the user's token
    log: where a gateway that is started writes
    """

    folder: Path
    token: Path
    log: Path


@dataclass(frozen=True, slots=True)
class FoundGateway:
    """A running gateway, with this launcher's lease.

    url: base URL for an agent, which may have the token in it
    page: link of its page, "" if it was not started here
    listener: the socket that it listens at, if it was started here. While this process holds it, connections wait for the next gateway when
        this one dies, and none is refused.
    """

    url: str
    lease: Lease
    is_started: bool
    page: str = ""
    listener: socket.socket | None = None

    @property
    def port(self) -> int:
        """Return the gateway's port."""
        return urlsplit(self.url).port or 0

    @property
    def address(self) -> str:
        """Return the address without a token, for printing and comparing."""
        return without_token(self.url).rstrip("/")


def running_gateway(wish: GatewayWish, places: GatewayPlaces) -> AnnouncedStore | None:
    """Return a healthy gateway of this user with fitting settings, or None.

    A gateway started by a user fits if it has the wanted upstreams, and the expected address or the same workspace and store. A
    gateway started by a launcher fits if workspace, store and all settings are the same.

    Only gateways that hold the lock on their announcement are asked, so that neither token nor key goes to another user's program.
    """
    for one in running_stores(places.folder):
        is_here = (one.workspace, one.store) == (wish.workspace, wish.store)
        fits = is_here and one.settings == wish.settings if one.lease else is_here or one.url == wish.url
        if fits and _answers(one.url, wish, places.token):
            return one
    return None


def agents_url(found: AnnouncedStore, token: Path) -> str:
    """Return a gateway's base URL for an agent, with the token where every call needs it."""
    return with_token(found.url, read_token(token)) if found.is_open else found.url


def find_or_start(wish: GatewayWish, places: GatewayPlaces) -> FoundGateway:
    """Return a fitting gateway, with a lease. Raises HostError if no gateway can be started."""
    found = running_gateway(wish, places)
    if found is not None:
        lease = take(Path(found.lease) if found.lease else lease_file(places.folder, urlsplit(found.url).port or 0))
        if lease is not None:
            return FoundGateway(agents_url(found, places.token), lease, is_started=False)
    return start_gateway(wish, places, _listener(urlsplit(wish.url).port or 0, 0))


def start_gateway(wish: GatewayWish, places: GatewayPlaces, listener: socket.socket) -> FoundGateway:
    """Start a gateway that runs until the last lease is released. Raises HostError with the gateway's last output on failure.

    It is a session of its own, so that no key in the agent's terminal reaches it. With -P, Python imports nothing from the workspace.
    """
    port = int(listener.getsockname()[1])
    file = lease_file(places.folder, port)
    lease = take(file)
    if lease is None:
        raise HostError(f"the gateway at port {port} is about to end; try again")
    command = [sys.executable, "-P", "-m", "pagein", "serve", "--json", "--host", HOST, "--port", str(port)]
    command += ["--lease", str(file), "--listener", str(listener.fileno()), *wish.options]
    try:
        process, told = _started(command, wish.workspace, places.log, listener)
    except BaseException:
        lease.release()
        raise
    threading.Thread(target=process.wait, name="pagein-gateway-end", daemon=True).start()  # or it stays as a zombie
    return FoundGateway(str(told["base_url"]), lease, is_started=True, page=str(told["dashboard"]), listener=listener)


def _started(
    command: Sequence[str], folder: str, file: Path, listener: socket.socket
) -> "tuple[subprocess.Popen[str], Mapping[str, Any]]":
    """Start a gateway, and return the process with the line printed once listening."""
    with _log(file) as log:
        before = log.tell()
        process = subprocess.Popen(  # noqa: S603 -- ourselves
            list(command),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            pass_fds=(listener.fileno(),),
            text=True,
        )
        told = _greeting(process)
    if told is None:
        raise HostError(f"the gateway did not start: {_last_words(file, before)}")
    return process, told


def is_running(url: str, folder: Path) -> bool:
    """Return whether a gateway of this user runs at an address."""
    return any(one.url == url for one in running_stores(folder))


def known_gateways(wish_url: str, folder: Path) -> Callable[[str], bool]:
    """Return a test of whether an address, with any path, is a gateway of this user's."""
    origins = {_origin(url) for url in (wish_url, *(one.url for one in running_stores(folder)))}
    return lambda address: _origin(address) in origins


def _origin(address: str) -> tuple[str, int | None]:
    parts = urlsplit(without_token(address))
    try:
        port = parts.port
    except ValueError:
        port = None
    host = parts.hostname or ""
    return "localhost" if host in ("127.0.0.1", "::1") else host, port


def _answers(url: str, wish: GatewayWish, token: Path) -> bool:
    inquiry = GatewayInquiry(url, HOST, token)
    try:
        inquiry.health()
        upstreams = inquiry.overview()["upstreams"]
    except NoAnswer:
        return False
    return all(is_same_upstream(upstreams.get(name, ""), address) for name, address in wish.upstreams.items())


def _listener(*ports: int) -> socket.socket:
    """Return a socket listening on the first free port of a list; port 0 means any. Raises HostError without a free port."""
    for port in ports:
        with contextlib.suppress(OSError):
            return socket.create_server((HOST, port), backlog=_BACKLOG)
    raise HostError(f"port {ports[0]} of this machine is not free")


def _greeting(process: "subprocess.Popen[str]") -> Mapping[str, Any] | None:
    """Return the line that a gateway prints once listening; None after an early end or a timeout."""
    limit = threading.Timer(_STARTS_IN, process.kill)
    limit.start()
    try:
        assert process.stdout is not None  # noqa: S101 -- asked for above
        with process.stdout:
            line = process.stdout.readline()
    finally:
        limit.cancel()
    if not line:
        process.wait()
        return None
    found: Mapping[str, Any] = json.loads(line)
    return found


@contextlib.contextmanager
def _log(file: Path) -> Iterator[IO[bytes]]:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "ab") as opened:
        opened.seek(0, os.SEEK_END)
        yield opened


def _last_words(file: Path, before: int) -> str:
    with file.open("rb") as opened:
        opened.seek(before)
        said = opened.read()[-_TAIL:].decode("utf-8", "replace").strip()
    return said.removeprefix("pagein: ") or f"it ended without a word; its log is {file}"


def start_again(
    before: FoundGateway, wish: GatewayWish, places: GatewayPlaces, attempts: Sequence[float]
) -> FoundGateway | None:
    """Start a gateway on the port of a gateway that has ended; None after a failure, or if another launcher was faster.

    attempts: seconds to wait before each attempt
    """
    for seconds in attempts:
        time.sleep(seconds)
        if is_running(before.address, places.folder):
            return None
        with contextlib.suppress(HostError):
            return start_gateway(wish, places, before.listener or _listener(before.port))
    return None

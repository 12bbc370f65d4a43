"""The gateway's settings as a single value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pagein.errors import BadSetting
from pagein.providers.vendors import ANTHROPIC, GOOGLE, OPENAI, VENDORS

CHATGPT: Final = "https://chatgpt.com/backend-api/codex"
PORT: Final = 8790
FOLLOWS: Final = ("off", "on", "person")
"""Values of `follow_files`: not at all; changes are nobody's; changes while no agent works are a person's."""
_VERSION: Final = re.compile(r"v\d+\w*")


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Settings of the gateway: address, upstreams and limits.

    anthropic, openai, google: base address of the upstream for each kind of route. Its path is prepended; a last segment such as `v1` or
    `v4` replaces the client's own `/v1`.
    chatgpt: the upstream for OpenAI's routes with a ChatGPT login, which OpenAI's API refuses. Not used if `openai` is set to another
    address, unless `chatgpt` is set, too.
    host, port: address to listen at; port 0 takes a free port
    hosts: additional host names accepted in requests without the token, beside loopback names
    budget: seconds for the decision on a request; after that the fallback goes out
    body_limit: maximum size of a curated request in bytes; a larger request gets status 413
    silence: seconds without a byte from the upstream until a call is given up. Agents give up after 5 to 10 minutes
    themselves, and a client that hangs up ends the call at once, so this limit only ends abandoned calls.
    grace: seconds for running calls when the gateway stops
    recall: whether the model is offered recall tools; off if the client has them by other means
    memory: whether objects of sessions and the index of searches are kept up to date
    follow_files: whether the files that sessions on this machine touched are followed on the disk, one of `FOLLOWS`
    retention: days after its last use from which the journal of a session may be removed; 0 for never
    quota: gigabytes of the store from which on the journals of the longest unused sessions may be removed; 0 for no limit
    recall_everything: whether recall tools also reach what other sessions in the store said, read and wrote
    note_guidance: whether the recall tools also tell the model to write notes
    recalls: maximum number of recall rounds per client request
    children: whether the model may ask child models at its own upstream, with the key of the client's very request
    children_hour_usd: maximum cost of these per hour of the gateway, in dollars
    subscriptions: whether requests with a subscription's login may be changed, at the user's own risk
    keep_alive: whether pagein sends keep-alive requests through pauses, on the user's account
    keep_alive_session, keep_alive_session_bit, keep_alive_hour, keep_alive_hour_bit: maximum number and cost (in base-input-token
    equivalents) of keep-alive requests per session and per hour of the gateway
    ask_cache_misses: whether Anthropic is asked with each call why its cache was missed
    otel: address of the OpenTelemetry collector for the figures of each call; "" for none
    """

    anthropic: str = ANTHROPIC.address
    openai: str = OPENAI.address
    google: str = GOOGLE.address
    chatgpt: str = CHATGPT
    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    budget: float = 2.0
    body_limit: int = 256 << 20
    silence: float = 3600.0
    grace: float = 600.0
    recall: bool = True
    memory: bool = True
    follow_files: str = FOLLOWS[0]
    retention: float = 30.0
    quota: float = 0.0
    recall_everything: bool = False
    note_guidance: bool = False
    recalls: int = 8
    children: bool = False
    children_hour_usd: float = 5.0
    subscriptions: bool = False
    keep_alive: bool = False
    keep_alive_session: int = 24
    keep_alive_session_bit: float = 300_000.0
    keep_alive_hour: int = 60
    keep_alive_hour_bit: float = 1_000_000.0
    ask_cache_misses: bool = False
    otel: str = ""

    def __post_init__(self) -> None:
        """Raise BadSetting for an invalid setting."""
        collector = {"otel": self.otel} if self.otel else {}
        for name, address in (*self.upstreams.items(), ("chatgpt", self.chatgpt), *collector.items()):
            _checked_address(name, address)
        for name, number in (("budget", self.budget), ("silence", self.silence), ("grace", self.grace)):
            if not 0 < number < float("inf"):
                raise BadSetting(f"{name} must be a number of seconds above 0, not {number}")
        if not 0 <= self.port < 1 << 16:
            raise BadSetting(f"port must be from 0 to 65535, not {self.port}")
        _check_kept(self)
        if self.follow_files not in FOLLOWS:
            raise BadSetting(f"follow_files must be one of {', '.join(FOLLOWS)}, not {self.follow_files!r}")
        if self.recalls < 0:
            raise BadSetting(f"recalls must be a number from 0 on, not {self.recalls}")
        caps = (
            self.keep_alive_session,
            self.keep_alive_session_bit,
            self.keep_alive_hour,
            self.keep_alive_hour_bit,
            self.children_hour_usd,
        )
        if any(not 0 <= cap < float("inf") for cap in caps):
            raise BadSetting(f"the caps of keep_alive and children_hour_usd must be numbers from 0 on, not {caps}")
        if self.body_limit <= 0:
            raise BadSetting(f"body_limit must be a number of bytes above 0, not {self.body_limit}")

    @property
    def url(self) -> str:
        """The address at which the gateway is expected."""
        return f"http://{self.host}:{self.port}"

    @property
    def upstreams(self) -> Mapping[str, str]:
        """The base address of each vendor's upstream, as set."""
        return {one.name: str(getattr(self, one.name)) for one in VENDORS}

    def is_vendors_own(self, vendor: str) -> bool:
        """Return whether the upstream is the vendor itself, which behaves as it documents."""
        return any(one.name == vendor and self.upstreams[vendor].rstrip("/") == one.address for one in VENDORS)

    def address(self, vendor: str, path: str, *, has_chatgpt_login: bool = False) -> str:
        """Return the upstream address of a path (raw, with its query)."""
        is_meant = self.openai.rstrip("/") == OPENAI.address or self.chatgpt != CHATGPT
        if vendor == OPENAI.name and has_chatgpt_login and is_meant:
            return self.chatgpt.rstrip("/") + path.removeprefix("/v1")
        return join_address(self.upstreams[vendor], path)


def join_address(base: str, path: str) -> str:
    """Return the address of a path (raw, with its query) under an upstream's base address."""
    front, _, last = base.rstrip("/").rpartition("/")
    if _VERSION.fullmatch(last) and (path.startswith("/v1/") or path == "/v1"):
        return f"{front}/{last}{path.removeprefix('/v1')}"
    return base.rstrip("/") + path


def ends_in_version(address: str) -> bool:
    """Return whether the last segment of an address is a version such as `v1`."""
    return _VERSION.fullmatch(address.rstrip("/").rpartition("/")[2]) is not None


def is_set(told: str | None) -> bool:
    """Return whether an environment variable is true: set, and not empty, 0, no, off or false."""
    return (told or "").strip().lower() not in {"", "0", "no", "off", "false"}


def _check_kept(settings: GatewaySettings) -> None:
    for name, number, unit in (("retention", settings.retention, "days"), ("quota", settings.quota, "gigabytes")):
        if not 0 <= number < float("inf"):
            raise BadSetting(f"{name} must be a number of {unit} from 0 on, not {number}")


def _checked_address(name: str, address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadSetting(
            f"{name}: {address!r} is no address to forward to; write for example https://api.example.com/v1"
        )
    if parts.username is not None or parts.password is not None:
        raise BadSetting(f"{name}: the address must hold no login; the client's own goes through")

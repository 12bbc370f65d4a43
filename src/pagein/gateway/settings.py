"""What can be set about the gateway, as one value."""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pagein.errors import BadSetting

Vendor: TypeAlias = Literal["anthropic", "openai"]

ANTHROPIC: Final = "https://api.anthropic.com"
OPENAI: Final = "https://api.openai.com"
CHATGPT: Final = "https://chatgpt.com/backend-api/codex"
PORT: Final = 8790
_VERSION: Final = re.compile(r"v\d+\w*")


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """How the gateway listens, where it forwards to, and how far it goes.

    anthropic, openai: base address of the upstream for each kind of route. A path in it is kept in front; a last segment
    such as `v1` or `v4` stands in place of the client's own `/v1`.
    chatgpt: the upstream for OpenAI's routes where the client has a ChatGPT login: its API takes none. Not used where `openai` names
    another address, unless this one does, too.
    host, port: where to listen; port 0 takes a free one. hosts: names, beside loopback's, under which those are answered who do not show the token.
    budget: seconds that deciding on a request may take; then the client's bytes go out. body_limit: bytes of a request that
    may be curated; more is answered with 413.
    silence: seconds without a byte from the upstream until a call is given up. Agents give up after 5 to 10 minutes
    themselves, and a client that hangs up ends the call at once, so this only ends what nobody would.
    grace: seconds that calls under way are given when the gateway is ended.
    recall: whether the model is offered tools that bring back what left its window; off where the client has them by other means.
    recalls: how often one answer may be gone on with because the model recalls.
    subscriptions: whether requests made with a subscription's login may be changed, which is the user's own risk.
    keep_alive: whether windows are kept alive through pauses, by requests of our own on the user's account, and lifetimes chosen for it.
    keep_alive_session, keep_alive_session_bit, keep_alive_hour, keep_alive_hour_bit: at most so many, and for so much (in base-input-token
    equivalents), for each session and for each hour of the gateway.
    """

    anthropic: str = ANTHROPIC
    openai: str = OPENAI
    chatgpt: str = CHATGPT
    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    budget: float = 2.0
    body_limit: int = 256 << 20
    silence: float = 3600.0
    grace: float = 600.0
    recall: bool = True
    recalls: int = 8
    subscriptions: bool = False
    keep_alive: bool = False
    keep_alive_session: int = 24
    keep_alive_session_bit: float = 300_000.0
    keep_alive_hour: int = 60
    keep_alive_hour_bit: float = 1_000_000.0

    def __post_init__(self) -> None:
        """Raise BadSetting for what no gateway can run with."""
        for name, address in (
            ("anthropic", self.anthropic),
            ("openai", self.openai),
            ("chatgpt", self.chatgpt),
        ):
            _checked_address(name, address)
        for name, number in (("budget", self.budget), ("silence", self.silence), ("grace", self.grace)):
            if not 0 < number < float("inf"):
                raise BadSetting(f"{name} must be a number of seconds above 0, not {number}")
        if not 0 <= self.port < 1 << 16:
            raise BadSetting(f"port must be from 0 to 65535, not {self.port}")
        if self.recalls < 0:
            raise BadSetting(f"recalls must be a number from 0 on, not {self.recalls}")
        caps = (self.keep_alive_session, self.keep_alive_session_bit, self.keep_alive_hour, self.keep_alive_hour_bit)
        if any(not 0 <= cap < float("inf") for cap in caps):
            raise BadSetting(f"the caps of keep_alive must be numbers from 0 on, not {caps}")
        if self.body_limit <= 0:
            raise BadSetting(f"body_limit must be a number of bytes above 0, not {self.body_limit}")

    def upstream(self, vendor: Vendor) -> str:
        """The base address of this vendor's upstream, without a closing slash."""
        return (self.anthropic if vendor == "anthropic" else self.openai).rstrip("/")

    def address(self, vendor: Vendor, path: str, *, has_chatgpt_login: bool = False) -> str:
        """Where a path (with its query, raw) is upstream."""
        is_meant = self.openai.rstrip("/") == OPENAI or self.chatgpt != CHATGPT
        if vendor == "openai" and has_chatgpt_login and is_meant:
            return self.chatgpt.rstrip("/") + path.removeprefix("/v1")
        return join_address(self.upstream(vendor), path)


def join_address(base: str, path: str) -> str:
    """The address of a path (with its query, raw) under an upstream's base address."""
    front, _, last = base.rstrip("/").rpartition("/")
    if _VERSION.fullmatch(last) and (path.startswith("/v1/") or path == "/v1"):
        return f"{front}/{last}{path.removeprefix('/v1')}"
    return base.rstrip("/") + path


def is_set(told: str | None) -> bool:
    """Whether a variable of the environment says yes: anything but nothing, 0, no, off and false."""
    return (told or "").strip().lower() not in {"", "0", "no", "off", "false"}


def _checked_address(name: str, address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadSetting(
            f"{name}: {address!r} is no address to forward to; write for example https://api.example.com/v1"
        )
    if parts.username is not None or parts.password is not None:
        raise BadSetting(f"{name}: the address must hold no login; the client's own goes through")

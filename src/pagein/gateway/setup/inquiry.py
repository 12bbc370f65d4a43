"""Query a running gateway from a user's own commands, with the token from the user's file."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

from pagein.errors import BadSetting
from pagein.gateway.http import access_token
from pagein.gateway.http.addresses import is_this_machine, is_web_address, without_token
from pagein.gateway.http.headers import PROOF
from pagein.gateway.pages.call_history import Overview

WAIT: Final = 5.0
"""Seconds to wait for an answer."""
_UNKNOWN: Final = 401
_LONGEST: Final = 1 << 24
_LONGEST_TOLD: Final = 200


class NoAnswer(Exception):
    """A gateway did not answer; the message says why.

    is_shut: whether the gateway refused this user's token
    """

    def __init__(self, why: str, *, is_shut: bool = False) -> None:
        super().__init__(why)
        self.is_shut = is_shut


@dataclass(frozen=True, slots=True)
class GatewayInquiry:
    """A connection to a gateway.

    url: expected address
    host: host in this user's settings, to which the token may be sent
    token: file with the token
    """

    url: str
    host: str
    token: Path

    def __post_init__(self) -> None:
        """Raise BadSetting for an impossible address."""
        if not is_web_address(self.url):
            told = without_token(self.url)[:_LONGEST_TOLD]
            raise BadSetting(f"--url {told!r} is no address of a gateway; write for example http://127.0.0.1:8790")

    @property
    def address(self) -> str:
        """Return the address without a token, for printing."""
        return without_token(self.url).rstrip("/")

    def health(self) -> dict[str, object]:
        """Return the gateway's public health report. Raises NoAnswer."""
        value = self._query("/healthz")
        if not isinstance(value, dict) or "version" not in value:
            raise NoAnswer(f"what answers at {self.address} is no gateway of pagein's")
        return value

    def overview(self) -> Overview:
        """Return the data of the dashboard's first page. Raises NoAnswer."""
        value = self._query("/api/state")
        if not isinstance(value, dict) or not {"version", "sessions"} <= value.keys():
            raise NoAnswer(f"what answers at {self.address} is no gateway of pagein's")
        return cast("Overview", value)

    def session(self, name: str) -> Mapping[str, Any]:
        """Return the details of a session, as the page shows them. Raises NoAnswer."""
        return self._object("/api/session?" + urlencode({"name": name}))

    def stored(self) -> Mapping[str, Any]:
        """Return the sessions of the gateway's store, the latest first. Raises NoAnswer."""
        return self._object("/api/stored")

    def history(self, name: str) -> Mapping[str, Any]:
        """Return the calls of a session of the store. Raises NoAnswer."""
        return self._object("/api/history?" + urlencode({"name": name}))

    def order(self, session: str, act: str, target: str) -> Mapping[str, Any]:
        """Carry out an order about a session's window. Raises NoAnswer with the reason if it is refused."""
        return self._object("/api/order", json.dumps({"session": session, "act": act, "target": target}).encode())

    def _object(self, path: str, body: bytes | None = None) -> Mapping[str, Any]:
        value = self._query(path, body)
        if not isinstance(value, dict):
            raise NoAnswer(f"what answers at {self.address} is no gateway of pagein's")
        return value

    def _query(self, path: str, body: bytes | None = None) -> object:
        host = urlsplit(self.address).hostname or ""
        token = access_token.read_token(self.token) if host == self.host or is_this_machine(host) else ""
        headers = ({PROOF: token} if token else {}) | ({} if body is None else {"Content-Type": "application/json"})
        request = urllib.request.Request(self.address + path, body, headers)  # noqa: S310 -- http and https only, by the settings
        try:
            with opener().open(request, timeout=WAIT) as answer:
                return json.loads(answer.read(_LONGEST))
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code != _UNKNOWN:
                    raise NoAnswer(_refused(path, problem)) from problem
            why = f"it has another token than {self.token}: another user started it, or the file is new since; start it again"
            raise NoAnswer(why, is_shut=True) from problem
        except (OSError, ValueError, HTTPException, RecursionError) as problem:
            raise NoAnswer(
                f"no gateway answers at {self.address} ({reason(problem)}); pagein run AGENT starts one for an agent, pagein serve one that stays"
            ) from problem


def _refused(path: str, problem: urllib.error.HTTPError) -> str:
    """Return why a gateway refused, in its own words if it has some."""
    try:
        told = json.loads(problem.read(_LONGEST))
    except (OSError, ValueError, HTTPException, RecursionError):
        told = None
    own = told.get("error") if isinstance(told, dict) else None
    return own if isinstance(own, str) else f"{path.partition('?')[0]} is answered with {problem.code}"


def opener() -> urllib.request.OpenerDirector:
    """Return a URL opener for addresses of this machine, without proxies."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def reason(problem: BaseException) -> str:
    """Return why a request failed, in words."""
    cause = getattr(problem, "reason", "") or problem
    words = cause.strerror if isinstance(cause, OSError) else None  # its text begins with a number of the system
    return words or str(cause)

"""Recognise the model calls among an SDK's requests, and send them through the engine."""

import os
import re
import time
from collections.abc import Iterable
from typing import Final

from pagein.adapters.bounded_curator import BoundedCurator
from pagein.adapters.curated_call import CuratedCall
from pagein.engine.engine import Engine
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.curation.guarded_curator import CurationRequest
from pagein.gateway.curation.session_hints import Hint, from_headers
from pagein.gateway.http.credentials import is_subscription
from pagein.gateway.http.headers import beta_features, is_ours, says_off, value_of, without
from pagein.gateway.http.routes import Route, route
from pagein.gateway.kill_switch import Switch, default_switch
from pagein.providers.vendors import VENDORS
from pagein.providers.wire.formats import format_named

_BEGINNING: Final = re.compile(r"(?=/(?:v1|v1beta|openai)/|/chat/completions)")
"""Where a vendor's own path begins, also behind the path of a proxy or of a deployment."""
_SIGNED: Final = "aws4-"
"""How an `Authorization` header begins that signs the body: a changed body would be refused."""
_MOST_ROUNDS: Final = 8
"""Most recall rounds in one answer."""


class SdkModelCalls:
    """Hands the model calls of an SDK's client to an engine.

    session: name of their session; None to find it by the headers, the fields or the first message.
    recall: whether the model is offered recall tools, which are answered here.
    is_owner: whether the engine is closed together with this object.
    """

    def __init__(self, engine: Engine, session: str | None, *, recall: bool, is_owner: bool = False) -> None:
        self._curator = BoundedCurator(EngineCurator(engine, recall=recall), is_owner=is_owner)
        self._hint = Hint(session, "program") if session else None
        self._switch = Switch(default_switch(), os.environ)

    def is_one(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> bool:
        """Return whether this is a model call that pagein may change.

        It may not while `pagein off` holds, with the header `x-pagein: off`, with a subscription's login, with a signature
        over the body, or in a forked child of the process that opened the engine.
        """
        given = list(headers)
        if self._curator.is_forked() or _is_signed(given):
            return False
        if _route(method, _path_of(url)) is None or self._switch.is_off() or says_off(given):
            return False
        return value_of(given, "content-encoding") in ("", "identity") and not is_subscription(given)

    def close(self) -> None:
        """Let answers be recorded, and close the engine if it is owned. Raises nothing."""
        self._curator.close()

    def begin(self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> CuratedCall:
        """Return the call as the engine decides it. Raises no failure of pagein.

        The request is one of which `is_one` is true.
        """
        given, found = list(headers), _route(method, _path_of(url))
        if found is None or found.api is None:
            raise ValueError(f"{method} {url} is no model call")
        asked = CurationRequest(
            body,
            found.api,
            self._hint or from_headers(given),
            time.time(),  # noqa: TID251 -- the rim reads the clock
            beta_features(given),
            0.0 if format_named(found.api).cache.takes_ttls else None,
            documented=any(one.name == found.vendor and url.startswith(one.address + "/") for one in VENDORS),
            model=found.model,
        )
        return CuratedCall(self._curator, asked, _MOST_ROUNDS)


def names_of_ours(headers: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the headers that are meant for pagein only."""
    return [name for name, _ in headers if is_ours(name)]


def sent_headers(headers: Iterable[tuple[str, str]], *, again: bool = False) -> list[tuple[str, str]]:
    """Return the headers of a model call: without the length of the SDK's body, and with a request for plain bytes.

    again: whether the request continues an answer; a continuation is a new call, so the idempotency key is dropped.
    """
    given = [(name, value) for name, value in headers if not is_ours(name)]
    dropped = ("content-length", "transfer-encoding", "accept-encoding", *(("idempotency-key",) if again else ()))
    return [*without(given, *dropped), ("Accept-Encoding", "identity")]


def _path_of(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2].partition("#")[0]


def _is_signed(headers: Iterable[tuple[str, str]]) -> bool:
    return value_of(headers, "authorization").strip().lower().startswith(_SIGNED)


def _route(method: str, path: str) -> Route | None:
    """Return the route of a model call, also behind the path of a proxy; None for other requests."""
    plain = path.partition("?")[0]
    for start in (0, *(one.start() for one in _BEGINNING.finditer(plain))):
        found = route(method, path[start:], {})
        if found.api is not None:
            return found
    return None

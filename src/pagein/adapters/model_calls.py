"""Which requests of an SDK are model calls, and how they reach the engine."""

import os
import time
from collections.abc import Iterable
from typing import Final

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

_BEGINNINGS: Final = ("/v1/", "/v1beta/", "/chat/completions")
"""Where a vendor's own path begins behind the path of a proxy or of a deployment."""
_FEW: Final = 8


class ModelCalls:
    """Hands the model calls of an SDK's client to an engine.

    session: name of their session; None to find it by the headers, the fields or the first message.
    recall: whether the model is offered recall tools, which are answered here.
    rounds: most recall rounds in one answer.
    """

    def __init__(self, engine: Engine, session: str | None, *, recall: bool, rounds: int = _FEW) -> None:
        self._curator = EngineCurator(engine, recall=recall)
        self._hint = Hint(session, "program") if session else None
        self._rounds = rounds
        self._switch = Switch(default_switch(), os.environ)

    def is_one(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> bool:
        """Return whether this is a model call that pagein may change.

        It may not while `pagein off` holds, with the header `x-pagein: off`, or with a subscription's login.
        """
        given = list(headers)
        if _route(method, _path_of(url)) is None or self._switch.is_off() or says_off(given):
            return False
        return value_of(given, "content-encoding") in ("", "identity") and not is_subscription(given)

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
        return CuratedCall(self._curator, asked, self._rounds)


def sent_headers(headers: Iterable[tuple[str, str]], *, again: bool = False) -> list[tuple[str, str]]:
    """Return the headers of a model call: without the length of the SDK's body, and with a request for plain bytes.

    again: whether the request continues an answer; then it is a new one, without the idempotency key.
    """
    given = [(name, value) for name, value in headers if not is_ours(name)]
    dropped = ("content-length", "transfer-encoding", "accept-encoding", *(("idempotency-key",) if again else ()))
    return [*without(given, *dropped), ("Accept-Encoding", "identity")]


def _path_of(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2]


def _route(method: str, path: str) -> Route | None:
    """Return the route of a model call, also behind the path of a proxy; None for other requests."""
    places = (path.find(one) for one in _BEGINNINGS)
    for start in (0, *(place for place in places if place > 0)):
        found = route(method, path[start:], {})
        if found.api is not None:
            return found
    return None

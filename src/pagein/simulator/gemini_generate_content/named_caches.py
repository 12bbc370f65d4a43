"""Explicit caches of Gemini (`cachedContents`): a client creates a cache, and names the cache in later requests.

Creating one costs its tokens at the price of input, and a request that names it reads all of them. Storage costs by
tokens and hours, until it is deleted or has expired.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pagein.providers.wire.gemini_generate_content.cache import EXPLICIT
from pagein.simulator.model_call import Body, ProviderCall, SimulatedRefusal
from pagein.simulator.named_prompts import NamedPromptRequest, StoredPrompt

NAMED: Final = "G8"
"""The rule of requests that name a cache."""
TOO_SMALL: Final = "Cached content is too small. total_token_count={tokens}, min_total_token_count={least}"
NOT_FOUND: Final = "CachedContent not found (or permission denied)"
OTHER_MODEL: Final = (
    "Model used by GenerateContent request (models/{asked}) and CachedContent (models/{held}) has to be the same."
)
_PATH: Final = re.compile(r"/v\d\w*/cachedContents(?:/(?P<id>[^/:]+))?$")
_SECONDS: Final = re.compile(r"(?P<seconds>\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class _Cache:
    body: Body
    key: str
    model: str
    tokens: int
    made: float
    changed: float
    until: float


class NamedCaches:
    """The named caches of all accounts.

    count: counts the tokens of a prompt.
    least: the smallest prompt that a model caches.
    """

    def __init__(self, count: Callable[[ProviderCall], int], least: Callable[[ProviderCall], int]) -> None:
        self._count = count
        self._least = least
        self._caches: dict[str, _Cache] = {}

    def answer(self, asked: NamedPromptRequest) -> Body | SimulatedRefusal | None:
        """Answer a request for caches; None for another path."""
        found = _PATH.search(asked.path)
        if found is None:
            return None
        match asked.method, found["id"]:
            case "POST", None:
                return self._create(asked)
            case "GET", None:
                return {"cachedContents": [_shown(one, it) for one, it in self._caches.items() if _is_there(it, asked)]}
            case "GET" | "PATCH" | "DELETE", str() as name:
                return self._answer_one(f"cachedContents/{name}", asked)
            case _:
                return SimulatedRefusal(NAMED, 404, f"no such endpoint: {asked.method} {asked.path}")

    def _answer_one(self, name: str, asked: NamedPromptRequest) -> Body | SimulatedRefusal:
        held = self._caches.get(name)
        if held is None or not _is_there(held, asked):
            return SimulatedRefusal(NAMED, 403, NOT_FOUND)
        if asked.method == "DELETE":
            self._caches[name] = replace(held, until=asked.at)
            return {}
        if asked.method == "PATCH":
            self._caches[name] = held = replace(held, changed=asked.at, until=_end(asked.body, asked.at))
        return _shown(name, held)

    def _create(self, asked: NamedPromptRequest) -> Body | SimulatedRefusal:
        model = str(asked.body.get("model", "")).removeprefix("models/")
        call = replace(asked.call, path_model=model)
        tokens, least = self._count(call), self._least(call)
        if tokens < least:
            return SimulatedRefusal(NAMED, 400, TOO_SMALL.format(tokens=tokens, least=least))
        name = f"cachedContents/{len(self._caches) + 1:012x}"
        until = _end(asked.body, asked.at)
        self._caches[name] = _Cache(asked.body, asked.call.key, model, tokens, asked.at, asked.at, until)
        return _shown(name, self._caches[name])

    def resolve_call(self, call: ProviderCall) -> ProviderCall | SimulatedRefusal:
        """Put the named cache's prompt in front of a call."""
        name = call.body.get(EXPLICIT.field)
        if not name:
            return call
        held = self._caches.get(str(name))
        if held is None or held.key != call.key or held.until <= call.at:
            return SimulatedRefusal(NAMED, 403, NOT_FOUND)
        if held.model != call.model:
            return SimulatedRefusal(NAMED, 400, OTHER_MODEL.format(asked=call.model, held=held.model))
        return replace(call, stored=held.body)

    def stored(self, now: float) -> list[StoredPrompt]:
        """What was stored so far."""
        return [
            StoredPrompt(one.model, one.tokens, one.made, max(0.0, min(now, one.until) - one.made))
            for one in self._caches.values()
        ]


def _is_there(held: _Cache, asked: NamedPromptRequest) -> bool:
    return held.key == asked.call.key and held.until > asked.at


def _end(body: Body, now: float) -> float:
    """The time at which a cache expires: by TTL, by the request's own time, or by default."""
    found = _SECONDS.fullmatch(str(body.get("ttl", "")))
    if found is not None:
        return now + float(found["seconds"])
    try:
        return datetime.fromisoformat(str(body["expireTime"])).timestamp()
    except (KeyError, ValueError):
        return now + EXPLICIT.ttl


def _shown(name: str, held: _Cache) -> Mapping[str, Any]:
    told = {"displayName": held.body["displayName"]} if "displayName" in held.body else {}
    return {
        "name": name,
        "model": f"models/{held.model}",
        "createTime": _time(held.made),
        "updateTime": _time(held.changed),
        "expireTime": _time(held.until),
        "usageMetadata": {"totalTokenCount": held.tokens},
        **told,
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")

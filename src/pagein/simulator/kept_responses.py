"""Responses stored by the provider, for requests that continue a response by id."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pagein.model.json_text import encode_json
from pagein.simulator.formats import simulated_format
from pagein.simulator.model_call import ProviderCall, SimulatedRefusal, parse_call

Items: TypeAlias = Sequence[dict[str, Any]]

PREVIOUS: Final = "previous"
"""Used instead of a rule id for the continuation of an unknown response."""

_KEPT: Final = 10_000
_MOST_BYTES: Final = 256 << 20


class KeptResponses:
    """The conversations of recent responses, by response id.

    most: maximum bytes. The newest conversation is stored whatever its size.
    """

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._behind: OrderedDict[str, tuple[list[Any], int]] = OrderedDict()
        self._most = most
        self._bytes = 0

    def resolve_call(self, call: ProviderCall) -> ProviderCall | SimulatedRefusal:
        """Expand a call to the full conversation."""
        name = call.body.get("previous_response_id")
        if not simulated_format(call.api).keeps_responses or name is None:
            return call
        behind = self._behind.get(str(name))
        if behind is None:
            words = f"Previous response with id '{name}' not found."
            return SimulatedRefusal(PREVIOUS, 400, words, "previous_response_not_found")
        body = {field: value for field, value in call.body.items() if field != "previous_response_id"}
        body["input"] = [*behind[0], *_items(call)]
        whole = parse_call(encode_json(body), call.api)
        return replace(call, body=whole.body, messages=whole.messages, size=whole.size)

    def keep(self, call: ProviderCall, name: str, answer: Items) -> None:
        """Store a response, unless the call asked not to."""
        if not simulated_format(call.api).keeps_responses or call.body.get("store") is False:
            return
        self._behind[name] = ([*_items(call), *answer], call.size)
        self._bytes += call.size
        while len(self._behind) > _KEPT or (self._bytes > self._most and len(self._behind) > 1):
            _, (_, size) = self._behind.popitem(last=False)
            self._bytes -= size


def _items(call: ProviderCall) -> list[Any]:
    given = call.body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given if isinstance(given, list) else []

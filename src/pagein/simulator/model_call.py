"""A model call as the simulated provider takes it: the body in its own format, and in host-neutral words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pagein.model.codec import decode_json
from pagein.model.messages import Message
from pagein.providers.validity import Api
from pagein.providers.validity.turns import objects_at
from pagein.providers.wire import decode

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """A model call.

    body: as it came, decoded. size: its bytes. messages: all of the prompt but tools, system prompts that stand outside first.
    betas: values of the beta header. key: a digest of the credentials, which stand for the account. at: seconds since 1970.
    """

    api: Api
    body: Body
    size: int
    messages: tuple[Message, ...]
    betas: frozenset[str] = frozenset()
    key: str = ""
    at: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model that is asked."""
        found = self.body.get("model")
        return found if isinstance(found, str) else ""

    @property
    def streams(self) -> bool:
        """Whether the answer is to come as events."""
        return self.body.get("stream") is True

    @property
    def offers_tools(self) -> bool:
        """Whether the model may call anything. Codex hands tools to newer models as an item of the input."""
        return bool(self.body.get("tools")) or any(
            item.get("type") == "additional_tools" for item in objects_at(self.body, "input")
        )


def parse_call(raw: bytes, api: Api) -> ProviderCall:
    """The call in a request body. Raises BadInput or ValueError for what is no JSON object with messages."""
    read = decode(raw, api)
    body = decode_json(raw)
    return ProviderCall(api, body if isinstance(body, dict) else {}, len(raw), (*read.system, *read.messages))

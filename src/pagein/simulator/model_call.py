"""A model call received by the simulated provider, with the body in wire format and host-neutral messages; and its refusal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pagein.model.json_text import decode_json
from pagein.model.messages import Message
from pagein.providers.validity import Api
from pagein.providers.validity.turns import objects_at
from pagein.providers.wire import decode

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """A model call.

    body: the decoded body.
    size: bytes of the body.
    messages: the whole prompt without tools, system prompts first.
    betas: values of the beta header.
    key: a digest of the credentials, which identifies the account.
    at: seconds since 1970.
    path_model, path_streams: the model, and the wish for a stream, if the path of the request has them.
    stored: the body of the stored prompt that it names, which stands before its own.
    """

    api: Api
    body: Body
    size: int
    messages: tuple[Message, ...]
    betas: frozenset[str] = frozenset()
    key: str = ""
    at: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    path_model: str = ""
    path_streams: bool = False
    stored: Body = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The requested model."""
        found = self.path_model or self.body.get("model")
        return found if isinstance(found, str) else ""

    @property
    def streams(self) -> bool:
        """Whether the client asked for a stream of events."""
        return self.path_streams or self.body.get("stream") is True

    @property
    def offers_tools(self) -> bool:
        """Whether the model may call any tool. Codex gives newer models their tools as an item of the input."""
        return bool(self.body.get("tools")) or any(
            item.get("type") == "additional_tools" for item in objects_at(self.body, "input")
        )


@dataclass(frozen=True, slots=True)
class SimulatedRefusal:
    """The refusal of a request.

    rule: id of the broken rule.
    message: the provider's words.
    kind: type of the error; None for the default of the status.
    """

    rule: str
    status: int
    message: str
    kind: str | None = None


def parse_call(raw: bytes, api: Api) -> ProviderCall:
    """Parse a request body. Raises BadInput or ValueError for anything but a JSON object with messages."""
    read = decode(raw, api)
    body = decode_json(raw)
    return ProviderCall(api, body if isinstance(body, dict) else {}, len(raw), (*read.system, *read.messages))

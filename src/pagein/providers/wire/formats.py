"""The list of all wire formats. A new format is a folder beside this module and a row here."""

from collections.abc import Callable, Mapping
from typing import Final

from pagein.errors import BadInput
from pagein.model.json_text import decode_json
from pagein.model.messages import Message, Other
from pagein.model.server_results import ServerResult
from pagein.providers.validity import Api, ValidityRule
from pagein.providers.wire.anthropic_messages import FORMAT as ANTHROPIC_MESSAGES
from pagein.providers.wire.gemini_generate_content import FORMAT as GEMINI_GENERATE_CONTENT
from pagein.providers.wire.openai_chat import FORMAT as OPENAI_CHAT
from pagein.providers.wire.openai_responses import FORMAT as OPENAI_RESPONSES
from pagein.providers.wire.wire_format import WireFormat

FORMATS: Final[tuple[WireFormat, ...]] = (ANTHROPIC_MESSAGES, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI_GENERATE_CONTENT)


class _FormatsByName(dict[str, WireFormat]):
    def __missing__(self, api: str) -> WireFormat:
        raise BadInput(f"there is no wire format {api!r}; there are {', '.join(self)}")


SYSTEM_FIELDS: Final = tuple(dict.fromkeys(name for one in FORMATS for name in one.requests.system_fields))
"""The fields that hold prompts outside the messages, of all formats. No name means anything else in another format."""

RULES: Final[Mapping[str, ValidityRule]] = {name: rule for one in FORMATS for name, rule in one.validity.rules.items()}
"""The rules of all formats, by id."""


format_named: Final[Callable[[Api], WireFormat]] = _FormatsByName((one.name, one) for one in FORMATS).__getitem__
"""Return the wire format of this name. Raises BadInput for an unknown name."""


def server_results_of(message: Message) -> tuple[ServerResult, ...]:
    """Return the results of tools that the provider ran, in a message of the model of any format."""
    if message.role != "assistant" or not any(isinstance(block, Other) for block in message.blocks):
        return ()
    forms = (one.requests.server_results for one in FORMATS)
    return next((found for form in forms if form is not None and (found := form.results(message.blocks))), ())


def api_of(body: bytes) -> Api:
    """Detect the wire format of a request from its body alone, for library callers without a request path.

    Raises BadInput for anything but a JSON object.
    """
    try:
        value = decode_json(body)
    except ValueError as problem:
        raise BadInput(f"the request body is not JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise BadInput("the request body is not a JSON object")
    return max(FORMATS, key=lambda one: one.likeness(value)).name

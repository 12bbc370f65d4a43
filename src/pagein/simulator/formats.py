"""The wire formats of the simulated provider, in the order of `providers/wire/formats.py`."""

from typing import Final

from pagein.errors import BadInput
from pagein.providers.validity import Api
from pagein.simulator.anthropic_messages import FORMAT as ANTHROPIC_MESSAGES
from pagein.simulator.gemini_generate_content import FORMAT as GEMINI_GENERATE_CONTENT
from pagein.simulator.openai_chat import FORMAT as OPENAI_CHAT
from pagein.simulator.openai_responses import FORMAT as OPENAI_RESPONSES
from pagein.simulator.simulated_format import SimulatedFormat

FORMATS: Final[tuple[SimulatedFormat, ...]] = (
    ANTHROPIC_MESSAGES,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    GEMINI_GENERATE_CONTENT,
)

_BY_NAME: Final = {one.name: one for one in FORMATS}


def simulated_format(api: Api) -> SimulatedFormat:
    """Return the format of this name. Raises BadInput for an unknown name."""
    try:
        return _BY_NAME[api]
    except KeyError:
        raise BadInput(f"the simulated provider has no wire format {api!r}; it has {', '.join(_BY_NAME)}") from None

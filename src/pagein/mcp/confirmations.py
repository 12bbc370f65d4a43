"""Ask for the user's consent to an expensive call: in the client's dialogue, or by a second call.

A client without a dialogue gets a refusal with a handle. Its model tells the user, and calls again with the handle, which
holds for these arguments and this question.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from pagein.engine.log.read_notes import trace_of
from pagein.mcp.offered_tools import CONFIRM
from pagein.tools.calls import ConsentQuestion

_DIGITS: Final = 8


class CallConsent:
    """The question of one call. `refused`: what the model is told when nobody has agreed yet; "" if nothing was asked.

    dialogue: asks the user; None for a client without a dialogue.
    """

    def __init__(self, tool: str, arguments: Mapping[str, object], dialogue: Callable[[str], bool] | None) -> None:
        self._tool = tool
        self._asked = {name: value for name, value in arguments.items() if name != CONFIRM}
        self._handle = arguments.get(CONFIRM)
        self._dialogue = dialogue
        self.refused = ""

    def ask(self, asked: ConsentQuestion) -> bool:
        """Return whether the user agreed."""
        text = json.dumps([self._tool, self._asked, asked.reason], sort_keys=True, default=str)
        handle = trace_of(text)[:_DIGITS]
        if self._handle == handle:
            return True
        if self._dialogue is not None:
            return self._dialogue(asked.question)
        self.refused = (
            f'{asked.reason}. Ask the user; if they agree, call {self._tool} again with {CONFIRM}="{handle}", '
            f"{asked.otherwise}."
        )
        return False

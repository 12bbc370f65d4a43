"""Ways of recall: tools, or commands in the model's shell.

Every text that stands for other text says how the model gets that text back. The functions that write such texts take
the way that exists for the model.
"""

from dataclasses import dataclass
from typing import Final

from pagein.model.journal_notes import ToolsNote

_LINES: Final = 40


@dataclass(frozen=True, slots=True)
class Way:
    """How the model recalls, and the words for it.

    peek, search: names of the tools or commands.
    is_command: True for commands in the model's shell.
    """

    peek: str = "peek"
    search: str = "search"
    is_command: bool = False

    def view_words(self, object_id: str) -> str:
        """Return the words on how to view an object, without a full stop: `Use peek("pg-...") to view`."""
        return (
            f"Run `{self.peek} {object_id}` to view" if self.is_command else f'Use {self.peek}("{object_id}") to view'
        )

    def recall_words(self, object_id: str, what: str = "") -> str:
        """Return the sentence on how to view an object, or to search in it.

        what: what is viewed, with a space in front: " them".
        """
        return f"{self.view_words(object_id)}{what}, or {self.words_of(self.search)} to find specific content."

    def words_of(self, name: str) -> str:
        """Return the name of a tool or command as it stands in a sentence."""
        return f"`{name}`" if self.is_command else name

    def part_words(self, object_id: str, line: int) -> str:
        """Return the sentence on how to recall a part with the first call.

        line: a line that may be asked for.
        """
        if self.is_command:
            lines = f"`{self.peek} {object_id} --line {line} --lines {_LINES}`"
            pattern = f"`{self.search} -e 'REGEX' --in {object_id}`"
        else:
            lines = f'{self.peek}("{object_id}", line={line}, lines={_LINES})'
            pattern = f'{self.search}("words or /regex/", scope=["{object_id}"])'
        return f"At once: {lines} for lines by number, {pattern} for a pattern."


TOOLS: Final = Way()
"""The recall tools under their own names."""
SHELL: Final = Way("pagein peek", "pagein search", is_command=True)
"""The command line, where the agent has a shell of the machine that pagein runs on."""


@dataclass(frozen=True, slots=True)
class EnteringTools:
    """The recall tools are offered from the first request with an eviction on, which voids the cache.

    note: the tools, for the journal.
    tokens: estimated tokens of the tools.
    """

    note: ToolsNote
    tokens: float


SHARE: Final = 0.005
"""Maximum share of the recall tools in the bytes of a first request (law 5: the tools cost in each request, also
without savings).
"""
_PER_TOKEN: Final = 4.0


def are_small(tools: int, request: int) -> bool:
    """Return whether the recall tools cost next to nothing in a conversation with such a first request; sizes in bytes."""
    return tools <= SHARE * request


def tokens_of(tools: int) -> float:
    """Estimate the tokens of the recall tools from their bytes."""
    return tools / _PER_TOKEN

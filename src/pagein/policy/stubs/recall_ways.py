"""Ways of recall: tools, or commands in the model's shell. Stubs name the way that exists.

Stubs are written for tools called `peek` and `search`; `Way.reword` says the same for another way.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.entries import EpochEntry, PagedOut

_LINES: Final = 40
_WRITTEN: Final = (
    r'Use peek\((?P<quote>\\*")%(id)s(?P=quote)\) to view(?P<them> them)?(?P<search>, or search to find)?'
    r"(?P<more> specific content\. At once: peek\((?P=quote)%(id)s(?P=quote), line=(?P<line>\d+), lines=(?P<lines>\d+)\)[^()\n]*"
    r"search\((?P=quote)words or /regex/(?P=quote), scope=\[(?P=quote)%(id)s(?P=quote)\]\))?"
)


def at_once(object_id: str, line: int) -> str:
    """Return the words in a preview on how to recall a part with the first call.

    line: a line that may be asked for.
    """
    lines = f'peek("{object_id}", line={line}, lines={_LINES}) for lines by number'
    return f'At once: {lines}, search("words or /regex/", scope=["{object_id}"]) for a pattern'


@dataclass(frozen=True, slots=True)
class Way:
    """Names of the recall tools or commands."""

    peek: str = "peek"
    search: str = "search"
    is_command: bool = False

    def of(self, paged: PagedOut) -> PagedOut:
        """Return the record of an evicted result with its stub in the words of this way."""
        if self == TOOLS:
            return paged
        short = self.reword(paged.short, paged.object_id) if paged.short else paged.short
        return replace(paged, stub=self.reword(paged.stub, paged.object_id), short=short)

    def of_epoch(self, opened: EpochEntry) -> EpochEntry:
        """Return an epoch with every stub in the words of this way."""
        if self == TOOLS:
            return opened
        turns = tuple(replace(one, text=self.reword(one.text, one.object_id)) for one in opened.turns)
        return replace(opened, paged=tuple(self.of(one) for one in opened.paged), turns=turns)

    def reword(self, text: str, object_id: str) -> str:
        """Return a stub or preview, written for `TOOLS`, in the words of this way; quoted text is left alone."""
        return re.sub(_WRITTEN % {"id": re.escape(object_id)}, lambda found: self._instruction(found, object_id), text)

    def _instruction(self, found: "re.Match[str]", object_id: str) -> str:
        quote, them, line = found["quote"], found["them"] or "", found["line"]
        name = f"{quote}{object_id}{quote}"
        if self.is_command:
            first, other = f"Run `{self.peek} {object_id}`", f"`{self.search}`"
            part = f"`{self.peek} {object_id} --line {line} --lines {found['lines']}`"
            pattern = f"`{self.search} -e 'REGEX' --in {object_id}`"
        else:
            first, other = f"Use {self.peek}({name})", self.search
            part = f"{self.peek}({name}, line={line}, lines={found['lines']})"
            pattern = f"{self.search}({quote}words or /regex/{quote}, scope=[{name}])"
        more = f" specific content. At once: {part} for lines by number, {pattern}" if found["more"] else ""
        return f"{first} to view{them}{f', or {other} to find' if found['search'] else ''}{more}"


TOOLS: Final = Way()
"""The recall tools under their own names."""
SHELL: Final = Way("pagein peek", "pagein search", is_command=True)
"""The command line, where the agent has a shell of the machine that pagein runs on."""


@dataclass(frozen=True, slots=True)
class Begins:
    """The recall tools are offered from the first request with an eviction on, which voids the cache.

    kind, data: the note for the journal. tokens: of the tools.
    """

    kind: str
    data: str
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

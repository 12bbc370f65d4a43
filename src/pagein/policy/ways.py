"""How a model gets back what left its window: by which tools, or by a command in its shell. Stubs name the way that exists.

A text that stands for another is written for tools called `peek` and `search`; `Way.worded` says the same for another way.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.entries import PagedOut

_WRITTEN: Final = r'Use peek\((?P<quote>\\*")%s(?P=quote)\) to view(?P<them> them)?(?P<search>, or search to find)?'


@dataclass(frozen=True, slots=True)
class Way:
    """Names of what brings back: tools, or of commands."""

    peek: str = "peek"
    search: str = "search"
    is_command: bool = False

    def of(self, paged: PagedOut) -> PagedOut:
        """What stands for something that left, in the words of this way."""
        if self == TOOLS:
            return paged
        short = self.worded(paged.short, paged.object_id) if paged.short else paged.short
        return replace(paged, stub=self.worded(paged.stub, paged.object_id), short=short)

    def worded(self, text: str, object_id: str) -> str:
        """A stub or preview, as it is written for `TOOLS`, in the words of this way. What it quotes is left alone."""
        return re.sub(_WRITTEN % re.escape(object_id), lambda found: self._said(found, object_id), text)

    def _said(self, found: "re.Match[str]", object_id: str) -> str:
        quote, them = found["quote"], found["them"] or ""
        if self.is_command:
            first, other = f"Run `{self.peek} {object_id}`", f", or `{self.search}` to find"
        else:
            first, other = f"Use {self.peek}({quote}{object_id}{quote})", f", or {self.search} to find"
        return f"{first} to view{them}{other if found['search'] else ''}"


TOOLS: Final = Way()
"""The recall tools under their own names."""
SHELL: Final = Way("pagein peek", "pagein search", is_command=True)
"""The command line, where the agent has a shell of the machine that pagein runs on."""


@dataclass(frozen=True, slots=True)
class Begins:
    """The tools that bring things back are offered from the first request on in which something left: what voids the cache.

    kind, data: what is journaled then. tokens: of the tools.
    """

    kind: str
    data: str
    tokens: float


SHARE: Final = 0.005
"""Of the bytes of a first request, so many may be our tools (law 5: they cost something in each request, also where nothing is saved)."""
_PER_TOKEN: Final = 4.0


def are_small(tools: int, request: int) -> bool:
    """Whether our tools are next to nothing in what a conversation costs that begins with such a request. Both in bytes."""
    return tools <= SHARE * request


def tokens_of(tools: int) -> float:
    """About how many tokens our tools take. tools: their bytes."""
    return tools / _PER_TOKEN

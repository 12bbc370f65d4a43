"""The value of a resident: a result open to eviction, or arguments open to masking. `residency` tells which."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pagein.model.entries import PagedOut
from pagein.policy.eviction.residency_rules import ResidentKind

STUB_TOKENS: Final = 40
"""Assumed size of a stub at the decision; its true size is known once it is written."""


WHOLE: Final = (1, 1 << 31)
"""The lines of a read without a range."""

Form: TypeAlias = Literal["result", "server", "replaced", "texts", "text"]
"""Part of a call that leaves: the result; the call and its result, of a tool of the provider's; replaced text or every file text in its arguments; or a long user text."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A tool result or an argument text in the window that may be evicted or masked one day.

    message, block: place in the request.
    born: the model call, from 0, that first saw it; results of one group share this.
    before: tokens in front of its message.
    kind: its rows in the residency table.
    path: the file that it shows, or whose text the arguments hold; "" where age alone decides.
    lines: first and last line that it shows of the file.
    kept: record of the whole text, where this is a preview of it.
    form: part that leaves.
    stays: tokens of the text in its place afterwards.
    why: why it may leave, where counts decided; "" while it waits, and where its age alone decided.
    """

    call_id: str
    message: int
    block: int
    tokens: int
    born: int
    before: int = 0
    kind: ResidentKind = "result"
    kept: PagedOut | None = None
    path: str = ""
    lines: tuple[int, int] = WHOLE
    form: Form = "result"
    stays: int = STUB_TOKENS
    why: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """Its message and its block."""
        return self.message, self.block

    @property
    def gain(self) -> int:
        """Tokens saved by its eviction."""
        return max(0, self.tokens - self.stays)

    def behind(self, before: Mapping[int, int]) -> "Resident":
        """Return the resident with the new number of tokens in front of the message; unchanged if not listed."""
        place = before.get(self.message, self.before)
        return self if place == self.before else replace(self, before=place)

"""What of a tool call may be paged out one day: its result, or texts in its arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pagein.model.entries import PagedOut

STUB_TOKENS: Final = 40
"""What a stub is taken to weigh when it is decided; its true size is known once it is written."""


Form: TypeAlias = Literal["result", "replaced", "texts", "text"]
"""What leaves: a result; of arguments the text that an edit replaced; or all text of files in them; or a long text of the user's."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A tool result in the window that may be paged out one day, or arguments that may be masked.

    message, block: its place in the request. born: the model call, from 0, that first saw it; results of one group share it.
    before: tokens in front of its message. is_read: whether it shows a file; path: which one, "" where it goes by age alone.
    kept: where it is the preview of something that is kept whole, the record of that. form: what of it leaves. stays: tokens that
    stand in its place then.
    """

    call_id: str
    message: int
    block: int
    tokens: int
    born: int
    before: int = 0
    is_read: bool = False
    kept: PagedOut | None = None
    path: str = ""
    form: Form = "result"
    stays: int = STUB_TOKENS

    @property
    def gain(self) -> int:
        """Tokens that its leaving spares."""
        return max(0, self.tokens - self.stays)

    def behind(self, before: Mapping[int, int]) -> "Resident":
        """The same where its message stands behind so many tokens now; itself where that message is not told of."""
        place = before.get(self.message, self.before)
        return self if place == self.before else replace(self, before=place)

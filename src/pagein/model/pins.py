"""Pins: the orders of a person about the window, journaled as a `PinNote`.

A pin names the tool call of the result it applies to, so its effect follows from the branch alone. Each pin has its own
id: a pin recorded by another process beside the running session is copied into the branch, and counts once.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from pagein.model.json_text import encode_json
from pagein.model.names import ContentHash

_DIGITS: Final = 16

Act: TypeAlias = Literal["pin", "unpin", "drop", "restore", "veto", "epoch", "cancel", "say", "unsay", "off", "on"]
"""The actions of a pin.

pin: stays in the window, and is recalled if it was evicted.
veto: is never evicted again.
unpin: ends pin and veto.
drop: is evicted at the next epoch, whatever its age.
restore: is recalled at the next epoch.
epoch: the next call opens an epoch if anything may be evicted.
cancel: takes back an ordered epoch that no call has opened yet.
say: the text stays in every window.
unsay: the text is no longer inserted.
off, on: stop and resume the decisions of pagein.
"""
ACTS: Final = frozenset(get_args(Act))


@dataclass(frozen=True, slots=True)
class Wish:
    """A person's order about the window.

    call_id: id of the call whose result it applies to.
    text: the text to insert, verbatim.
    id: unique id of the order.
    """

    act: Act
    call_id: str = ""
    text: str = ""
    id: str = ""

    def at(self, place: str | None) -> "Wish":
        """The same order, with the id for its place in the journal: after this entry."""
        said = encode_json([place, self.act, self.call_id, self.text])
        return replace(self, id=ContentHash.of(said).hex[:_DIGITS])


def name_of(text: str) -> str:
    """The name of a pinned text."""
    return f"text-{ContentHash.of(text.encode('utf-8', 'surrogatepass')).hex[:8]}"

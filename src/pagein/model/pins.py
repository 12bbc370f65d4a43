"""Pins in the journal: `NoteEntry` values of kind `hand`.

A pin names the tool call of the result it applies to, so its effect follows from the branch alone. Each pin has its own
id: a pin recorded by another process beside the running session is copied into the branch, and counts once.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from pagein.model.entries import Body, EntryId, NoteEntry
from pagein.model.json_text import decode_json, encode_json
from pagein.model.names import ContentHash

HAND: Final = "hand"
_DIGITS: Final = 16

Act: TypeAlias = Literal["pin", "unpin", "drop", "restore", "veto", "epoch", "say", "unsay", "off", "on"]
"""The actions of a pin.

pin: stays in the window, and is recalled if it was evicted.
veto: is never evicted again.
unpin: ends pin and veto.
drop: is evicted at the next epoch, whatever its age.
restore: is recalled at the next epoch.
epoch: the next call opens an epoch if anything may be evicted.
say: the text stays in every window.
unsay: the text is no longer inserted.
off, on: stop and resume the decisions of pagein.
"""
_ACTS: Final = frozenset(get_args(Act))


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

    def at(self, place: EntryId | None) -> "Wish":
        """The same order, with the id for its place in the journal: after this entry."""
        said = encode_json([place, self.act, self.call_id, self.text])
        return replace(self, id=ContentHash.of(said).hex[:_DIGITS])


def name_of(text: str) -> str:
    """The name of a pinned text."""
    return f"text-{ContentHash.of(text.encode('utf-8', 'surrogatepass')).hex[:8]}"


def wish_note(wish: Wish) -> str:
    """Encode an order as the data of a `hand` entry."""
    fields: dict[str, object] = {"act": wish.act, "id": wish.id}
    if wish.call_id:
        fields["call_id"] = wish.call_id
    if wish.text:
        fields["text"] = wish.text
    return encode_json(fields).decode()


def wish_of(body: Body) -> Wish | None:
    """Decode the order in an entry. None for an entry of a different kind or with unknown data."""
    if not isinstance(body, NoteEntry) or body.kind != HAND:
        return None
    match _fields(body.data):
        case {"act": str(act), "id": str(name), **rest} if act in _ACTS:
            return Wish(cast("Act", act), str(rest.get("call_id", "")), str(rest.get("text", "")), name)
    return None


def _fields(data: str) -> Any:  # noqa: ANN401  whatever JSON it is
    try:
        return decode_json(data.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None

"""The user's hand as the journal keeps it: `Noted` entries of kind `hand`.

A wish names the tool call whose result it means, so that what it does follows from the branch alone. It has an id of its own: a wish
that another process laid down beside the running session is taken over into the branch, and counts once.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from pagein.model.codec import decode_json, encode_json
from pagein.model.entries import Body, EntryId, NoteEntry
from pagein.model.names import ContentHash

HAND: Final = "hand"
_DIGITS: Final = 16

Act: TypeAlias = Literal["pin", "unpin", "drop", "restore", "veto", "epoch", "say", "unsay", "off", "on"]
"""pin: stays, and comes back if it is out. veto: never leaves again. unpin: neither holds any more. drop: leaves at the next epoch, whatever its age.
restore: comes back at the next one. epoch: the next call opens one if anything may go. say: this text stays in every window. unsay: it is not said anew
any more. off, on: nothing is decided by us from now on, and again.
"""
_ACTS: Final = frozenset(get_args(Act))


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants. call_id: the call whose result is meant. text: what is to be said, verbatim. id: the wish's own name."""

    act: Act
    call_id: str = ""
    text: str = ""
    id: str = ""

    def at(self, place: EntryId | None) -> "Wish":
        """The same with an id, when it is laid down behind this entry."""
        said = encode_json([place, self.act, self.call_id, self.text])
        return replace(self, id=ContentHash.of(said).hex[:_DIGITS])


def name_of(text: str) -> str:
    """How a pinned text is called."""
    return f"text-{ContentHash.of(text.encode('utf-8', 'surrogatepass')).hex[:8]}"


def wish_note(wish: Wish) -> str:
    """The data of a `hand` entry."""
    fields: dict[str, object] = {"act": wish.act, "id": wish.id}
    if wish.call_id:
        fields["call_id"] = wish.call_id
    if wish.text:
        fields["text"] = wish.text
    return encode_json(fields).decode()


def wish_of(body: Body) -> Wish | None:
    """What an entry says the user wants; None where it says nothing of it, or cannot be understood."""
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

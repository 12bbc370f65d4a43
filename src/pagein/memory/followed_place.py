"""How far the objects of a store follow its journals, without what follows them."""

from typing import Final

from pagein.ports import LayerStore

LAYER: Final = "memory"
"""Name under which the store keeps the place of the last entry that the objects follow."""
FORM: Final = "8"
"""Version of the objects' form. Objects of another form are made again."""
OPEN_CHATS: Final = "memory.open"
"""Name under which the store keeps the sessions with steps that no version of a chat has."""


def is_followed(store: LayerStore) -> bool:
    """Return whether the objects are up to the journals, with the newest steps of all chats."""
    place, form = store.layer(LAYER) or (0, FORM)
    _, left = store.layer(OPEN_CHATS) or (0, "[]")
    return form == FORM and left == "[]" and not store.places(place, 1)

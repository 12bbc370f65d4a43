"""How far the objects of a store follow its journals, without what follows them."""

from typing import Final

from pagein.ports import LayerStore

LAYER: Final = "memory"
"""Name under which the store keeps the place of the last entry that the objects follow."""
FORM: Final = "7"
"""Version of the objects' form. Objects of another form are made again."""
OPEN_CHATS: Final = "memory.open"
"""Name under which the store keeps the sessions with steps that no version of a chat has."""


def is_followed(store: LayerStore) -> bool:
    """Return whether the objects are up to the journals, with the newest steps of all chats."""
    found, left = store.layer(LAYER), store.layer(OPEN_CHATS)
    if found is None or found[1] != FORM or (left is not None and left[1] != "[]"):
        return False
    return not store.places(found[0], 1)

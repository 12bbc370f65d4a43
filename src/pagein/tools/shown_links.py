"""Resolve the links in a shown text."""

from typing import Final

from pagein.engine.recall.stored_objects import StoredObjects
from pagein.policy.stubs.object_lines import target_line

_MOST: Final = 10


def link_lines(objects: StoredObjects, name: str, text: str) -> list[str]:
    """Return a line for each link `[[name]]` in a shown part of an object, with the metadata of the target.

    At most ten. Raises StoreError.
    """
    links = objects.links_shown(name, text) if "[[" in text else ()
    return [f"[[[{link.name}]] is {target_line(link.target)}]" for link in links[:_MOST]]

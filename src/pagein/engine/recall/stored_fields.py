"""Read contents and additional fields of many versions together: what is stored together is read once."""

from collections.abc import Collection, Iterable

from pagein.errors import StoreError
from pagein.model.names import ContentHash
from pagein.model.values import Value
from pagein.model.version_hash import decode_content, value_of
from pagein.ports import ObjectStore


def stored_bytes(store: ObjectStore, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
    """Return the bytes under some hashes. Raises StoreError for what is missing or damaged."""
    wanted = list(dict.fromkeys(names))
    found: dict[ContentHash, bytes] = {}
    for name, one in zip(wanted, store.load(wanted) if wanted else (), strict=True):
        if isinstance(one, StoreError):
            raise one
        found[name] = one
    return found


def contents_of(store: ObjectStore, names: Collection[ContentHash]) -> dict[ContentHash, str]:
    """Return contents by their hashes. Raises StoreError."""
    return {name: decode_content(one) for name, one in stored_bytes(store, names).items()}


def values_of(store: ObjectStore, names: Collection[ContentHash]) -> dict[ContentHash, Value]:
    """Return additional fields by their hashes. Raises StoreError."""
    return {name: value_of(one) for name, one in stored_bytes(store, names).items()}

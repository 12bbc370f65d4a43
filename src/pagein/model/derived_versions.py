"""Versions derived from journals, recognised by writer and by request."""

from typing import Final

from pagein.model.versions import Writer

INDEXER: Final = "index"
"""Kind of the writer of every version made from a journal."""
ARCHIVED: Final = "archived"
"""Kind of the writer of such a version after its journal was removed: nothing makes the version again, so nothing drops it."""
ORDERS: Final = "pagein.orders"
"""Name of the journal of orders about objects."""
FILES: Final = "pagein.files"
"""Name of the journal of what was found of sessions and of their files on the disks of machines."""
ORDER_REASONS: Final = ("name", "view", "summary")
"""Reasons of the versions that orders make; their writer is of kind `client`."""
DERIVED: Final[tuple[tuple[str, str | None], ...]] = (
    (INDEXER, None),
    *(("client", reason) for reason in ORDER_REASONS),
)
"""Kinds of the writers of derived versions, each with a reason; None for any reason."""
FOLLOWING: Final = "memory:"
"""Beginning of the requests by which journals are followed."""
_REQUESTS: Final = (FOLLOWING, f"{ORDERS}:")


def is_derived(writer: Writer) -> bool:
    """Return whether the versions of a writer follow from journals, removed or not."""
    return is_indexed(writer) or (writer.kind, writer.reason) in DERIVED


def is_indexed(writer: Writer) -> bool:
    """Return whether the versions of a writer were made from a journal of a session, removed or not."""
    return writer.kind in (INDEXER, ARCHIVED)


def is_following(request: str) -> bool:
    """Return whether a request was made by following a journal: it has the same id whenever the journal is followed."""
    return request.startswith(_REQUESTS)

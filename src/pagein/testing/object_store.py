"""The contract of every ObjectStore, as tests. Subclass the contract and provide the fixture `store`."""

from pagein.testing.object_drafts import HARD_FIELDS, a_file, object_number, put, refusal_reason, send
from pagein.testing.object_links import QueryContract, ReferenceContract
from pagein.testing.object_versions import VersionContract, WriteContract

__all__ = ["HARD_FIELDS", "ObjectStoreContract", "a_file", "object_number", "put", "refusal_reason", "send"]


class ObjectStoreContract(VersionContract, WriteContract, ReferenceContract, QueryContract):
    """The contract of every ObjectStore."""

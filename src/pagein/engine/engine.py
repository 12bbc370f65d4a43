"""The engine: one store, one workspace, many sessions."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pagein.engine.paging import Pager
from pagein.engine.session import Parts, Session
from pagein.policy.residency import Residency
from pagein.ports import BlobStore, JournalStore, TokenCounter


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set, as one value."""

    residency: Residency = field(default_factory=Residency)


class Engine:
    """Sessions on one store.

    workspace: whose objects may be recalled here. journals: where sessions are kept from one process to the next; None
    for sessions that end with this one.
    """

    def __init__(
        self,
        *,
        blobs: BlobStore,
        counter: TokenCounter,
        journals: JournalStore | None = None,
        settings: Settings | None = None,
        workspace: str = "",
    ) -> None:
        self._blobs = blobs
        self._journals = journals
        self._counter = counter
        self._settings = settings if settings is not None else Settings()
        self._pager = Pager(blobs, workspace)
        self._sessions: dict[str, Session] = {}

    def session(self, name: str) -> Session:
        """The session of this name: as it was left, in this process or another, or a new one. Raises StoreError."""
        found = self._sessions.get(name)
        if found is None:
            parts = Parts(self._pager, self._counter, self._settings.residency, self._journals)
            found = Session.resumed(name, parts) if self._journals is not None else Session(name, parts)
            self._sessions[name] = found
        return found

    def recall(self, object_id: str) -> str:
        """What `Session.recall` gives, without a session to journal it in."""
        return self._pager.recall(object_id)

    def close(self) -> None:
        """Let go of the store. Sessions of this engine are of no use afterwards."""
        self._sessions.clear()
        self._blobs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

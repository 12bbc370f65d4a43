"""Drafts without texts erased from a store.

A content that follows from a journal can hold an erased text although no entry does: a file is stored without the line numbers that
its reader showed, and a title in one line. Such content is stored without the text, as everything else that comes later.
"""

from dataclasses import replace

from pagein.model.versions import Draft
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.policy.privacy.erasure import retold, without_texts
from pagein.ports import BlobStore


class DraftRedaction:
    """Redacts drafts by the tombstones of a store. Costs nothing without tombstones."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._count = 0
        self._erased = ErasedTexts()

    def draft(self, draft: Draft) -> Draft:
        """Return a draft without erased texts; the same object if there are none."""
        finds = self._texts().finds
        if not self._erased.tombstones:
            return draft
        nickname = None if draft.nickname is None or finds(draft.nickname) else draft.nickname
        return replace(
            draft,
            content=self.text(draft.content),
            metadata={name: without_texts(value, finds) for name, value in draft.metadata.items()},
            additional={name: without_texts(value, finds) for name, value in draft.additional.items()},
            nickname=nickname,
            provenance=replace(draft.provenance, origin=retold(draft.provenance.origin, finds, {})),
        )

    def text(self, text: str | None) -> str | None:
        """Return a text without erased texts."""
        erased = self._texts()
        return text if text is None or not erased.tombstones else retold(text, erased.finds, {})

    def _texts(self) -> ErasedTexts:
        count = self._store.forgettings()
        if count != self._count:
            self._count, self._erased = count, ErasedTexts(self._store.secret(), self._store.tombstones())
        return self._erased

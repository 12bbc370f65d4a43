"""The state of a conversation after an entry of its journal. Immutable values."""

from dataclasses import dataclass, field, replace
from typing import Final

from pagein.memory.chat_pages import NO_PAGES, ChatPages
from pagein.model.entries import EntryId
from pagein.model.messages import Message, ToolCall
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.shared_collections import SharedMap
from pagein.model.versions import Version
from pagein.policy.clients.known_files import NO_TEXTS, KnownTexts


@dataclass(frozen=True, slots=True)
class ThreadState:
    """The state of a thread after an entry.

    name: id of its first message; "" before it.
    last: id of its last message.
    pages: the chat so far, as pages.
    chat: the newest version of its chat on this branch.
    title: the first words of the user in it.
    client: name of the client's profile; "" if no note told it yet.
    calls: calls without a result.
    texts: the content of files that the thread knows.
    user: reference to the words that began the turn.
    said: references to the words that the user said, by their hash.
    retells: whether the client goes on after a compaction, and may repeat what the user said before.
    answer: the answer to the last request, until a message follows.
    saved: the answer in the newest version of the chat.
    """

    name: EntryId = ""
    last: EntryId = ""
    pages: ChatPages = NO_PAGES
    chat: Version | None = None
    title: str = ""
    client: str = ""
    calls: SharedMap[ToolCall] = field(default_factory=SharedMap)
    texts: KnownTexts = NO_TEXTS
    user: Reference | None = None
    said: SharedMap[Reference] = field(default_factory=SharedMap)
    retells: bool = False
    answer: Message | None = None
    saved: Message | None = None

    def with_words(self, words: str, saved: Reference) -> "ThreadState":
        """Return the thread after words of the user, given their object."""
        return replace(self, user=saved, said=self.said.put(_hash_of(words), saved))

    def repeated(self, words: str) -> Reference | None:
        """Return the object of words that a client repeats after a compaction."""
        return self.said.get(_hash_of(words)) if self.retells else None

    @property
    def told(self) -> ChatPages:
        """The pages of the chat with the answer to the last request."""
        return self.pages if self.answer is None else self.pages.with_step(self.answer)

    @property
    def is_open(self) -> bool:
        """Whether steps of the chat are in no version of it."""
        return self.pages.unsaved > 0 or self.answer is not self.saved


def _hash_of(words: str) -> str:
    return ContentHash.of(words.encode("utf-8", "surrogatepass")).hex


START: Final = ThreadState()

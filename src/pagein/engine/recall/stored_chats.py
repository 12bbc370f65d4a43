"""Read chats of a store: turns, page by page, and the turn that a reference to a chat means.

A chat has the additional fields `turns.<turn>.<page>`, both numbers from 1. Only the first page of a turn has what was said.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.engine.recall.stored_fields import stored_bytes
from pagein.model.chats import ChatCall, ChatTurn, page_name, turns_from_value
from pagein.model.messages import Text
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.version_hash import decode_content, value_of
from pagein.model.versions import Version
from pagein.policy.clients.client_prompts import is_summary, user_words
from pagein.ports import ObjectStore

_LONGEST_WORDS: Final = 300
_PAGE: Final = re.compile(r"turns\.([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """A turn in a session, as a person knows it.

    session: name of the session; "" if unknown.
    agent: the client; "" if unknown.
    title: of the session.
    chat: id of the chat object.
    turn: number of the turn, from 1; None for the chat as a whole.
    said: words of the user that began the turn, in one line, shortened.
    """

    session: str
    agent: str
    title: str
    chat: str
    turn: int | None
    said: str


class TurnPlaces:
    """Finds the turns in which versions were made. Caches the chats, the sessions and the words."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._chats: dict[str, Version | None] = {}
        self._sessions: dict[str, Version | None] = {}
        self._targets: dict[Reference, Version | None] = {}
        self._said: dict[ContentHash, str] = {}

    def of(self, version: Version) -> TurnPlace | None:
        """Return the turn in which a version was made, or None."""
        return self.of_each([version])[0]

    def of_each(self, versions: Sequence[Version]) -> list[TurnPlace | None]:
        """Return the turn in which each version was made, or None. Reads the words of all turns together."""
        turns = [self._turn_of(one) for one in versions]
        self._read_words([words for _, _, words in turns if words is not None])
        return [
            None if chat is None else self._place(chat, turn, "" if words is None else self._said[words.name])
            for chat, turn, words in turns
        ]

    def place_in(self, chat: Version, turn: int | None) -> TurnPlace:
        """Return a turn of a chat."""
        words = _words_on_page(chat, turn)
        self._read_words([] if words is None else [words])
        return self._place(chat, turn, "" if words is None else self._said[words.name])

    def session_of(self, chat: Version) -> Version | None:
        """Return the session of a chat, or None."""
        reference = chat.metadata.get("session_ref")
        if not isinstance(reference, Reference):
            return None
        if reference.target not in self._sessions:
            self._sessions[reference.target] = self._store.current(reference.target)
        return self._sessions[reference.target]

    def _turn_of(self, version: Version) -> "tuple[Version | None, int | None, _StoredWords | None]":
        """Return the chat and the turn in which a version was made, and where the words that began the turn are."""
        reference = version.metadata.get("chat_ref", version.metadata.get("turn_ref"))
        if not isinstance(reference, Reference):
            return None, None, None
        if reference.target not in self._chats:
            self._chats[reference.target] = self._store.current(reference.target)
        chat = self._chats[reference.target]
        told = version.metadata.get("turn")
        turn = told if isinstance(told, int) else turn_in(reference.field)
        if chat is None or turn is None:
            return chat, turn, None
        asked = version.metadata.get("user_ref")
        user = self._target(asked) if isinstance(asked, Reference) else None
        if user is not None and user.content_hash is not None and _began(user, reference.target, turn):
            return chat, turn, _StoredWords(user.content_hash)
        then = self._target(Reference(reference.target, reference.pin))
        return chat, turn, None if then is None else _words_on_page(then, turn)

    def _target(self, reference: Reference) -> Version | None:
        if reference not in self._targets:
            self._targets[reference] = getattr(self._store.resolve(reference), "version", None)
        return self._targets[reference]

    def _place(self, chat: Version, turn: int | None, said: str) -> TurnPlace:
        session = self.session_of(chat)
        known = {} if session is None else session.metadata
        name, agent, title = (_text(known.get(key)) for key in ("session_id", "harness", "title"))
        return TurnPlace(name, agent, title or _text(chat.metadata.get("title")), chat.id, turn, said)

    def _read_words(self, wanted: "Sequence[_StoredWords]") -> None:
        """Read words that are not known yet. Raises StoreError."""
        missing = {one.name: one for one in wanted if one.name not in self._said}
        for name, stored in stored_bytes(self._store, missing).items():
            self._said[name] = _shortened(" ".join(_words_in(missing[name], stored).split()))


@dataclass(frozen=True, slots=True)
class _StoredWords:
    """Where words of the user are.

    name: hash of a content, or of the page of a turn
    """

    name: ContentHash
    is_page: bool = False


def _began(words: Version, chat: str, turn: int) -> bool:
    """Return whether words of the user began this turn; a turn may have none, and stand behind the words of an earlier one."""
    where = words.metadata.get("chat_ref")
    return isinstance(where, Reference) and where.target == chat and words.metadata.get("turn") == turn


def _words_on_page(chat: Version, turn: int | None) -> _StoredWords | None:
    name = None if turn is None else chat.additional.get(page_name(turn, 1))
    return None if name is None else _StoredWords(name, is_page=True)


def _words_in(words: _StoredWords, stored: bytes) -> str:
    if not words.is_page:
        return decode_content(stored)
    begun = turns_from_value(value_of(stored))
    return " ".join(filter(None, (user_words(message) for one in begun for message in one.said)))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_WORDS else text[: _LONGEST_WORDS - 1] + "…"


def turn_in(field: str | None) -> int | None:
    """Return the turn around a field of a chat, or around a place in a field."""
    found = None if field is None else _PAGE.search(field)
    return None if found is None else int(found[1])


def pages_by_turn(chat: Version) -> dict[int, list[str]]:
    """Return the fields of each turn of a chat, both in order."""
    found = sorted(
        (int(match[1]), int(match[2]), name) for name in chat.additional if (match := _PAGE.fullmatch(name)) is not None
    )
    turns: dict[int, list[str]] = {}
    for turn, _, name in found:
        turns.setdefault(turn, []).append(name)
    return turns


def read_turns(
    store: ObjectStore, chat: Version, first: int = 1, last: int | None = None
) -> Iterator[tuple[int, ChatTurn]]:
    """Read turns of a chat, one after another, with their numbers. Raises DamagedBlob, and BadInput for turns in another form."""
    for turn, fields in pages_by_turn(chat).items():
        if turn >= first and (last is None or turn <= last):
            pages = [page for field in fields for page in turns_from_value(store.additional(chat, field))]
            said = tuple(message for page in pages for message in page.said)
            yield turn, ChatTurn(said, tuple(step for page in pages for step in page.steps))


def later_calls(store: ObjectStore, chat: Version) -> tuple[ChatCall, ...]:
    """Return the calls of a chat's last turn after its newest version; no calls for an older version.

    A version holds several steps, so the last calls of a conversation may be in their own objects alone.
    """
    newest = store.current(chat.id)
    if newest is None or newest.number != chat.number:
        return ()
    links = store.backlinks(chat.id, pinned=chat.object_hash)
    calls = [one.source for one in links if one.source.type == "toolcall" and one.path == "/metadata/chat_ref"]
    calls.sort(key=lambda one: (_count(one, "place"), one.sequence))
    return tuple(_as_step(one) for one in calls)


def _as_step(call: Version) -> ChatCall:
    known = call.metadata
    texts = [str(known.get(name) or "") for name in ("tool", "args_display", "status")]
    return ChatCall(call.id, texts[0], texts[1], texts[2], call.static(relation="call"))


def main_chat(store: ObjectStore, chats: Sequence[Version]) -> int:
    """Return the place of the main conversation among the chats of a session, given in the order of their beginnings.

    The main conversation begins before the sub-agents that it starts, and calls tools. A side call that only makes a title, or
    asks for a quota, calls none. Without any call of a tool, it is the longest.
    """
    if len(chats) > 1:
        for place, chat in enumerate(chats):
            if any(isinstance(step, ChatCall) for _, turn in read_turns(store, chat) for step in turn.steps):
                return place
    return max(range(len(chats)), key=lambda place: _count(chats[place], "step_count"), default=0)


def later_chats(store: ObjectStore, chats: Sequence[Version], main: int) -> list[int]:
    """Return the places of the chats in which the main conversation went on after a compaction, in order.

    Such a chat begins with the summary that the client hands over.
    """
    return [place for place in range(main + 1, len(chats)) if _begins_with_summary(store, chats[place])]


def _begins_with_summary(store: ObjectStore, chat: Version) -> bool:
    for _, turn in read_turns(store, chat):
        said = (block for message in turn.said for block in message.blocks)
        if any(isinstance(block, Text) and is_summary(block.text) for block in said):
            return True
        if turn.steps:
            return False
    return False


def _count(version: Version, name: str) -> int:
    value = version.metadata.get(name)
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

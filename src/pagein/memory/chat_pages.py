"""The chat of a thread, in pages, as the entries of a journal extend it. Immutable values and pure functions.

Rules of this file
------------------
1. A turn begins with words of the user. Texts that the client adds beside results do not begin a turn.
2. A page holds at most `PAGE_STEPS` steps of one turn. Only the last page grows, so a version costs what is new.
3. The outputs of calls are in the objects of the calls, and so are their arguments. Pictures stay in the journal.
"""

from dataclasses import dataclass, replace
from typing import Final

from pagein.model.chats import PAGE_STEPS, ChatTurn, Step, page_name, turns_to_value
from pagein.model.messages import Block, Image, Message, Text, ToolCall, ToolResult
from pagein.model.values import Value
from pagein.policy.clients.client_prompts import user_words

STEPS_OF_VERSION: Final = 8
"""Steps after which a chat gets a version within a turn."""
_LONGEST_ARGUMENTS: Final = 200


@dataclass(frozen=True, slots=True)
class ChatPages:
    """The last page of a chat, and the place in the chat.

    turn, page: numbers of the last page, from 1; 0 before the first turn.
    said: what began the turn, on its first page.
    steps: steps on the last page.
    place: steps of the turn so far.
    count: steps of the chat so far.
    unsaved: steps since the last version.
    changed: pages that changed since the last version, with their values; not the last page.
    """

    turn: int = 0
    page: int = 1
    said: tuple[Message, ...] = ()
    steps: tuple[Step, ...] = ()
    place: int = 0
    count: int = 0
    unsaved: int = 0
    changed: tuple[tuple[str, Value], ...] = ()

    @property
    def name(self) -> str:
        """The name of the field with the last page."""
        return page_name(self.turn, self.page)

    @property
    def value(self) -> Value:
        """The value of the last page."""
        return turns_to_value((ChatTurn(self.said if self.page == 1 else (), self.steps),))

    @property
    def is_due(self) -> bool:
        """Whether the chat has enough new steps for a version."""
        return self.unsaved >= STEPS_OF_VERSION

    def fields(self) -> dict[str, Value]:
        """Return the pages changed since the last version."""
        return {**dict(self.changed), **({self.name: self.value} if self.turn else {})}

    def after_version(self) -> "ChatPages":
        """Return the same pages, all in the last version."""
        return replace(self, unsaved=0, changed=())

    def with_said(self, message: Message, *, has_words: bool) -> "ChatPages":
        """Return the chat after a message at the beginning of a turn, before the first step.

        has_words: whether the message has words of the user. Words after words begin another turn: a client repeats the
        words of earlier turns after a compaction.
        """
        is_asked = has_words and any(map(user_words, self.said))
        if self.turn and not self.place and not is_asked:
            return replace(self, said=(*self.said, message), unsaved=self.unsaved + 1)
        kept = _with_page_kept(self) if self.turn else self
        return replace(kept, turn=self.turn + 1, page=1, said=(message,), steps=(), place=0, unsaved=self.unsaved + 1)

    def with_step(self, step: Step) -> "ChatPages":
        """Return the chat after another step of the turn."""
        pages = self if self.turn else replace(self, turn=1)
        if len(pages.steps) >= PAGE_STEPS:
            pages = replace(_with_page_kept(pages), page=pages.page + 1, steps=())
        return replace(
            pages,
            steps=(*pages.steps, step),
            place=pages.place + 1,
            count=pages.count + 1,
            unsaved=pages.unsaved + 1,
        )


NO_PAGES: Final = ChatPages()


def _with_page_kept(pages: ChatPages) -> ChatPages:
    """Return the chat before its next page begins."""
    return replace(pages, changed=(*pages.changed, (pages.name, pages.value)))


def without_results(message: Message) -> Message | None:
    """Return a message without results, in the form for a chat; None for a message of results alone."""
    results = any(isinstance(block, ToolResult) for block in message.blocks)
    blocks = tuple(_in_chat(block) for block in message.blocks if not isinstance(block, ToolResult))
    if not blocks and results:
        return None
    return Message(message.role, blocks, message.at, message.model, message.usage, message.stop, message.id)


def without_pictures(message: Message) -> Message:
    """Return a message without pictures. Calls keep the complete arguments, which no object stores yet."""
    blocks = (replace(one, data=None) if isinstance(one, Image) else one for one in message.blocks)
    return replace(message, blocks=tuple(blocks))


def words_of(message: Message) -> str:
    """Return the texts of a message, with single spaces, to compare an answer with what the client sends back."""
    return " ".join(" ".join(block.text for block in message.blocks if isinstance(block, Text)).split())


def _in_chat(block: Block) -> Block:
    if isinstance(block, ToolCall):
        return replace(block, arguments=shortened(block.arguments), accesses=())
    if isinstance(block, Image):
        return replace(block, data=None)
    return block


def shortened(text: str) -> str:
    """Return arguments, shortened for a chat."""
    return text if len(text) <= _LONGEST_ARGUMENTS else text[: _LONGEST_ARGUMENTS - 1] + "…"

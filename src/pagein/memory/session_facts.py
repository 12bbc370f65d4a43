"""Facts of a session beside its messages: the client, the models, the folder, the threads."""

import re
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.messages import Message, Text

_FOLDER: Final = re.compile(r"<cwd>\s*(/[^<\n]{0,1000}?)\s*</cwd>")
_LONGEST_TITLE: Final = 120


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is known of a session so far.

    harness: name of the client, "" if unknown.
    folder: its working folder, "" if unknown.
    title: the first words of the user.
    models: in the order of their first use.
    chats: ids of the chats of its threads, in the order of their beginnings.
    parent: name of the session that started this one, "" for none.
    """

    harness: str = ""
    folder: str = ""
    title: str = ""
    models: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    parent: str = ""

    def with_message(self, message: Message, words: str) -> "SessionFacts":
        """Return the facts after a message.

        words: the words of the user in it.
        """
        facts = self
        if words and not facts.title:
            facts = replace(facts, title=title_of(words))
        if message.model and message.model not in facts.models:
            facts = replace(facts, models=(*facts.models, message.model))
        if not facts.folder and message.role == "user" and (folder := _folder_in(message)):
            facts = replace(facts, folder=folder)
        return facts


def title_of(words: str) -> str:
    """Return the first words of a text, in one line."""
    line = " ".join(words[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"


def _folder_in(message: Message) -> str:
    """Return the working folder that a client names in its first message; "" if it does not."""
    texts = (block.text for block in message.blocks if isinstance(block, Text))
    return next((found[1] for text in texts if (found := _FOLDER.search(text))), "")

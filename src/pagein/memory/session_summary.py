"""Summary of a session beside its messages: the client, the models, the folder, the threads."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.memory_notes import RecordedNote
from pagein.model.messages import Message, Text

_FOLDER: Final = re.compile(
    r"<cwd>[ \t]*(/[^<\n]{0,1000})</cwd>|^[ \t*-]{0,8}(?:[A-Z][a-z]{1,12} )?[Ww]orking directory: (/[^\n]{0,1000})$",
    re.MULTILINE,
)
"""Where clients name the working folder: codex in a first message, Claude Code, opencode and pi in the system prompt."""
_LONGEST_TITLE: Final = 120


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """The client, title, models and threads of a session so far.

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

    @property
    def client(self) -> str:
        """The name of the client's profile: the first part of the harness's name."""
        return self.harness.partition("/")[0]

    def with_recording(self, note: RecordedNote) -> "SessionSummary":
        """Return the summary with the facts of a recording."""
        return replace(
            self,
            harness=self.harness or note.agent,
            folder=self.folder or note.cwd,
            parent=self.parent or note.parent,
        )

    def with_message(self, message: Message, words: str) -> "SessionSummary":
        """Return the summary after a message.

        words: the words of the user in it.
        """
        summary = self
        if words and not summary.title:
            summary = replace(summary, title=title_of(words))
        summary = summary.with_model(message.model or "")
        if message.role == "user":
            summary = summary.with_folder(block.text for block in message.blocks if isinstance(block, Text))
        return summary

    def with_model(self, model: str) -> "SessionSummary":
        """Return the summary after a call of a model. A name in angle brackets is a client's own text."""
        if not model or model in self.models or model.startswith("<"):
            return self
        return replace(self, models=(*self.models, model))

    def with_folder(self, texts: Iterable[str]) -> "SessionSummary":
        """Return the summary with the working folder named in a client's own text, unless the folder is known."""
        if self.folder:
            return self
        found = next((match for text in texts if (match := _FOLDER.search(text))), None)
        return self if found is None else replace(self, folder=found[1] or found[2])


def title_of(words: str) -> str:
    """Return the first words of a text, in one line."""
    line = " ".join(words[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"

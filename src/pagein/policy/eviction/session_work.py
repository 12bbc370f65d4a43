"""The work of a session: the kind of task that the person asked for, and counts of accesses and edits.

Rules of this file
------------------
1. A *reading* task asks to look at something: review, explore, explain. A *changing* task asks to change something. The
   first of the person's words that is in one of the lists decides. The lists are English: other words say nothing,
   and then the other rows of the residency table decide.
2. Text that a client puts around the person's words says nothing about the task, and begins none.
"""

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

TaskKind: TypeAlias = Literal["", "reading", "changing"]
"""Kind of a task by the person's words; "": they do not tell."""

NEVER: Final = -1

_WORD: Final = re.compile("[a-z]+")
_READING: Final = frozenset(
    _WORD.findall(
        "review reviewer reviewing explore investigate analyze analyse understand explain research audit find verify check "
        "confirm report summarize describe identify search inspect examine why how what"
    )
)
_CHANGING: Final = frozenset(
    _WORD.findall(
        "implement implementing fix add change update remove refactor write create rename replace modify delete move make "
        "build improve convert migrate edit apply address resolve do use rewrite merge commit push introduce extract "
        "simplify clean continue proceed go yes install bump port adjust execute run"
    )
)
_OPENING: Final = re.compile(
    "<(system-reminder|environment_context|user_instructions|INSTRUCTIONS|local-command-caveat|ide_opened_file|ide_selection"
    "|current_datetime)>"
)
_AGENTS_FILE: Final = "# AGENTS.md instructions"
_MOST_CHARS: Final = 3_000


@dataclass(frozen=True, slots=True)
class SessionWork:
    """The work of a session up to a call.

    task: the first call of the current task.
    first, kind: kinds of the first task and of the current one.
    accesses: accesses to files, also those that failed. edits: those that changed a file.
    edited: call that first saw the last edit.
    is_asked: whether a person has spoken.
    only_reads: whether the session was asked to read, from the beginning until now, and has changed no file.
    """

    task: int = 0
    first: TaskKind = ""
    kind: TaskKind = ""
    accesses: int = 0
    edits: int = 0
    edited: int = NEVER
    is_asked: bool = False
    only_reads: bool = False

    def with_edit(self, call: int) -> "SessionWork":
        """Count an access that changed a file, first seen by call number `call`."""
        return replace(self, accesses=self.accesses + 1, edits=self.edits + 1, edited=call, only_reads=False)

    def with_task(self, call: int, words: str) -> "SessionWork":
        """Begin a task at call number `call`, with the person's words; "" where they are not known any more."""
        if not words:
            return replace(self, task=call)
        kind = task_kind(words)
        first = self.first if self.is_asked else kind
        only_reads = first == kind == "reading" and not self.edits
        return replace(self, task=call, first=first, kind=kind, is_asked=True, only_reads=only_reads)


def words_of_person(text: str) -> str:
    """Return a person's words without the client's text around them; "" for a text of the client alone.

    Takes linear time: an end that is missing once is not looked for again.
    """
    if text.startswith(_AGENTS_FILE):
        return ""
    kept, begin, endless = list[str](), 0, set[str]()
    for opening in _OPENING.finditer(text):
        if opening.start() < begin or opening[1] in endless:
            continue
        end = text.find(f"</{opening[1]}>", opening.end())
        if end < 0:
            endless.add(opening[1])
            continue
        kept.append(text[begin : opening.start()])
        begin = end + len(opening[1]) + len("</>")
    return " ".join((*kept, text[begin:])).strip()


def task_kind(words: str) -> TaskKind:
    """Return the kind of task that a person's words ask for."""
    for word in _WORD.finditer(words[:_MOST_CHARS].lower()):
        if word[0] in _READING:
            return "reading"
        if word[0] in _CHANGING:
            return "changing"
    return ""

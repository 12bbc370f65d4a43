"""Notes about memory: names and views given by people, and recordings taken into the store."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

SightingOp: TypeAlias = Literal["seen", "change", "move", "delete"]
"""What a sighting tells of a file: its text, a change that no call explains, another path, or its end."""

# --- orders about stored objects ---


@dataclass(frozen=True, slots=True)
class ObjectNameNote:
    """A person gave an object a nickname.

    object_id: id of the object.
    nickname: None if the object has none from here on.
    """

    object_id: str
    nickname: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectViewNote:
    """A person chose the fields of an object's metadata view.

    object_id: id of the object.
    fields: None for the fields of its type.
    """

    object_id: str
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ChatSummaryNote:
    """Someone had a chat summarised.

    object_id: id of the chat.
    long, short: the summaries.
    turns: number of turns that they cover.
    """

    object_id: str
    long: str
    short: str
    turns: int


@dataclass(frozen=True, slots=True)
class OpenChatsNote:
    """Someone asked for the objects while the newest steps of a session were in no version of its chats: they get one here.

    session: name of the session.
    """

    session: str


@dataclass(frozen=True, slots=True)
class AnswerNote:
    """A request was answered: the answer as its client saw it, until the next request has it as a message.

    message: JSON text of the message, as `model.codec` writes it; without signatures of thinking.
    """

    message: str


# --- recordings ---


@dataclass(frozen=True, slots=True)
class RecordedNote:
    """The journal was made from the recording of an agent. The first entry of such a journal.

    It holds only what stays the same while the recording grows or is moved, because all later entries are named after
    it.

    agent: name of the agent, such as `claude-code`, with `/subagent` for a sub-agent.
    cwd: the folder that the agent worked in; "" if unknown.
    parent: name of the session that started this one as a sub-agent; "" for none.
    """

    agent: str = ""
    cwd: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True)
class RememberedNote:
    """All sessions in a file are in the store, as the file was then.

    file: path of the file.
    member: id of a session in a database; "" for the whole file.
    stamp: size and time of the file, or time of the session in the database.
    sessions: names of the sessions.
    """

    file: str = ""
    member: str = ""
    stamp: str = ""
    sessions: tuple[str, ...] = ()


# --- files on the disk ---


@dataclass(frozen=True, slots=True)
class SessionPlaceNote:
    """The agent of a session works on this machine.

    session: name of the session.
    machine: id of the machine, as in the home of its files.
    folder: its working folder; "" if unknown.
    follows: whether the files that the session touches are followed on the disk from here on.
    """

    session: str
    machine: str
    folder: str = ""
    follows: bool = False


@dataclass(frozen=True, slots=True)
class FileSightingNote:
    """A look at a followed file on the disk found a state that no call of a session explains.

    machine: id of the machine. path: of the file.
    op: what was found.
    before: the path of a moved file until then; "" for none.
    content: hash of its text; "" for a deleted file, and for a file whose text is not stored.
    digest, size: hash and number of its bytes; "" and 0 for a deleted file.
    is_by_person: whether no agent of the gateway was at work when the file changed, and the user settled that such a
        change is a person's.
    """

    machine: str
    path: str
    op: SightingOp
    before: str = ""
    content: str = ""
    digest: str = ""
    size: int = 0
    is_by_person: bool = False

"""Sessions as objects of a store: chats by pages, the user's words, tool calls and files, each in versions."""

from dataclasses import dataclass, field

from pagein.model.chats import PAGE_STEPS, ChatCall, ChatTurn, Step, page_name, turns_to_value
from pagein.model.messages import Message, Text
from pagein.model.references import Reference
from pagein.model.versions import Draft, Provenance, Version, Writer
from pagein.model.writes import Write, Written
from pagein.ports import ObjectStore
from pagein.testing.object_drafts import object_number


def said(text: str) -> Message:
    return Message("user", (Text(text),))


def answered(text: str) -> Message:
    return Message("assistant", (Text(text),))


@dataclass
class Remembered:
    """A session whose objects are in a store.

    at: time of the next write
    """

    store: ObjectStore
    name: str
    harness: str = "claude-code"
    number: int = 1
    at: float = 1_700_000_000.0
    turns: list[ChatTurn] = field(default_factory=list)
    writes: int = 0

    def __post_init__(self) -> None:
        self.session, self.chat = object_number(self.number * 100), object_number(self.number * 100 + 1)
        metadata = {
            "session_id": self.name,
            "harness": self.harness,
            "chat_ref": Reference(self.chat),
            "chats": (Reference(self.chat),),
            "title": "",
            "models": ("claude-opus-4-5",),
        }
        self.put(Draft(id=self.session, type="session", metadata=metadata, provenance=Provenance(self.name, "system")))

    def put(self, draft: Draft) -> Version:
        self.writes += 1
        self.at += 1
        writer = Writer("index", "session", self.name)
        done = self.store.write(Write(f"{self.name}/{self.writes}", draft, self.at, writer=writer))
        assert isinstance(done, Written), done
        return done.version

    def say(self, text: str, *steps: Step) -> Version:
        """The user says something, and the assistant answers with these steps."""
        self.turns.append(ChatTurn((said(text),), steps))
        version = self.keep()
        number = object_number(self.number * 100 + 10 + len(self.turns))
        metadata = {"chat_ref": version.static(), "turn": len(self.turns)}
        self.put(Draft(id=number, type="user", content=text, metadata=metadata, provenance=Provenance("user", "human")))
        return version

    def go_on(self, *steps: Step) -> Version:
        """The assistant goes on in the last turn."""
        last = self.turns[-1]
        self.turns[-1] = ChatTurn(last.said, (*last.steps, *steps))
        return self.keep()

    def keep(self) -> Version:
        pages = {}
        for number, turn in enumerate(self.turns, start=1):
            for page, start in enumerate(range(0, max(len(turn.steps), 1), PAGE_STEPS), start=1):
                part = ChatTurn(turn.said if page == 1 else (), turn.steps[start : start + PAGE_STEPS])
                pages[page_name(number, page)] = turns_to_value([part])
        metadata = {"session_ref": Reference(self.session), "turn_count": len(self.turns), "title": ""}
        origin = Provenance(self.name, "system")
        return self.put(Draft(id=self.chat, type="chat", metadata=metadata, additional=pages, provenance=origin))

    def call(self, call_id: str, tool: str, args: dict[str, object], result: str, place: int) -> ChatCall:
        """A tool call of the last turn: its object, and the step for the chat."""
        chat = self.store.current(self.chat)
        assert chat is not None
        turn = len(self.turns)
        metadata = {
            "tool": tool,
            "args_display": str(args),
            "status": "ok",
            "chat_ref": chat.static(page_name(turn, place // PAGE_STEPS + 1)),
            "turn": turn,
            "place": place,
        }
        origin = Provenance("toolcall", "tool")
        draft = Draft(
            id=call_id, type="toolcall", content=result, metadata=metadata, additional={"args": args}, provenance=origin
        )
        made = self.put(draft)
        return ChatCall(call_id, tool, str(args), "ok", made.static())

    def file(self, number: int, path: str, content: str | None, deed: str = "write") -> Version:
        chat = self.store.current(self.chat)
        assert chat is not None
        metadata = {
            "path": path,
            "file_type": "python",
            "known": "whole",
            "op": deed,
            "turn_ref": chat.static(page_name(max(len(self.turns), 1), 1)),
        }
        return self.put(Draft(id=object_number(9000 + number), type="file", content=content, metadata=metadata))

"""Objects as the indexer of journals makes them, written by hand: sessions with chats, calls, and the files they touched."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pagein.model.chats import ChatCall, ChatTurn, Step, turns_to_value
from pagein.model.identifiers import uuid7
from pagein.model.messages import Message, Text, Thinking, ToolCall
from pagein.model.references import Reference
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Write, Written
from pagein.ports import ObjectStore

HOUR = 3600.0


def made_id(at: float, *key: str) -> str:
    return uuid7(int(at * 1000), hashlib.sha256("\n".join(key).encode()).digest()[:10])


@dataclass
class MadeSession:
    """A session that is told to the store step by step. Each step takes a second."""

    store: ObjectStore
    name: str
    at: float
    harness: str = "claude-code"
    title: str = ""
    cwd: str | None = "/w"
    parent: str | None = None
    model: str = "claude-opus-4-6"
    threads: list["MadeThread"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = made_id(self.at, "session", self.name)

    def thread(self, title: str = "") -> "MadeThread":
        """A further conversation of the session."""
        number = len(self.threads) + 1
        self.threads.append(MadeThread(self, made_id(self.at, "chat", self.name, str(number)), title or self.title))
        self.put(
            Draft(
                id=self.id,
                type="session",
                metadata={
                    "session_id": self.name,
                    "harness": self.harness,
                    "chat_ref": Reference(self.threads[0].id),
                    "chats": [Reference(one.id) for one in self.threads],
                    "title": self.title,
                    "models": [self.model],
                    **({} if self.cwd is None else {"cwd": self.cwd}),
                    **({} if self.parent is None else {"parent": self.parent}),
                },
            )
        )
        return self.threads[-1]

    def put(self, draft: Draft) -> Version:
        """Write a version at the time of the session, as the indexer does."""
        self.at += 1.0
        request = f"{self.name} {self.at} {draft.id}"
        outcome = self.store.write(Write(request, draft, self.at, writer=Writer("index", "message", self.name)))
        assert isinstance(outcome, Written), outcome
        return outcome.version


@dataclass
class MadeThread:
    """A conversation of a session."""

    session: MadeSession
    id: str
    title: str
    turns: list[tuple[list[Message], list[Step]]] = field(default_factory=list)
    version: Version | None = None

    def say(self, text: str) -> None:
        """A message of the user: the next turn."""
        self.turns.append(([Message("user", (Text(text),), at=self.session.at)], []))
        self.keep()
        number = len(self.turns)
        user = made_id(self.session.at, "user", self.id, str(number))
        self.session.put(Draft(id=user, type="user", content=text, metadata={"chat_ref": self.here(), "turn": number}))

    def answer(self, text: str, thinking: str = "") -> None:
        """An answer without calls."""
        thought = (Thinking(thinking),) if thinking else ()
        self.turns[-1][1].append(Message("assistant", (*thought, Text(text)), at=self.session.at))
        self.keep()

    def call(
        self,
        call_id: str,
        tool: str,
        args: str,
        output: str,
        *,
        status: str = "ok",
        files: Mapping[str, str] | None = None,
    ) -> None:
        """A call of a tool. files: from the relation to the id of a file."""
        steps = self.turns[-1][1]
        steps.append(Message("assistant", (ToolCall(call_id, tool, args),), at=self.session.at))
        refs = [Reference(name, relation=relation) for relation, name in (files or {}).items()]
        metadata = {"tool": tool, "args_display": args[:200], "status": status, "chat_ref": self.here()}
        place = {"turn": len(self.turns), "place": len(steps), "file_refs": refs}
        made = self.session.put(Draft(id=call_id, type="toolcall", content=output, metadata={**metadata, **place}))
        steps.append(ChatCall(call_id, tool, args[:200], status, made.static()))

    def file(
        self,
        path: str,
        content: str | None,
        deed: str,
        *,
        known: str = "whole",
        spans: Sequence[Sequence[int]] = (),
        name: str = "",
        type_: str = "file",
    ) -> str:
        """A version of a file, seen or made in this turn. Returns the id."""
        object_id = file_id(name or path)
        metadata = {"path": path, "file_type": "python", "known": known, "turn_ref": self.here(), "op": deed}
        more = {"spans": [list(one) for one in spans]} if known == "part" else {}
        self.session.put(Draft(id=object_id, type=type_, content=content, metadata={**metadata, **more}))
        return object_id

    def here(self) -> Reference:
        """A static reference to the turn."""
        assert self.version is not None
        return self.version.static(f"turns.{len(self.turns)}.1")

    def keep(self) -> None:
        """Write a version of the chat."""
        fields = {
            f"turns.{number}.{page // 32 + 1}": turns_to_value(
                [ChatTurn(tuple(said) if page == 0 else (), tuple(steps[page : page + 32]))]
            )
            for number, (said, steps) in enumerate(self.turns, start=1)
            for page in range(0, max(len(steps), 1), 32)
        }
        steps = sum(len(steps) for _, steps in self.turns)
        metadata = {
            "session_ref": Reference(self.session.id),
            "turn_count": len(self.turns),
            "step_count": steps,
            "title": self.title,
        }
        self.version = self.session.put(Draft(id=self.id, type="chat", metadata=metadata, additional=fields))


def file_id(path: str) -> str:
    return made_id(1_700_000_000.0, "file", path)

"""Stories of a session, told as the entries of its branch."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pagein.model.entries import Body, CompactionEntry, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import ClientNote, PinNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.pins import Act, Wish
from pagein.model.pool_notes import PoolAct, PoolNote
from pagein.policy.pools.pool_fold import PoolFold, PoolWalk
from pagein.policy.pools.pool_values import PoolRules, PoolState

HOME = "/repo"


@dataclass
class Story:
    """A branch in the making. Each step adds entries."""

    rules: PoolRules = field(default_factory=PoolRules)
    client: str = "pi"
    bodies: list[Body] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bodies.append(NoteEntry.of(ClientNote(self.client)))

    def says(self, words: str = "Go on.") -> "Story":
        self.bodies.append(MessageEntry(Message("user", (Text(words),))))
        return self

    def calls(
        self, call_id: str, tool: str = "bash", output: str = "out", *, fails: bool = False, **arguments: object
    ) -> "Story":
        call = ToolCall(call_id, tool, json.dumps(arguments))
        self.bodies.append(MessageEntry(Message("assistant", (call,))))
        self.bodies.append(MessageEntry(Message("tool", (ToolResult(call_id, output, tool, fails),))))
        return self

    def acts(self, *acts: PoolAct) -> "Story":
        self.bodies.append(NoteEntry.of(PoolNote(acts)))
        return self

    def hand(self, act: Act, object_id: str) -> "Story":
        self.bodies.append(NoteEntry.of(PinNote(Wish(act, object_id).at(str(len(self.bodies))))))
        return self

    def asks(self) -> "Story":
        self.bodies.append(RequestSent(0, self.state.messages))
        return self

    def compacts(self, kept: int = 0) -> "Story":
        self.bodies.append(CompactionEntry(kept))
        return self

    @property
    def fold(self) -> PoolFold:
        return PoolFold("story", rules=self.rules)

    @property
    def walk(self) -> PoolWalk:
        return self.fold.walk(self.bodies, HOME)

    @property
    def state(self) -> PoolState:
        return self.walk.state

    def walks(self) -> Iterator[PoolWalk]:
        """Yield the walk at each entry, one step at a time."""
        walk = self.fold.start(HOME)
        for body in self.bodies:
            walk = self.fold.step(walk, body)
            yield walk

    def file(self, path: str) -> str:
        """The id of a file."""
        return self.fold.file_id(self.walk, f"{HOME}/{path}")


def ids(state: PoolState) -> Sequence[str]:
    """The ids of the active objects, in their order."""
    return [one.id for one in state.active]

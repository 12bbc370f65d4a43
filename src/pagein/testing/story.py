"""A recorded session described in a few lines: calls, results of a given size, pauses. For tests of replays."""

from dataclasses import dataclass, field

from pagein.model.messages import Block, Message, Recorded, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.prompt.billable_session import BillableSession, record
from pagein.replay.prompt.model_calls import RecordedCalls, gather
from pagein.replay.prompt.prompt_sizes import SourceFacts
from pagein.replay.record.recorded_session import SessionHead

RATIO = 2.0  # characters per token in these stories, so that sizes are easy to check
FLOOR = 2000.0


@dataclass
class Story:
    """Builds a recorded session; every size is in tokens."""

    entries: list[Recorded] = field(default_factory=list)
    now: float = 0.0
    made: int = 0
    model: str = "claude-opus-4-6"
    thoughts: tuple[Block, ...] = ()

    def asks(self, text: str = "please go on") -> "Story":
        self.entries.append(Message("user", (Text(text),), at=self.now))
        return self

    def thinks(self) -> "Story":
        """Let the model think before its next message; the usage of this message gives the length."""
        self.thoughts = (Thinking("", "signed"),)
        return self

    def works(self, *results: int | str, wait: float = 10.0, args: str = "{}", usage: Usage | None = None) -> "Story":
        """Add one model call with one tool call per result; a number makes a result of this many tokens."""
        ids = [f"call-{self.made + i}" for i in range(len(results))]
        self.made += len(results)
        said = (*self.thoughts, *(ToolCall(name, "Bash", args) for name in ids))
        self.thoughts = ()
        self.entries.append(Message("assistant", said, at=self.now, model=self.model, usage=usage, stop="tool_use"))
        self.now += wait
        for name, result in zip(ids, results, strict=True):
            text = result if isinstance(result, str) else filler(name, result)
            self.entries.append(Message("tool", (ToolResult(name, text, "Bash"),), at=self.now))
        return self

    def says(self, text: str = "done", usage: Usage | None = None) -> "Story":
        said, self.thoughts = (*self.thoughts, Text(text)), ()
        self.entries.append(Message("assistant", said, at=self.now, model=self.model, usage=usage))
        return self

    def waits(self, seconds: float) -> "Story":
        self.now += seconds
        return self

    def calls(self) -> RecordedCalls:
        return gather(self.entries)

    def recording(self, charged: Prices | None = None) -> BillableSession:
        facts = SourceFacts({"main": FLOOR}, FLOOR, 0.0)
        head = SessionHead("story", "tests", "claude-code", "story.jsonl")
        return record(head, self.calls(), facts, RATIO, charged or prices("generic:r=.1,w=1.25"))


def filler(name: str, tokens: int) -> str:
    """Return a text of this size with lines found nowhere else."""
    words = " ".join(f"{name}.{i}" for i in range(int(tokens * RATIO)))
    return words[: int(tokens * RATIO)]

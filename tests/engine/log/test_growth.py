"""Results that one request brings: a cache may have entries only in front of all of them."""

from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.model.entries import MessageEntry
from pagein.model.messages import FileAccess, Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.residency import Residency

RULES = Rules(Residency())


def said(state: State, message: Message, *results: int) -> State:
    return step(state, MessageEntry(message, results, 10 + sum(results)), RULES)


def read(name: str) -> ToolCall:
    return ToolCall(name, "Read", "{}", (FileAccess("read", f"{name}.py"),))


def result(name: str) -> Message:
    return Message("tool", (ToolResult(name, "line\n" * 800),))


def test_results_that_came_together_are_written_again_from_the_first_of_them() -> None:
    state = said(START, Message("user", (Text("go"),)))
    state = said(state, Message("assistant", (read("a"), read("b"))))
    state = said(said(state, result("a"), 900), result("b"), 900)
    state = said(state, Message("assistant", (read("c"),)))
    state = said(state, result("c"), 900)
    state = said(state, Message("assistant", (Text("done"),)))
    state = said(state, Message("user", (Text("thanks"),)))
    before = {one.call_id: one.before for one in state.standing.all()}
    assert before["a"] == before["b"] == 20
    assert before["c"] == 20 + 2 * 910 + 10

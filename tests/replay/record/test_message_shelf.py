"""Messages on disk: they come back equal, and memory does not grow with them."""

import gc
import tracemalloc
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.model.messages import (
    Block,
    FileAccess,
    Image,
    Message,
    Other,
    Recorded,
    ShownLines,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from pagein.replay.prompt.model_calls import gather
from pagein.replay.record.message_shelf import Messages

texts = st.text(st.characters(), max_size=40) | st.just("\ud800 half a letter")
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, texts, st.none() | texts),
    st.builds(Thinking, texts, st.none() | texts, st.booleans()),
    st.builds(ToolCall, texts, texts, texts, st.just((FileAccess("read", "a.py", 1, None, "shell"),))),
    st.builds(ToolResult, texts, texts, texts, st.booleans(), st.just(()), st.none() | st.just(ShownLines(1, 2, None))),
    st.builds(Image, texts, st.integers(0, 10)),
    st.builds(Other, texts, texts),
)
messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.lists(blocks, max_size=4).map(tuple),
    st.none() | st.floats(0, 2e9),
    st.none() | texts,
    st.none() | st.builds(Usage, *[st.integers(0, 10**6)] * 5),
)


@settings(deadline=None)
@given(st.lists(messages, max_size=12), st.data())
def test_shelved_messages_are_equal_in_any_order_of_reading(said: list[Message], data: st.DataObject) -> None:
    kept = Messages()
    places = [kept.append(message) for message in said]
    assert list(kept) == said
    assert kept[1:3] == said[1:3]
    for index in data.draw(st.permutations(range(len(said)))):
        assert kept[index] == places[index].get() == said[index]


def test_a_session_of_any_length_is_gathered_in_the_memory_of_its_outline() -> None:
    tracemalloc.start()
    try:
        calls = gather(_long(2_000, 20_000))
        gc.collect()
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(block.chars for block in calls.blocks) > 40_000_000
    assert held < 6_000_000
    assert most < 30_000_000
    assert calls.blocks[-2].text.startswith("1999 ")


def _long(count: int, size: int) -> Iterator[Recorded]:
    yield Message("user", (Text("go"),))
    for number in range(count):
        yield Message("assistant", (ToolCall(f"c{number}", "Bash", "{}"),))
        yield Message("tool", (ToolResult(f"c{number}", f"{number} ".ljust(size, "x"), "Bash"),))
    yield Message("assistant", (Text("done"),))

"""Conversations for property tests: wild ones, as recordings have them, and valid ones."""

from hypothesis import strategies as st

from pagein.model.chats import ChatCall, ChatTurn
from pagein.model.messages import (
    Block,
    FileAccess,
    Image,
    Message,
    Other,
    ShownLines,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from pagein.model.references import Reference

# Any character, lone surrogates and NUL among them.
TEXTS = st.text(st.characters(), max_size=20)
IDS = st.sampled_from(["a", "b", "c", "d"])
NUMBERS = st.integers(min_value=0, max_value=2**40)
TIMES = st.floats(allow_nan=False, allow_infinity=False)

ACCESSES = st.builds(
    FileAccess,
    op=st.sampled_from(["read", "edit", "write", "delete"]),
    path=TEXTS,
    start=st.none() | NUMBERS,
    end=st.none() | NUMBERS,
    via=st.sampled_from(["native", "shell"]),
)
IMAGES = st.builds(Image, media_type=TEXTS, size=NUMBERS, data=st.none() | TEXTS)
CALLS = st.builds(ToolCall, id=IDS, name=TEXTS, arguments=TEXTS, accesses=st.lists(ACCESSES, max_size=2).map(tuple))
RESULTS = st.builds(
    ToolResult,
    call_id=IDS,
    text=TEXTS,
    name=TEXTS,
    is_error=st.booleans(),
    images=st.lists(IMAGES, max_size=1).map(tuple),
    shown=st.none() | st.builds(ShownLines, start=NUMBERS, count=NUMBERS, total=st.none() | NUMBERS),
    before=st.none() | TEXTS,
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, text=TEXTS, injected=st.none() | TEXTS),
    st.builds(Thinking, text=TEXTS, signature=st.none() | TEXTS, redacted=st.booleans()),
    CALLS,
    RESULTS,
    IMAGES,
    st.builds(Other, kind=TEXTS, json=TEXTS),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    blocks=st.lists(BLOCKS, max_size=4).map(tuple),
    at=st.none() | TIMES,
    model=st.none() | TEXTS,
    usage=st.none() | st.builds(Usage, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    stop=st.none() | TEXTS,
    id=st.none() | TEXTS,
)
WILD = st.lists(MESSAGES, max_size=8)
OUTCOMES = st.builds(
    ChatCall,
    call_id=IDS,
    tool=TEXTS,
    args=TEXTS,
    status=st.sampled_from(["ok", "fail"]),
    object=st.builds(Reference, IDS.map("call {}".format)),
)
TURNS = st.lists(
    st.builds(
        ChatTurn,
        said=st.lists(MESSAGES, max_size=2).map(tuple),
        steps=st.lists(MESSAGES | OUTCOMES, max_size=4).map(tuple),
    ),
    max_size=3,
)
"""Turns of a chat, with anything that a stored page may have in it."""


@st.composite
def valid(draw: st.DrawFn) -> list[Message]:
    """A conversation that ends with a user's words or results, in one of the shapes in which hosts say the same thing."""
    said = [Message("system", (Text("be good"),))] * draw(st.integers(0, 2))
    said.append(Message("user", (Text("begin"),)))
    for turn in range(draw(st.integers(0, 6))):
        names = [f"call-{turn}-{number}" for number in range(draw(st.integers(0, 3)))]
        calls = tuple(ToolCall(name, "Bash", "{}") for name in names)
        said.append(Message("assistant", (Text(f"turn {turn}"), *calls)))
        results = tuple(ToolResult(name, f"result of {name} " * draw(st.integers(0, 40)), "Bash") for name in names)
        text = (Text("more words"),) if draw(st.booleans()) or not names else ()
        if draw(st.booleans()):
            said.append(Message("user", (*results, *text)))
        else:
            said += [Message("tool", (result,)) for result in results]
            said += [Message("user", text)] if text else []
    return said

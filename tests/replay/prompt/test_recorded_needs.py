import json

from pagein.model.messages import FileAccess, Message, Text, ToolCall, ToolResult
from pagein.replay.prompt.model_calls import gather
from pagein.replay.prompt.recorded_needs import Needs, needs_of

LINE = "def connect(host: str, port: int, timeout: float = 3.5) -> Socket:"


def _needs(reply: Message, *before: Message) -> Needs:
    calls = gather([Message("user", (Text("go"),)), *before, reply])
    return needs_of(calls, [call.opens_segment for call in calls.calls])[-1]


def _read(text: str, name: str = "r1", accesses: tuple[FileAccess, ...] = ()) -> tuple[Message, Message]:
    return (
        Message("assistant", (ToolCall(name, "Read", '{"file_path":"a.py"}', accesses),)),
        Message("tool", (ToolResult(name, text, "Read"),)),
    )


def _edit(old: str, new: str = "x") -> Message:
    arguments = json.dumps({"file_path": "a.py", "old_string": old, "new_string": new})
    return Message("assistant", (ToolCall("e1", "Edit", arguments),))


def test_a_long_line_said_again_needs_the_block_that_showed_it() -> None:
    needs = _needs(Message("assistant", (Text(f"I keep\n{LINE}\nas it is"),)), *_read(f"     1→{LINE}\n     2→pass"))
    assert [need.kind for need in needs.needs] == ["L"]
    assert needs.needs[0].holders[0].offset == 0


def test_short_or_monotonous_lines_are_no_needs() -> None:
    dull = "-" * 60
    needs = _needs(Message("assistant", (Text(f"{dull}\nreturn x"),)), *_read(f"{dull}\nreturn x"))
    assert not needs.needs


def test_an_edit_needs_the_text_it_quotes_and_the_quote_is_counted() -> None:
    needs = _needs(_edit("if x:\n    go()"), *_read("     1→if x:\n     2→    go()\n     3→"))
    assert [need.kind for need in needs.needs] == ["E"]
    assert needs.quotes[0].visible_raw


def test_a_quote_that_stood_nowhere_is_not_visible_raw() -> None:
    needs = _needs(_edit("never seen"), *_read("something else"))
    assert [quote.visible_raw for quote in needs.quotes] == [False]


def test_a_quote_over_two_blocks_is_visible_where_they_meet() -> None:
    first, second = _read("alpha\nbeta", "r1"), _read("gamma\ndelta", "r2")
    together = (
        Message("assistant", (*first[0].blocks, *second[0].blocks)),
        Message("tool", (*first[1].blocks, *second[1].blocks)),
    )
    quote = _needs(_edit("beta\ngamma"), *together).quotes[0]
    assert not quote.holders
    assert len(quote.spans) == 2


def test_a_patch_needs_its_context_lines() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n context_line()\n-old_line_here()\n+new\n*** End Patch"
    call = ToolCall("p", "apply_patch", json.dumps({"input": patch}))
    needs = _needs(Message("assistant", (call,)), *_read("context_line()\nold_line_here()\n"))
    assert {need.kind for need in needs.needs} == {"P"}


def test_reading_overlapping_lines_again_is_a_reread() -> None:
    first = FileAccess("read", "a.py", 1, 50)
    before = _read("text of fifty lines", "r1", (first,))
    again = Message("assistant", (ToolCall("r2", "Read", "{}", (FileAccess("read", "a.py", 40, 60),)),))
    apart = Message("assistant", (ToolCall("r3", "Read", "{}", (FileAccess("read", "a.py", 51, 60),)),))
    assert len(_needs(again, *before).rereads) == 1
    assert not _needs(apart, *before).rereads

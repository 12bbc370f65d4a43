from pagein.model.messages import HostEvent, Message, Text, ToolCall, ToolResult, UnreadableLine, Usage
from pagein.replay.prompt.model_calls import gather, strings_in, without_gutter
from pagein.testing.story import Story


def test_a_block_is_born_at_the_first_call_whose_prompt_holds_it(story: Story) -> None:
    calls = story.asks().works(10, 20).says().calls()
    assert [(block.kind, block.born) for block in calls.blocks] == [
        ("user", 0),
        ("arguments", 1),
        ("arguments", 1),
        ("result", 1),
        ("result", 1),
        ("assistant", 2),
    ]
    assert [call.blocks for call in calls.calls] == [(0, 1), (1, 5)]


def test_a_request_starts_when_the_last_result_was_there(story: Story) -> None:
    calls = story.asks().works(10, wait=7.5).says().calls()
    assert [call.at for call in calls.calls] == [0.0, 7.5]


def test_messages_the_host_made_up_are_no_calls() -> None:
    calls = gather([Message("user", (Text("hi"),)), Message("assistant", (Text("API error"),), model="<synthetic>")])
    assert not calls.calls


def test_a_compaction_opens_a_segment_and_forgets_what_no_call_saw(story: Story) -> None:
    story.asks().works(10).says()
    story.entries.append(HostEvent("compaction"))
    story.entries.append(Message("user", (Text("summary", injected="compact_summary"),)))
    calls = story.says().calls()
    last = calls.calls[-1]
    assert (last.segment, last.opens_segment) == (1, True)
    assert [calls.blocks[i].text for i in range(*last.blocks)] == ["summary"]


def test_a_repeated_call_id_still_finds_its_own_result() -> None:
    twice = [
        Message("assistant", (ToolCall("REDACTED", "Bash", "{}"),)),
        Message("tool", (ToolResult("REDACTED", "one"),)),
        Message("assistant", (ToolCall("REDACTED", "Bash", "{}"),)),
        Message("tool", (ToolResult("REDACTED", "two"),)),
    ]
    ids = [block.call_id for block in gather(twice).blocks]
    assert ids == ["REDACTED", "REDACTED", "REDACTED~2", "REDACTED~2"]


def test_a_result_without_its_call_is_text_of_the_users() -> None:
    """Recorded so, the task of a session is no result: no policy, and not the optimum, may let it leave."""
    entries = [
        Message("tool", (ToolResult("task", "solve this issue"),)),
        Message("assistant", (ToolCall("c", "Bash", "{}"),)),
        Message("tool", (ToolResult("c", "done"), ToolResult("never called", "more"))),
    ]
    blocks = gather(entries).blocks
    assert [(one.kind, one.text) for one in blocks if one.kind != "arguments"] == [
        ("user", "solve this issue"),
        ("result", "done"),
        ("user", "more"),
    ]


def test_a_strange_line_is_kept_and_costs_nothing() -> None:
    calls = gather([UnreadableLine(3, "not JSON"), Message("user", (Text("hi"),))])
    assert [one.line for one in calls.unreadable] == [3]
    assert len(calls.blocks) == 1


def test_clocks_that_run_backwards_do_not_make_time_run_backwards() -> None:
    entries = [
        Message("user", (Text("a"),), at=100.0),
        Message("assistant", (Text("b"),), at=110.0),
        Message("user", (Text("c"),), at=50.0),
        Message("assistant", (Text("d"),), at=60.0),
    ]
    assert [call.at for call in gather(entries).calls] == [100.0, 110.0]


def test_line_numbers_of_every_host_are_taken_off() -> None:
    assert without_gutter("     1→import re\n    12→x") == "import re\nx"
    assert without_gutter("1\timport re") == "import re"
    assert without_gutter("7: import re") == "import re"
    assert without_gutter("plain 1: text") == "plain 1: text"


def test_every_string_of_the_arguments_is_found_in_order() -> None:
    assert list(strings_in('{"a":"x","b":[{"c":"y"},1,"z"]}')) == ["x", "y", "z"]
    assert list(strings_in("*** not json")) == ["*** not json"]


def test_a_usage_that_no_model_can_have_had_is_left_out_and_counted(story: Story) -> None:
    story.asks().works(10, usage=Usage(fresh=5000, output=3)).works(10, usage=Usage(fresh=10**400))
    calls = story.says(usage=Usage(fresh=10, output=10**20)).calls()
    assert [call.usage is not None for call in calls.calls] == [True, False, False]
    assert calls.absurd == 2
    assert story.recording().flags["absurd_usage"] == 2

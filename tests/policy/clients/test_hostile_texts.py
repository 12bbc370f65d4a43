"""Whatever a client, a tool or a file says: nothing raises, nothing takes long, and what is told is in the text."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.audit.witness import witness
from pagein.policy.clients.client_reads import START
from pagein.policy.clients.client_rereads import RereadRules, answer, with_message
from pagein.policy.clients.profiles import PROFILES, profile_of, tools_of

WORDS = st.sampled_from(
    [
        "1\tx", "2→y", "\n", "\n\n", "3: z", "<path>a</path>\n<type>file</type>\n<content>\n", "</content>", "<file>\n",
        "00001| a", "(End of file - total 2 lines)", "[Showing lines 1-2 of 3. Use offset=3 to continue.]", "Output:\n",
        "[1 more lines in file. Use offset=2 to continue.]", "Process exited with code 0\n", "Exit code: 1\n", "\0", "\ud800",
        "<system-reminder>", "</system-reminder>", "[readcache: unchanged, 3 lines]", "Wasted call", "*** Begin Patch\n",
        "*** Update File: a\n", "@@\n", "-x\n", "+y\n", " ", "…9 chars truncated…", "Warning: truncated output (",
        "\nIMPORTANT: The file content has been truncated.\n", "Status: Showing lines 1-2 of 3 total lines.\n", "Action: x\n",
        "\n--- FILE CONTENT (truncated) ---\n",
    ]
)  # fmt: skip
TEXTS = st.lists(WORDS | st.text(max_size=6), max_size=14).map("".join)
NAMES = st.sampled_from(sorted({name for profile in PROFILES.values() for name in profile.ops} | {"mcp__x__y"}))
VALUES = TEXTS | st.integers(-3, 9) | st.none() | st.floats() | st.lists(TEXTS, max_size=3) | st.just({"oldText": "x"})
KEYS = st.sampled_from(
    ["file_path", "filePath", "path", "offset", "limit", "cmd", "command", "input", "content", "old_string", "new_string",
     "edits", "patchText", "workdir", "view_range", "start_line", "end_line", "dir_path"]
)  # fmt: skip
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=5).map(json.dumps) | TEXTS


@settings(max_examples=400, deadline=None)
@given(
    profile=st.sampled_from(sorted(PROFILES)), said=st.lists(st.tuples(NAMES, ARGUMENTS, TEXTS), min_size=1, max_size=6)
)
def test_nothing_that_is_said_stops_the_fold(profile: str, said: list[tuple[str, str, str]]) -> None:
    reader, state = RereadRules(PROFILES[profile], least_spared=1), START
    sent: list[Message] = []
    for n, (name, arguments, text) in enumerate(said):
        call, result = ToolCall(f"c{n}", name, arguments), ToolResult(f"c{n}", text)
        shown = reader.profile.lines_shown(call, result)
        if shown is not None:
            assert shown.with_text(text, "\n".join(shown.rows(text))) == text
            assert len(shown.rows(text)) == len(shown.lines)
        asked = reader.profile.annotate(Message("assistant", (call,)))
        state = with_message(state, reader, asked)
        found = answer(state, reader, result)
        assert found is None or len(found.text) < len(text)
        stands = text if found is None else found.text
        told = reader.profile.annotate(Message("user", (result, Text(text))), {call.id: call})
        state = with_message(state, reader, told, {call.id: stands})
        sent += [asked, Message("user", (ToolResult(call.id, stands),))]
    assert witness(sent, state.files.claims(), state.files.versions().get) == ()


@given(
    st.recursive(
        st.none() | st.text(max_size=4) | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
    )
)
def test_tools_may_be_anything(value: object) -> None:
    profile_of(tools_of(value))


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize(
    "text",
    [
        "[Showing " * 60_000,
        "1\tx\n" + "<system-reminder></system-reminder>" * 20_000 + "x",
        "\n\n[1 more lines in file" * 30_000,
        "<path>a</path>\n<type>file</type>\n<content>\n1: a\n\n(Output capped at " + " Showing lines 1-" * 30_000,
        "…" + "9" * 400_000,
        "   " * 200_000,
        "1\tx\n" * 100_000,
        "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2 of 3 total lines.\nAction: " + "\n" * 400_000,
        "\n... [" + "9" * 400_000,
        "The file " + " has been updated. All occurrences of 'x' were successfully replaced with 'a'." * 4_000,
        "The file x has been updated. All occurrences of '"
        + "' were successfully replaced with '.<system-reminder></system-reminder>" * 5_000,
    ],
)  # fmt: skip
def test_no_text_takes_long(profile: str, text: str) -> None:
    began = time.process_time()
    for name in ("Read", "read", "Bash", "bash", "exec_command", "Edit", "edit", "read_file", "run_shell_command"):
        call = ToolCall("c", name, '{"file_path":"a","filePath":"a","path":"a","command":"cat a","cmd":"cat a"}')
        PROFILES[profile].lines_shown(call, ToolResult("c", text))
        PROFILES[profile].is_failure(call, ToolResult("c", text))
    PROFILES[profile].verified.match(text)
    PROFILES[profile].altered.search(text)
    assert time.process_time() - began < 60  # hours, where it is not linear

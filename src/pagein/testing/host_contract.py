"""The contract of every host, as tests: the duties of its adapter, and exactly which feature each missing hook costs.

A test module derives from `HostContract` and gives the fixture `opens`, which returns an adapter for a session of the
host: `opens(hooks, name)`. Each call of it is a new start of the host. `files` are in the folder that the host works in.
"""

# ruff: noqa: S101 -- these are tests that ship

import json
import re
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.ports import HOOK_LOSSES, Hook, HostAdapter

Opens: TypeAlias = Callable[[Collection[Hook], str], HostAdapter]
HOOKS: Final = tuple(HOOK_LOSSES)
LARGE: Final = "".join(f"row {number} of an output that nobody needs for long\n" for number in range(900))
TEXT: Final = "a line of the file\nanother line of the file\n"
FILES: Final = {"large.txt": LARGE, "a.txt": TEXT}
"""What the folder of the host must hold."""
_STUB: Final = re.compile(r"pg-[0-9a-f]+(?:-[0-9a-f]+)*")


class HostScene:
    """A conversation in a host, message by message, as the host keeps it."""

    def __init__(self, host: HostAdapter) -> None:
        self.host = host
        self.history: list[object] = [Message("user", (Text("go"),), 1.0)]

    def run(self, name: str, **given: str) -> str:
        """Let the model call a tool of the host's. Returns the result as the host keeps it."""
        self.host.follow(self.history)
        self.host.context()
        call = ToolCall(f"call_{len(self.history)}", name, json.dumps(given))
        self.history.append(Message("assistant", (call,), 1.0, model="claude-sonnet-4-5"))
        self.host.follow(self.history)
        raw = FILES[given["path"] if name == "read" else given["command"].split()[-1]]
        text = self.host.tool_ran(call, raw)
        self.history.append(Message("tool", (ToolResult(call.id, text, name),), 1.0))
        return text

    def shown(self) -> list[str]:
        """The texts of the results that the model sees with the next request."""
        self.host.follow(self.history)
        blocks = (block for message in self.host.context() for block in message.blocks)
        return [block.text for block in blocks if isinstance(block, ToolResult)]


def _print_and_look(scene: HostScene) -> str:
    assert scene.run("bash", command="print large.txt") == LARGE, "the host keeps the output"
    return scene.shown()[-1]


def _recalled(scene: HostScene, shown: str) -> str:
    found = _STUB.search(shown)
    assert found is not None
    name = next(one for one in sorted(scene.host.tools()) if one.endswith("peek"))
    return scene.host.answer(name, {"id": found[0], "offset": 0, "length": 100})


class HostContract:
    """The contract of every host."""

    def test_a_large_output_leaves_the_context_and_a_registered_tool_brings_it_back(self, opens: Opens) -> None:
        scene = HostScene(opens(HOOKS, "one"))
        shown = _print_and_look(scene)
        assert len(shown) < len(LARGE) / 2
        assert _recalled(scene, shown).startswith(LARGE[:100])

    def test_what_the_context_shows_only_grows_and_a_new_start_shows_the_same(self, opens: Opens) -> None:
        scene = HostScene(opens(HOOKS, "two"))
        first = _print_and_look(scene)
        scene.run("bash", command="print large.txt")
        before = scene.shown()
        assert before[0] == first
        scene.host = opens(HOOKS, "two")
        assert scene.shown() == before

    def test_a_repeated_read_is_answered_by_a_marker_only_on_a_branch_that_shows_the_text(self, opens: Opens) -> None:
        scene = HostScene(opens(HOOKS, "three"))
        assert scene.run("read", path="a.txt") == TEXT
        behind = list(scene.history)
        assert scene.run("read", path="a.txt") == "[readcache: unchanged, 3 lines]"
        scene.history = behind[:1]
        assert scene.run("read", path="a.txt") == TEXT, "the history was replaced by one without the read"

    def test_a_message_that_pagein_does_not_know_changes_nothing(self, opens: Opens) -> None:
        scene = HostScene(opens(HOOKS, "four"))
        scene.history.append({"kind": "a steering message of the host's own"})
        shown = _print_and_look(scene)
        assert _recalled(scene, shown).startswith(LARGE[:100])

    # --- what is lost without a hook ---

    def test_without_a_context_nothing_leaves_and_markers_hold(self, opens: Opens) -> None:
        scene = HostScene(opens([one for one in HOOKS if one != "context"], "five"))
        assert _print_and_look(scene) == LARGE
        assert scene.run("read", path="a.txt") == TEXT
        marker = scene.run("read", path="a.txt")
        assert scene.shown() == [LARGE, TEXT, marker], "what the marker rests on stands in the request"

    def test_without_tools_what_left_is_found_by_its_id_in_the_store(self, opens: Opens) -> None:
        scene = HostScene(opens([one for one in HOOKS if one != "tools"], "six"))
        shown = _print_and_look(scene)
        assert scene.host.tools() == frozenset()
        scene.host = opens(HOOKS, "six")
        scene.shown()
        assert _recalled(scene, shown).startswith(LARGE[:100])

    def test_without_events_of_tools_reads_pass_and_outputs_leave(self, opens: Opens) -> None:
        scene = HostScene(opens([one for one in HOOKS if one != "tool_events"], "seven"))
        assert [scene.run("read", path="a.txt") for _ in range(2)] == [TEXT, TEXT]
        assert len(_print_and_look(scene)) < len(LARGE) / 2

    def test_without_a_name_of_the_session_the_next_start_is_rebuilt_from_the_history(self, opens: Opens) -> None:
        hooks = [one for one in HOOKS if one != "session"]
        scene = HostScene(opens(hooks, ""))
        _print_and_look(scene)
        scene.host = opens(hooks, "")
        shown = scene.shown()[-1]
        assert shown == LARGE or _recalled(scene, shown).startswith(LARGE[:100])
        assert scene.run("read", path="a.txt") == TEXT

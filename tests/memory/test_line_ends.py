"""The last line ends of files that calls write, edit and show, by client."""

import json

import pytest

from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.clients.known_files import NO_TEXTS, FileDeed, KnownTexts, file_deeds
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import CLAUDE_CODE, CODEX, OPENCODE


def deeds(
    texts: KnownTexts, profile: Profile, tool: str, result: str = "ok", **args: object
) -> tuple[KnownTexts, FileDeed]:
    """What one call does to the one file that it touches."""
    call = ToolCall("c", tool, json.dumps(args))
    texts, (deed,) = file_deeds(texts, profile, "/w", call, ToolResult("c", result, tool))
    return texts, deed


def patched(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch\n"


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", "a\n\n", "\n", ""])
def test_a_written_text_keeps_its_last_line_end(text: str) -> None:
    for profile, tool, path in ((OPENCODE, "write", "filePath"), (CLAUDE_CODE, "Write", "file_path")):
        _, deed = deeds(NO_TEXTS, profile, tool, content=text, **{path: "/w/a.txt"})
        assert (deed.known, deed.content, deed.proof) == ("whole", text, "written")


def test_an_edit_and_a_read_keep_the_line_end_that_they_do_not_show() -> None:
    texts, _ = deeds(NO_TEXTS, OPENCODE, "write", filePath="/w/a.txt", content="a\nb\n")
    texts, edited = deeds(texts, OPENCODE, "edit", filePath="/w/a.txt", oldString="b", newString="c")
    assert (edited.known, edited.content) == ("likely", "a\nc\n")
    shown = (
        "<path>/w/a.txt</path>\n<type>file</type>\n<content>\n1: a\n2: c\n\n(End of file - total 2 lines)\n</content>"
    )
    _, read = deeds(texts, OPENCODE, "read", shown, filePath="/w/a.txt")
    assert (read.known, read.content, read.is_news) == ("whole", "a\nc\n", True)
    _, unknown = deeds(NO_TEXTS, OPENCODE, "read", shown, filePath="/w/a.txt")
    assert (unknown.known, unknown.content, unknown.is_news) == ("whole", "a\nc", True)
    assert (edited.is_end_open, read.is_end_open, unknown.is_end_open) == (False, False, True)


def test_a_file_that_a_patch_adds_is_known_whole_and_patched_further() -> None:
    body = patched("*** Add File: kept/a.md\n+# A\n+\n+see [[b]]\n")
    texts, added = deeds(NO_TEXTS, CODEX, "apply_patch", input=body)
    assert (added.path, added.deed, added.known, added.content) == (
        "/w/kept/a.md",
        "write",
        "whole",
        "# A\n\nsee [[b]]\n",
    )
    body = patched("*** Update File: kept/a.md\n@@\n-see [[b]]\n+see [[c]]\n")
    _, changed = deeds(texts, CODEX, "apply_patch", input=body)
    assert (changed.known, changed.content, changed.proof) == ("likely", "# A\n\nsee [[c]]\n", "edited")


def test_a_patch_that_names_a_file_twice_proves_nothing() -> None:
    body = patched("*** Add File: a.md\n+one\n*** Add File: a.md\n+two\n")
    _, deed = deeds(NO_TEXTS, CODEX, "apply_patch", input=body)
    assert (deed.known, deed.content) == ("name", None)

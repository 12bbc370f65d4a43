"""What calls of real clients prove of files: each case is what a client did in `tests/journeys/test_real_memory.py`."""

import json

import pytest

from pagein.model.messages import Message, Text, ToolCall, ToolResult, Withheld
from pagein.policy.clients.known_files import NO_TEXTS, FileDeed, KnownTexts, changes_unseen, file_deeds
from pagein.policy.clients.profiles import PROFILES

CODEX_OK = "Exit code: 0\nWall time: 0 seconds\nOutput:\n"
EDITED = "The file /w/a.py has been updated successfully."
CHANGE = {"file_path": "/w/a.py", "old_string": "one", "new_string": "1"}


class Agent:
    """A client whose calls are followed in the folder /w."""

    def __init__(self, name: str) -> None:
        self.profile = PROFILES[name]
        self.texts: KnownTexts = NO_TEXTS

    def call(self, tool: str, arguments: object, text: str = "") -> tuple[FileDeed, ...]:
        call = ToolCall("c1", tool, json.dumps(arguments))
        self.texts, deeds = file_deeds(self.texts, self.profile, "/w", call, ToolResult("c1", text, tool))
        return deeds


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


def claude() -> Agent:
    agent = Agent("claude-code")
    agent.call("Write", {"file_path": "/w/a.py", "content": "one = 1\ntwo = 2\n"}, "ok")
    return agent


def codex() -> Agent:
    agent = Agent("codex")
    (read,) = agent.call("exec_command", {"cmd": "cat a.py"}, f"{CODEX_OK}one = 1\ntwo = 2\n")
    assert (read.deed, read.known, read.text, read.total) == ("read", "whole", "one = 1\ntwo = 2", 2)
    return agent


def test_a_patch_in_the_free_text_of_a_custom_tool_is_an_edit() -> None:
    changed = patch("*** Update File: a.py", "@@", "-one = 1", "+one = 11")
    (edit,) = codex().call("apply_patch", changed, f"{CODEX_OK}Success.")
    assert (edit.path, edit.deed, edit.known, edit.text) == ("/w/a.py", "edit", "likely", "one = 11\ntwo = 2")


def test_a_patch_adds_deletes_and_moves_files() -> None:
    agent = codex()
    (added,) = agent.call("apply_patch", patch("*** Add File: b.py", "+b = 1", "+"), f"{CODEX_OK}Success.")
    assert (added.deed, added.known, added.text, added.proof) == ("write", "whole", "b = 1\n", "written")
    moved = patch("*** Update File: a.py", "*** Move to: c.py", "@@", "-one = 1", "+one = 11")
    to, gone = agent.call("apply_patch", moved, f"{CODEX_OK}Success.")
    assert (to.path, to.deed, to.text) == ("/w/c.py", "move", "one = 11\ntwo = 2")
    assert (gone.path, gone.deed, gone.text) == ("/w/a.py", "delete", None)
    (deleted,) = agent.call("apply_patch", patch("*** Delete File: c.py"), f"{CODEX_OK}Success.")
    assert (deleted.path, deleted.deed) == ("/w/c.py", "delete")


def test_a_command_that_shows_fewer_lines_than_asked_for_shows_the_end_of_the_file() -> None:
    agent = Agent("codex")
    (whole,) = agent.call("exec_command", {"cmd": "sed -n '1,200p' a.py"}, f"{CODEX_OK}one\ntwo\n")
    assert (whole.known, whole.total) == ("whole", 2)
    (part,) = agent.call("exec_command", {"cmd": "sed -n '1,2p' b.py"}, f"{CODEX_OK}one\ntwo\n")
    assert (part.known, part.total) == ("part", None)


def test_a_command_shows_the_end_of_the_last_line_as_it_is() -> None:
    pi = Agent("pi")
    pi.call("write", {"path": "a.py", "content": "one\n"}, "Successfully wrote 4 bytes")
    (read,) = pi.call("bash", {"command": "cat a.py"}, "one\n")
    assert (read.known, read.text, read.is_news) == ("whole", "one\n", False)


def test_an_edit_after_a_command_of_unknown_effect_proves_no_content() -> None:
    agent = Agent("claude-code")
    agent.call("Write", {"file_path": "/w/a.py", "content": "one\ntwo\n"}, "ok")
    agent.call("Bash", {"command": "ls"}, "a.py")
    change = {"file_path": "/w/a.py", "old_string": "one", "new_string": "1"}
    (sure,) = agent.call("Edit", change, EDITED)
    assert (sure.known, sure.text) == ("whole", "1\ntwo\n")
    agent.call("Bash", {"command": "sed -i s/two/2/ a.py"}, "")
    (unsure,) = agent.call("Edit", {**change, "old_string": "1", "new_string": "one"}, EDITED)
    assert (unsure.known, unsure.is_trusted, unsure.text) == ("likely", False, "one\ntwo\n")
    (still,) = agent.call("Edit", {**change, "old_string": "one", "new_string": "1"}, EDITED)
    assert still.known == "likely"  # an edit on a likely content, at once


@pytest.mark.parametrize(
    ("name", "write", "edit", "path"),
    [
        ("codex", "", "apply_patch", ""),
        ("opencode", "write", "edit", "filePath"),
        ("pi", "write", "edit", "path"),
        ("gemini-cli", "write_file", "replace", "file_path"),
        ("other", "write", "edit", "path"),
    ],
)
def test_an_edit_of_a_client_that_does_not_look_for_changes_is_likely_until_the_file_is_shown(
    name: str, write: str, edit: str, path: str
) -> None:
    agent = Agent(name)
    if not path:
        agent.call("apply_patch", patch("*** Add File: a.py", "+one", "+two"), f"{CODEX_OK}Success.")
        changed: object = patch("*** Update File: a.py", "@@", "-one", "+1")
    else:
        agent.call(write, {path: "/w/a.py", "content": "one\ntwo\n"}, "ok")
        changed = {path: "/w/a.py", "old_string": "one", "new_string": "1"}
    (unsure,) = agent.call(edit, changed, f"{CODEX_OK}Success.")
    assert (unsure.known, unsure.is_trusted, unsure.content) == ("likely", True, "1\ntwo\n")
    if name == "codex":
        (part,) = agent.call("exec_command", {"cmd": "sed -n '1,1p' a.py"}, f"{CODEX_OK}1\n")
        assert (part.known, part.is_news) == ("likely", False)  # the call refers to the likely version
        (whole,) = agent.call("exec_command", {"cmd": "cat a.py"}, f"{CODEX_OK}1\ntwo\n")
        assert (whole.known, whole.proof, whole.is_news) == ("whole", "shown", True)


def test_an_edit_of_claude_code_says_whether_the_file_was_as_it_knew_it() -> None:
    for result, known in (
        (EDITED, "whole"),
        (f"{EDITED} (file state is current in your context — no need to Read it back)", "whole"),
        ("The file /w/a.py has been updated. All occurrences were successfully replaced.", "whole"),
        ("The file /w/a.py has been updated. All occurrences of 'a' were successfully replaced with 'b'.", "whole"),
        ("The file /w/a.py has been updated. Here's the result of running `cat -n` on a snippet of it:\n 1→b", "whole"),
        (f"{EDITED}\n\n<system-reminder>\nthe todo list is empty\n</system-reminder>", "whole"),
        (f"{EDITED} (note: the file had been modified on disk since you last read it — the edit applied.)", "likely"),
        ("ok", "likely"),
    ):
        (edit,) = claude().call("Edit", CHANGE, result)
        assert edit.known == known, result
    altered = EDITED.replace(".", ".  The user modified your proposed changes before accepting them. .")
    (edit,) = claude().call("Edit", CHANGE, altered)
    assert (edit.known, edit.text) == ("name", None)


def test_a_part_seen_since_proves_nothing_of_the_rest() -> None:
    agent = claude()
    (part,) = agent.call("Read", {"file_path": "/w/a.py", "offset": 1, "limit": 1}, "     1\tone = 1")
    assert (part.known, part.is_news) == ("whole", False)
    (edit,) = agent.call("Edit", CHANGE, EDITED)  # the client looks for changes since it showed the part
    assert (edit.known, edit.is_trusted) == ("likely", True)
    (again,) = claude().call("Edit", CHANGE, EDITED)
    assert again.known == "whole"


def test_a_text_of_the_client_that_names_a_file_puts_it_in_doubt() -> None:
    note = "Note: /w/a.py was modified, either by the user or by a linter."
    reminder = f"<system-reminder>\n{note}\n</system-reminder>"
    for block in (Text(note), Text(reminder), ToolResult("c9", f"done\n\n{reminder}", "Bash")):
        agent = claude()
        agent.texts = agent.texts.told(Message("user", (block,)))
        (edit,) = agent.call("Edit", CHANGE, EDITED)
        assert (edit.known, edit.is_trusted) == ("likely", False), block
    agent = claude()
    agent.texts = agent.texts.told(Message("user", (Text(note.replace("a.py", "b.txt")),)))
    (edit,) = agent.call("Edit", CHANGE, EDITED)
    assert edit.known == "whole"


def test_a_person_may_change_what_gemini_writes() -> None:
    agent = Agent("gemini-cli")
    row = {"file_path": "/w/a.py", "content": "one\n"}
    (wrote,) = agent.call(
        "write_file", row, "Successfully overwrote file: /w/a.py. User modified the `content` to be: x"
    )
    assert (wrote.known, wrote.text) == ("name", None)


def test_a_read_that_the_client_answers_by_an_earlier_one_names_the_file() -> None:
    agent = claude()
    (again,) = agent.call(
        "Read",
        {"file_path": "/w/a.py"},
        "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still "
        "current — refer to that instead of re-reading.",
    )
    assert (again.path, again.deed, again.is_news) == ("/w/a.py", "read", False)
    (edit,) = agent.call("Edit", CHANGE, EDITED)
    assert edit.known == "whole"


def test_lines_that_are_as_before_do_not_prove_the_rest_of_a_file_in_doubt() -> None:
    agent = codex()
    agent.call("exec_command", {"cmd": "make"}, f"{CODEX_OK}done")
    (part,) = agent.call("exec_command", {"cmd": "sed -n '1,1p' a.py"}, f"{CODEX_OK}one = 1\n")
    assert (part.known, part.text, part.is_news) == ("part", "one = 1", True)
    (edit,) = agent.call(
        "apply_patch", patch("*** Update File: a.py", "@@", "-one = 1", "+one = 11"), f"{CODEX_OK}Success."
    )
    assert (edit.known, edit.text) == ("likely", "one = 11\ntwo = 2")
    (again,) = agent.call("exec_command", {"cmd": "cat a.py"}, f"{CODEX_OK}one = 11\n")
    assert (again.known, again.text) == ("whole", "one = 11")


def test_commands_delete_and_move_files() -> None:
    agent = codex()
    to, gone = agent.call("exec_command", {"cmd": "mv a.py b.py"}, CODEX_OK)
    assert (to.path, to.deed, to.known) == ("/w/b.py", "move", "name")
    assert (gone.path, gone.deed) == ("/w/a.py", "delete")
    assert agent.texts.files.get("/w/a.py") is None
    (deleted,) = agent.call("exec_command", {"cmd": "rm b.py"}, CODEX_OK)
    assert (deleted.path, deleted.deed) == ("/w/b.py", "delete")
    assert agent.call("exec_command", {"cmd": "rm c.py"}, CODEX_OK.replace("0\n", "1\n", 1)) == ()
    assert agent.call("exec_command", {"cmd": "rm d.py"}, "Process running with session ID 3\nOutput:\n") == ()


def test_a_tool_of_unknown_effect_may_change_files() -> None:
    profile = PROFILES["claude-code"]
    assert changes_unseen(profile, ToolCall("1", "Task", "{}"))
    assert not changes_unseen(profile, ToolCall("1", "Read", '{"file_path":"/w/a"}'))
    assert not changes_unseen(profile, ToolCall("1", "Grep", "{}"))


def test_a_withheld_edit_puts_texts_in_doubt() -> None:
    profile = PROFILES["claude-code"]
    assert changes_unseen(profile, ToolCall("1", "Edit", "{}", withheld=Withheld("d", 9)))
    assert not changes_unseen(profile, ToolCall("1", "Read", "{}", withheld=Withheld("d", 9)))


def test_an_edit_beside_a_command_in_the_background_is_likely_at_best() -> None:
    agent = Agent("claude-code")
    agent.call("Bash", {"command": "sleep 20; sed -i s/1/3/ a.py", "run_in_background": True}, "running")
    agent.call("Write", {"file_path": "/w/a.py", "content": "one = 1\n"}, "ok")
    (edit,) = agent.call("Edit", {"file_path": "/w/a.py", "old_string": "one", "new_string": "two"}, "ok")
    assert (edit.known, edit.text) == ("likely", "two = 1\n")


def test_an_answer_of_the_user_puts_texts_in_doubt() -> None:
    assert changes_unseen(PROFILES["claude-code"], ToolCall("1", "AskUserQuestion", "{}"))

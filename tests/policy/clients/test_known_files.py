"""What calls of real clients prove of files: each case is what a client did in `tests/journeys/test_real_memory.py`."""

import json

from pagein.model.messages import ToolCall, ToolResult, Withheld
from pagein.policy.clients.known_files import NO_TEXTS, FileDeed, KnownTexts, changes_unseen, file_deeds
from pagein.policy.clients.profiles import PROFILES

CODEX_OK = "Exit code: 0\nWall time: 0 seconds\nOutput:\n"


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


def codex() -> Agent:
    agent = Agent("codex")
    (read,) = agent.call("exec_command", {"cmd": "cat a.py"}, f"{CODEX_OK}one = 1\ntwo = 2\n")
    assert (read.deed, read.known, read.text, read.total) == ("read", "whole", "one = 1\ntwo = 2", 2)
    return agent


def test_a_patch_in_the_free_text_of_a_custom_tool_is_an_edit() -> None:
    changed = patch("*** Update File: a.py", "@@", "-one = 1", "+one = 11")
    (edit,) = codex().call("apply_patch", changed, f"{CODEX_OK}Success.")
    assert (edit.path, edit.deed, edit.known, edit.text) == ("/w/a.py", "edit", "whole", "one = 11\ntwo = 2")


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
    for name, tool in (("claude-code", "Edit"), ("opencode", "edit"), ("pi", "edit")):
        agent = Agent(name)
        shell = {"claude-code": "Bash"}.get(name, "bash")
        write, path = {"claude-code": ("Write", "file_path"), "opencode": ("write", "filePath")}.get(
            name, ("write", "path")
        )
        agent.call(write, {path: "/w/a.py", "content": "one\ntwo\n"}, "ok")
        agent.call(shell, {"command": "ls"}, "a.py")
        change = {path: "/w/a.py", "old_string": "one", "new_string": "1"}
        (sure,) = agent.call(tool, change, "ok")
        assert (sure.known, sure.text and sure.text.split("\n")[:2]) == ("whole", ["1", "two"])
        agent.call(shell, {"command": "sed -i s/two/2/ a.py"}, "")
        (unsure,) = agent.call(tool, {**change, "old_string": "1", "new_string": "one"}, "ok")
        assert (unsure.known, unsure.text and unsure.text.split("\n")[:2]) == ("likely", ["one", "two"])
        (still,) = agent.call(tool, {**change, "old_string": "one", "new_string": "1"}, "ok")
        assert still.known == "likely"  # an edit on a likely content, at once


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

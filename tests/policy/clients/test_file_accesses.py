import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.messages import FileAccess, ToolCall
from pagein.policy.clients.profile import accesses, patch_lines, quotes
from pagein.policy.clients.shell_reads import shell_reads


def _accesses(name: str, cwd: str | None = None, **arguments: object) -> tuple[FileAccess, ...]:
    return accesses(name, json.dumps(arguments), cwd)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Read", {"file_path": "a.py"}, FileAccess("read", "a.py")),
        ("Read", {"file_path": "a.py", "offset": 10, "limit": 5}, FileAccess("read", "a.py", 10, 14)),
        ("Read", {"file_path": "a.py", "limit": 5}, FileAccess("read", "a.py", 1, 5)),
        ("Read", {"file_path": "a.py", "offset": 0}, FileAccess("read", "a.py", 1)),
        ("read", {"filePath": "a.py", "offset": 7}, FileAccess("read", "a.py", 7)),
        ("view", {"path": "a.py", "view_range": [3, 9]}, FileAccess("read", "a.py", 3, 9)),
        ("view", {"path": "a.py", "view_range": [3, -1]}, FileAccess("read", "a.py", 3)),
        ("Edit", {"file_path": "a.py", "old_string": "x"}, FileAccess("edit", "a.py")),
        ("MultiEdit", {"file_path": "a.py", "edits": []}, FileAccess("edit", "a.py")),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, FileAccess("edit", "a.ipynb")),
        ("Write", {"file_path": "a.py", "content": ""}, FileAccess("write", "a.py")),
        ("read_file", {"file_path": "a.py", "start_line": 3, "end_line": 9}, FileAccess("read", "a.py", 3, 9)),
        ("run_shell_command", {"command": "cat a.py", "dir_path": "src"}, FileAccess("read", "src/a.py", via="shell")),
        ("create", {"filename": "a.py"}, FileAccess("write", "a.py")),
    ],
)
def test_file_tools_are_known_by_the_names_that_clients_give_them(
    name: str, arguments: dict[str, Any], expected: FileAccess
) -> None:
    assert _accesses(name, **arguments) == (expected,)


@pytest.mark.parametrize("name", ["Grep", "TodoWrite", "mcp__files__read", "Task"])
def test_tools_of_other_names_touch_nothing(name: str) -> None:
    assert _accesses(name, file_path="a.py", path="a.py") == ()


def test_paths_inside_the_folder_of_the_session_are_told_relative_to_it() -> None:
    assert _accesses("Read", "/srv/shop", file_path="/srv/shop/a/b.py")[0].path == "a/b.py"
    assert _accesses("Read", "/srv/shop", file_path="/srv/shopping/b.py")[0].path == "/srv/shopping/b.py"
    assert _accesses("Read", "D:\\shop", file_path="D:\\shop\\a\\b.py")[0].path == "a/b.py"
    assert _accesses("exec_command", "/srv/shop", cmd="cat b.py", workdir="/srv/shop/a")[0].path == "a/b.py"


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '"x"', "7", '{"file_path":3}'])
def test_arguments_of_any_shape_are_taken(arguments: str) -> None:
    assert accesses("Read", arguments) == ()
    assert quotes(ToolCall("1", "Edit", arguments)) == ()
    assert patch_lines(ToolCall("1", "apply_patch", arguments)) == ()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Edit", {"old_string": "a\n"}, ("a\n",)),
        ("Edit", {"old_string": ""}, ()),
        ("MultiEdit", {"edits": [{"old_string": "a"}, {"old_string": "b"}, {"old_string": ""}]}, ("a", "b")),
        ("edit", {"oldString": "a"}, ("a",)),
        ("edit", {"oldText": "a"}, ("a",)),
        ("edit", {"edits": [{"oldText": "a"}, {"oldText": "b"}]}, ("a", "b")),
        ("edit", {"old_str": "a"}, ("a",)),
        ("Write", {"old_string": "a"}, ()),
        ("search", {"search": "a"}, ()),
    ],
)
def test_the_texts_that_an_edit_quotes_are_found_in_all_spellings(
    name: str, arguments: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert quotes(ToolCall("1", name, json.dumps(arguments))) == expected


PATCH = """*** Begin Patch
*** Update File: src/a.py
@@ def total
 def total(net):
-    return net * TAX * TAX
+    return net * TAX and more than that
 short
-this removed line is much longer than thirty-nine characters
*** Move to: src/b.py
*** Delete File: c.py
*** End Patch"""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"patchText": PATCH}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        ("shell", {"command": ["apply_patch", PATCH]}),
    ],
)
def test_a_patch_is_known_wherever_it_stands(name: str, arguments: dict[str, Any]) -> None:
    call = ToolCall("1", name, json.dumps(arguments))
    assert [(found.op, found.path) for found in accesses(name, call.arguments)] == [
        ("edit", "src/a.py"),
        ("write", "src/b.py"),
        ("delete", "c.py"),
    ]
    assert patch_lines(call) == ("def total(net):", "return net * TAX * TAX")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a.py", [("a.py", None, None)]),
        ("cat a.py b.py", [("a.py", None, None), ("b.py", None, None)]),
        ("sed -n '3,9p' a.py", [("a.py", 3, 9)]),
        ("sed -n 3p a.py", [("a.py", 3, 3)]),
        ("sed -n '3,$p' a.py", [("a.py", 3, None)]),
        ("sed -i s/a/b/ a.py", []),
        ("sed -n '/def/p' a.py", []),
        ("head -5 a.py", [("a.py", 1, 5)]),
        ("head -n 7 a.py", [("a.py", 1, 7)]),
        ("head a.py", [("a.py", 1, 10)]),
        ("head -n \u00b2 a.py", [("a.py", None, None)]),
        (f"head -n {'9' * 5000} a.py", [("a.py", None, None)]),
        ("head -n -5 a.py", [("a.py", None, None)]),
        (f"sed -n '3,{'9' * 5000}p' a.py", []),
        (f"tail -n +{'9' * 5000} a.py", [("a.py", None, None)]),
        ("tail -n +20 a.py", [("a.py", 20, None)]),
        ("tail -30 a.py", [("a.py", None, None)]),
        ("nl -ba a.py | sed -n '10,20p'", [("a.py", 10, 20)]),
        ("tail -n +20 a.py | head -5", [("a.py", 20, 24)]),
        ("cat a.py 2>&1 | tail -30", [("a.py", None, None)]),
        ("cat a.py | grep total", []),
        ("cat a.py 2>/dev/null || echo none", [("a.py", None, None)]),
        ("cd src && cat a.py; cat ./b.py", [("src/a.py", None, None), ("src/b.py", None, None)]),
        ("if [ -f a.py ]; then cat a.py; fi", [("a.py", None, None)]),
        ("cat <<'EOF' > a.py\nhello\nEOF", []),
        ("cat *.py", []),
        ("cat $FILE", []),
        ("git diff a.py", []),
        ("echo 'cat a.py'", []),
        ("cat 'my file.py'", [("my file.py", None, None)]),
        ("cat a.py && echo 'it''s", [("a.py", None, None)]),
    ],
)
def test_shell_commands_that_show_files_are_understood(
    command: str, expected: list[tuple[str, int | None, int | None]]
) -> None:
    assert [(found.path, found.start, found.end) for found in shell_reads(command)] == expected


@given(st.text(alphabet="cat sednhl'\"|;&<>$(){}\n-0123456789,p.py\\", max_size=60))
def test_any_command_line_is_taken(command: str) -> None:
    for found in shell_reads(command):
        assert found.path
        assert found.start is None or found.end is None or found.start <= found.end + 1


@pytest.mark.parametrize("written", [json.dumps, str])
def test_a_patch_may_be_the_free_text_of_a_custom_tool(written: Callable[[str], str]) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** Delete File: b.py\n*** End Patch\n"
    assert accesses("apply_patch", written(patch)) == (FileAccess("edit", "a.py"), FileAccess("delete", "b.py"))

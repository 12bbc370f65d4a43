"""Text of ours that a client's tool has put into a file is told to the model, once, and nothing else is."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.reads.test_reread_notes import FILE, Client
from tests.policy.clients.client_requests import APIS, body

import pagein
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.clients.echo_notice import echo_hit, facts_in
from pagein.policy.clients.profiles import PROFILES
from pagein.policy.reads.echo_guard import OwnTexts

STUB = '[pagein: pg-0123abcd-89abcdef | Read | 9 tokens | a.py]\n[Use peek("pg-0123abcd-89abcdef") to view it.]'
MARKER = "[readcache: unchanged in lines 1-40]"
OURS = OwnTexts(lambda name: str(name) == "pg-0123abcd-89abcdef", frozenset(facts_in([f"1\tx\n{MARKER}"])))

WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude-code": ("Write", {"file_path": "b.py", "content": "{}"}),
    "codex": ("apply_patch", {"input": "*** Begin Patch\n*** Add File: b.py\n+{}\n*** End Patch"}),
    "opencode": ("edit", {"filePath": "b.py", "oldString": "x", "newString": "{}"}),
    "pi": ("edit", {"path": "b.py", "edits": [{"oldText": "x", "newText": "{}"}]}),
    "gemini-cli": ("replace", {"file_path": "b.py", "old_string": "x", "new_string": "{}"}),
}


def writing(client: str, text: str) -> tuple[str, dict[str, Any]]:
    name, arguments = WRITES[client]
    line = text.split("\n", maxsplit=1)[0]
    return name, json.loads(json.dumps(arguments).replace("{}", json.dumps(line)[1:-1]))


@pytest.mark.parametrize("client", WRITES)
@pytest.mark.parametrize("text", [STUB, MARKER])
def test_a_write_of_ours_is_found_whatever_the_client_calls_it(client: str, text: str) -> None:
    name, arguments = writing(client, text)
    found = echo_hit(PROFILES[client], ToolCall("c1", name, json.dumps(arguments)), ToolResult("c1", "Wrote it."), OURS)
    assert found is not None
    assert found.files == ("b.py",)
    said = found.notice()
    assert "b.py" in said
    assert ('peek("pg-0123abcd-89abcdef")' in said) is (text is STUB)
    assert (MARKER in said) is (text is MARKER)


@pytest.mark.parametrize(
    ("client", "name", "arguments", "answer"),
    [
        ("claude-code", "Write", {"file_path": "b", "content": "[pagein: pg-00000000-00000000 | x | 1 | y]"}, "ok"),
        ("claude-code", "Write", {"file_path": "b", "content": "[readcache: unchanged in lines 1-41]"}, "ok"),
        ("claude-code", "Write", {"file_path": "b", "content": "print()"}, "ok"),
        ("claude-code", "Write", {"file_path": "b", "content": STUB}, "<tool_use_error>no</tool_use_error>"),
        ("claude-code", "Edit", {"file_path": "b", "old_string": STUB, "new_string": ""}, "ok"),
        ("claude-code", "mcp__pagein__peek", {"id": STUB}, "ok"),
        ("claude-code", "Bash", {"command": f"grep -r '{MARKER}' . 2>/dev/null"}, "ok"),
        ("codex", "exec_command", {"cmd": f"rg '{MARKER}'"}, "Process exited with code 0\nOutput:\n"),
    ],
)
def test_what_is_not_ours_or_went_into_no_file_is_no_finding(
    client: str, name: str, arguments: dict[str, Any], answer: str
) -> None:
    call = ToolCall("c1", name, json.dumps(arguments))
    assert echo_hit(PROFILES[client], call, ToolResult("c1", answer), OURS) is None


@pytest.mark.parametrize("command", [f"cat > b.py <<'E'\n{STUB}\nE", f"echo '{MARKER}' | tee b.py"])
def test_a_shell_that_writes_is_a_write(command: str) -> None:
    call = ToolCall("c1", "Bash", json.dumps({"command": command}))
    assert echo_hit(PROFILES["claude-code"], call, ToolResult("c1", ""), OURS) is not None


@pytest.mark.parametrize("name", WRITES)
def test_the_notice_stands_behind_the_result_in_the_next_request_once_and_stays(name: str, tmp_path: Path) -> None:
    with pagein.open(tmp_path / "store.pagein", workspace=tmp_path) as engine:
        client = Client(name, engine)
        client.read()
        marker = next(line for line in client.read().split("\n") if line.startswith("[readcache: "))
        client.call(*writing(name, marker), "Wrote it.")
        told = client.sent[-1].body.decode()
        assert told.count("[pagein notice: the ") == 1
        assert told.index("[pagein notice: the ") > told.rindex("Wrote it.")
        behind = client.sent[-1]
        assert engine.prepare(body(name, client.said), APIS[name], at=None, hint="s1").body == behind.body
        client.read(FILE.replace("line", "row"))
        later = json.loads(client.sent[-1].body)
        key = "input" if name == "codex" else "messages"
        assert later[key][: len(json.loads(told)[key])] == json.loads(told)[key]
        assert client.sent[-1].body.decode().count("[pagein notice: the ") == 1
        assert client.sent[-1].failure is None

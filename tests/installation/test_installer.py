"""Entries in the files of agents: put in without touching anything else, and taken out byte for byte."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pagein.errors import BadInput
from pagein.installation.agents import AGENTS, Folders, HttpServer
from pagein.installation.installer import Installer
from pagein.installation.json_inserts import member_insert, parse_json

COMMAND = ["/opt/bin/pagein", "mcp"]
JSON_FILES = {
    "blank": "",
    "an empty object": "{}",
    "an empty object with a line end": "{\n}\n",
    "an object of two spaces": '{\n  "numStartups": 3,\n  "mcpServers": {}\n}\n',
    "four spaces and an entry": '{\n    "mcpServers": {\n        "other": {"command": "x"}\n    },\n    "theme": "dark"\n}',
    "tabs": '{\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n',
    "windows line ends": '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n',
    "on one line": '{"a": [1, {"mcpServers": {"pagein": 1}}], "mcpServers": {"b": {"c": []}}}',
    "comments and trailing commas": (
        "// mine, keep\n{\n  /* servers */\n"
        '  "mcpServers": {\n    "a": {"command": "x"}, // the first\n    // "pagein": {}\n  },\n  "z": "} // no comment",\n}\n'
    ),
    "a comment behind the last entry": '{\n  "mcpServers": {\n    "a": {} // last\n  }\n}\n',
    "a byte order mark": '\ufeff{\n  "x": 1\n}\n',
    "strange names": '{"mcp\\u0053ervers": {"\\u00e9\\"": null}}',
}
TOML_FILES = {
    "a text that looks like the table": 'a = """\n[mcp_servers.pagein]\n"""\n',
    "blank": "",
    "comments": '# mine\nmodel = "gpt-5.5"   # fast\n\n[mcp_servers.other]\ncommand = "x"\n\n# the end',
    "windows line ends": 'model = "x"\r\n[a]\r\nb = 1\r\n',
}
NO_JSON = {
    "broken": '{"mcpServers": ',
    "a list": "[]",
    "something else": "servers: [a]\n",
    "another type there": '{"mcpServers": []}',
    "two objects": "{} {}",
}


def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "home", tmp_path / "project", {})


def installer(tmp_path: Path, name: str, *, project: bool = False) -> tuple[Installer, Path]:
    at, agent = folders(tmp_path), AGENTS[name]
    place = agent.project if project else agent.user
    assert place is not None
    return Installer.of(agent, at, tmp_path / "data" / "installed.json", project=project)[0], place.path(at)


def hook_installers(tmp_path: Path) -> tuple[Installer, ...]:
    return Installer.of(AGENTS["claude-code"], folders(tmp_path), tmp_path / "data" / "installed.json")[1:]


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


@pytest.mark.parametrize("text", JSON_FILES.values(), ids=JSON_FILES)
@pytest.mark.parametrize("name", ["claude-code", "cursor", "opencode"])
def test_an_entry_is_all_that_changes_and_goes_without_a_trace(tmp_path: Path, name: str, text: str) -> None:
    made, file = installer(tmp_path, name)
    write(file, text)
    before = parse_json(text)
    change = made.plan_install(COMMAND)
    assert file.read_bytes().decode() == text
    made.apply(change)
    after = parse_json(file.read_bytes().decode())
    keys = ("mcp", "pagein") if name == "opencode" else ("mcpServers", "pagein")
    entry = after[keys[0]].pop(keys[1])
    assert "pagein" in json.dumps(entry)
    first = {"$schema": "https://opencode.ai/config.json"} if name == "opencode" and not text else {}
    assert after == {**first, keys[0]: {}, **before}
    assert made.plan_install(COMMAND).done
    made.apply(made.plan_removal())
    assert file.read_bytes().decode() == text
    assert made.plan_removal().done


@pytest.mark.parametrize("text", TOML_FILES.values(), ids=TOML_FILES)
def test_a_table_of_codex_is_all_that_changes_and_goes_without_a_trace(tmp_path: Path, text: str) -> None:
    made, file = installer(tmp_path, "codex")
    write(file, text)
    made.apply(made.plan_install(COMMAND))
    after = tomllib.loads(file.read_bytes().decode())
    assert after["mcp_servers"].pop("pagein") == {
        "command": COMMAND[0],
        "args": ["mcp"],
        "env_vars": ["CODEX_HOME"],
    }
    assert after == {"mcp_servers": {}, **tomllib.loads(text)}
    made.apply(made.plan_removal())
    assert file.read_bytes().decode() == text


@pytest.mark.parametrize(("name", "project"), [("claude-code", False), ("codex", False), ("vscode", True)])
def test_a_file_that_was_made_for_the_entry_goes_with_it(tmp_path: Path, name: str, *, project: bool) -> None:
    made, file = installer(tmp_path, name, project=project)
    made.apply(made.plan_install(COMMAND))
    assert file.stat().st_mode & 0o777 == 0o600
    made.apply(made.plan_removal())
    assert not file.exists()


HTTP_ENTRIES: dict[str, dict[str, object]] = {
    "claude-code": {"type": "http", "alwaysLoad": True},
    "codex": {},
    "cursor": {},
    "opencode": {"type": "remote", "enabled": True},
    "vscode": {"type": "http"},
}


@pytest.mark.parametrize("name", HTTP_ENTRIES)
def test_an_entry_with_a_token_is_the_users_alone_until_it_goes(tmp_path: Path, name: str) -> None:
    made, file = installer(tmp_path, name)
    text = "# mine\n" if name == "codex" else '{\n  "other": 1 // mine\n}\n'
    write(file, text)
    file.chmod(0o644)
    server = HttpServer("http://127.0.0.1:8790/mcp", "secret")
    made.apply(made.plan_install(COMMAND, server))
    assert file.stat().st_mode & 0o777 == 0o600
    after = file.read_text()
    place = AGENTS[name].user
    assert place is not None
    keys, value = place.keys, tomllib.loads(after) if name == "codex" else parse_json(after)
    headers = {"Authorization": "Bearer secret"}
    expected: dict[str, object] = {
        "url": server.url,
        "http_headers" if name == "codex" else "headers": headers,
        **HTTP_ENTRIES[name],
    }
    assert value[keys[0]][keys[1]] == expected
    assert made.plan_install(COMMAND, server).done
    with pytest.raises(BadInput, match="pagein uninstall"):
        made.plan_install(COMMAND)
    made.apply(made.plan_removal())
    assert (file.read_text(), file.stat().st_mode & 0o777) == (text, 0o644)
    assert "secret" not in (tmp_path / "data" / "installed.json").read_text()


@pytest.mark.parametrize("text", NO_JSON.values(), ids=NO_JSON)
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str) -> None:
    made, file = installer(tmp_path, "claude-code")
    write(file, text)
    with pytest.raises(BadInput, match=r"\.claude\.json"):
        made.plan_install(COMMAND)
    assert file.read_bytes().decode() == text


def test_an_entry_of_somebody_else_is_neither_changed_nor_removed(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "claude-code")
    text = '{"mcpServers": {"pagein": {"command": "mine"}}}'
    write(file, text)
    with pytest.raises(BadInput, match="another entry"):
        made.plan_install(COMMAND)
    with pytest.raises(BadInput, match="remove it by hand"):
        made.plan_removal()


def test_what_the_agent_wrote_beside_the_entry_stays(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "claude-code")
    write(file, '{\n  "numStartups": 1\n}\n')
    made.apply(made.plan_install(COMMAND))
    file.write_text(file.read_text().replace('"numStartups": 1', '"numStartups": 22,\n  "new": [1]'))
    made.apply(made.plan_removal())
    assert file.read_text() == '{\n  "numStartups": 22,\n  "new": [1]\n}\n'


def test_a_file_that_changed_between_plan_and_change_is_left_alone(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "codex")
    write(file, 'model = "a"\n')
    change = made.plan_install(COMMAND)
    write(file, 'model = "b"\n')
    with pytest.raises(BadInput, match="changed meanwhile"):
        made.apply(change)
    assert file.read_text() == 'model = "b"\n'


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "claude-code")
    real = tmp_path / "dotfiles" / "claude.json"
    write(real, "{}\n")
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    made.apply(made.plan_install(COMMAND))
    assert (file.is_symlink(), "pagein" in real.read_text()) == (True, True)


scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text('a"\\{}[],:/*é\n', max_size=6))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text('ab{"', max_size=3), inner, max_size=3)
    ),
)
objects = st.dictionaries(st.sampled_from(["mcpServers", "mcp", "a", "b/*", 'c"']), values, max_size=4)


@given(objects, st.sampled_from([None, 1, 2, "\t"]), st.booleans(), st.booleans())
def test_any_json_object_gets_the_member_and_nothing_else(
    value: dict[str, Any],
    indent: int | str | None,
    closes: bool,  # noqa: FBT001 - drawn
    remarks: bool,  # noqa: FBT001 - drawn
) -> None:
    text = json.dumps(value, indent=indent)
    if remarks:
        text = "/* { */ " + text.replace("\n", " // }, [\n") + "// the end"
    if closes and value and indent is not None and not remarks:
        text = text[: text.rindex("\n")] + "," + text[text.rindex("\n") :]
    inner = value.get("mcpServers", {})
    assume(isinstance(inner, dict))
    insert = member_insert(text, ("mcpServers", "pagein"), {"command": "x"})
    after = insert.applied(text)
    expected = {**value, "mcpServers": {**inner, "pagein": {"command": "x"}}}
    assert parse_json(after) == expected
    assert after[: insert.place] + after[insert.place + len(insert.text) :] == text


HOOK_FILES = {
    "two lists of others with equal ends": (
        '{\n  "hooks": {\n    "PreCompact": [\n      {"hooks": []}\n    ],\n    "SessionEnd": [\n      {"hooks": []}\n    ]\n  }\n}\n'
    ),
    "a hook of others with like words": '{"hooks": {"PreToolUse": [{"hooks": [{"command": "webhook claude-code"}]}]}}',
    **{name: text for name, text in JSON_FILES.items() if name != "strange names"},
    "other hooks": (
        '{\n  "hooks": {\n    "PreToolUse": [\n      {"matcher": "Bash", "hooks": []} // mine\n    ],\n    "Stop": []\n  }\n}\n'
    ),
    "an empty list": '{"hooks": {"PreToolUse": []}}',
    "a trailing comma": '{\n\t"hooks": {\n\t\t"PreToolUse": [\n\t\t\t{"matcher": "x"},\n\t\t],\n\t},\n}',
}


@pytest.mark.parametrize("text", HOOK_FILES.values(), ids=HOOK_FILES)
def test_hooks_are_added_to_those_there_and_go_without_a_trace(tmp_path: Path, text: str) -> None:
    made, file = hook_installers(tmp_path), tmp_path / "home" / ".claude" / "settings.json"
    write(file, text)
    for one in made:
        one.apply(one.plan_install(COMMAND))
    before, after = parse_json(text), parse_json(file.read_bytes().decode())
    empty: dict[str, list[object]] = {"PreToolUse": [], "PreCompact": [], "SessionEnd": []}
    for event in empty:
        entry = after["hooks"][event].pop()
        assert entry["hooks"][0]["command"] == "/opt/bin/pagein hook claude-code || true"
    assert after == {**before, "hooks": {**empty, **before.get("hooks", {})}}
    assert all(one.plan_install(COMMAND).done for one in made)
    for one in reversed(made):
        one.apply(one.plan_removal())
    assert file.read_bytes().decode() == text
    assert all(one.plan_removal().done for one in made)


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"hooks": {"PreToolUse": "x"}}'])
def test_hooks_in_another_form_are_left_alone(tmp_path: Path, text: str) -> None:
    made = hook_installers(tmp_path)[0]
    write(tmp_path / "home" / ".claude" / "settings.json", text)
    with pytest.raises(BadInput):
        made.plan_install(COMMAND)


def test_a_right_file_that_cannot_hold_the_entry_is_not_called_broken(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "codex")
    write(file, 'mcp_servers = {a = {command = "b"}}\n')
    with pytest.raises(BadInput, match="has a form that pagein cannot add to"):
        made.plan_install(COMMAND)


def test_nothing_is_put_in_that_could_not_be_taken_out_again(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "cursor")
    write(tmp_path / "data", "a file where the folder of the notes would be")
    with pytest.raises(BadInput, match=r"installed\.json cannot be"):
        made.apply(made.plan_install(COMMAND))
    assert not file.exists()


def test_a_link_to_no_file_stays_a_link(tmp_path: Path) -> None:
    made, file = installer(tmp_path, "cursor")
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "elsewhere.json")
    made.apply(made.plan_install(COMMAND))
    assert (tmp_path / "elsewhere.json").is_file()
    made.apply(made.plan_removal())
    assert file.is_symlink()
    assert not (tmp_path / "elsewhere.json").exists()

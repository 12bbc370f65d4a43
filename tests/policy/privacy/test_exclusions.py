import pytest

from pagein.model.messages import FileAccess, ToolCall
from pagein.policy.privacy.exclusions import is_excluded, may_show_excluded


@pytest.mark.parametrize(
    "path", [".env", "a/.env.local", "C:\\keys\\Server.PEM", "deep/id_rsa", "x.p12", "~/.npmrc", ".netrc", "a.key/"]
)
def test_files_with_secrets_are_excluded_by_their_last_component(path: str) -> None:
    assert is_excluded(path)


@pytest.mark.parametrize("path", ["environment.py", "a.env/readme.md", "key.py", "monkey", "pem", "id_rsa.pub.md"])
def test_other_files_are_not(path: str) -> None:
    assert not is_excluded(path)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"command":"cat .env"}',
        '{"command":"cat config/.env.production | head"}',
        '{"command":"openssl x509 -in \\"server.pem\\""}',
        '{"command":"grep -r KEY --include=.env*"}',
        '{"file_path":"/srv/app/ID_RSA"}',
    ],
)
def test_a_call_that_names_such_a_file_may_show_it(arguments: str) -> None:
    assert may_show_excluded(ToolCall("a", "Bash", arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        '{"command":"ls"}',
        '{"command":"cat environment.py"}',
        '{"pattern":"process.env.HOME"}',
        '{"pattern":"key"}',
        "",
        "no json",
    ],
)
def test_a_call_that_names_none_does_not(arguments: str) -> None:
    assert not may_show_excluded(ToolCall("a", "Bash", arguments))


def test_what_a_call_touches_counts_though_its_arguments_do_not_say_so() -> None:
    assert may_show_excluded(ToolCall("a", "Read", "{}", (FileAccess("read", "app/.env"),)))


CODE = '{"file_path":"src/a.py","old_string":"key={x.key}","new_string":"open(\\".env\\")"}'


def test_of_an_edit_or_a_write_only_the_path_counts() -> None:
    for op in ("edit", "write"):
        assert not may_show_excluded(ToolCall("a", "Edit", CODE, (FileAccess(op, "src/a.py"),)))
        assert may_show_excluded(ToolCall("a", "Edit", CODE, (FileAccess(op, "keys/x.key"),)))


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("a", "Edit", CODE),
        ToolCall("a", "Grep", CODE, (FileAccess("read", "src/a.py"),)),
        ToolCall("a", "Both", CODE, (FileAccess("edit", "src/a.py"), FileAccess("read", "src/b.py"))),
        ToolCall("a", "Bash", '{"command":"cat .env > a.py"}', (FileAccess("write", "a.py", via="shell"),)),
        ToolCall("a", "shell", '{"command":["bash","-lc","cat .env; apply_patch"]}', (FileAccess("edit", "a.py"),)),
    ],
    ids=["nothing known", "a read", "a read beside it", "a command", "a patch in a command"],
)
def test_what_may_do_more_than_change_files_counts_by_its_words(call: ToolCall) -> None:
    assert may_show_excluded(call)

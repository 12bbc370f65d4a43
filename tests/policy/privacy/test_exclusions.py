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

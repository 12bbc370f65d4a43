import json

import pytest

from pagein.policy.clients.shell_changes import ShellChange, is_harmless, shell_changes


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rm a.py", (ShellChange("a.py"),)),
        ("rm -f a.py b.py", (ShellChange("a.py"), ShellChange("b.py"))),
        ("git rm a.py", (ShellChange("a.py"),)),
        ("mv a.py b.py", (ShellChange("a.py", "b.py"),)),
        ("git mv src/a.py src/b.py && ls src", (ShellChange("src/a.py", "src/b.py"),)),
        ("mv 'a b.py' c.py && rm d.py", (ShellChange("a b.py", "c.py"), ShellChange("d.py"))),
        ("mv a.py lib", ()),  # may be a folder
        ("mv a.py lib.d", ()),
        ("mv a.py b.py lib", ()),
        ("rm -r build", ()),
        ("rm *.py", ()),
        ("rm a.py; ls", ()),
        ("rm a.py || true", ()),
        ("rm a.py | cat", ()),
        ("rm $A.py", ()),
        ("rm -- -a.py", ()),
        ("cd lib && rm a.py", ()),
        ("rm a.py && make", ()),
        ("mv a.py b.py && echo x >> b.py", ()),
        ("ls", ()),
        ("rm 'a.py", ()),
    ],
)
def test_only_a_command_that_is_understood_whole_proves_what_it_deletes_and_moves(
    command: str, expected: tuple[ShellChange, ...]
) -> None:
    assert shell_changes(json.dumps({"command": command})) == expected


def test_paths_are_in_the_folder_of_the_command() -> None:
    arguments = json.dumps({"cmd": "mv a.py /tmp/b.py", "workdir": "/w/src"})
    assert shell_changes(arguments) == (ShellChange("/w/src/a.py", "/tmp/b.py"),)  # noqa: S108 -- only a name


@pytest.mark.parametrize(
    "command",
    [
        "cat a.py",
        "ls -la && git status",
        "git diff HEAD~1 -- a.py | head -50",
        "grep -rn 'a > b' src 2>/dev/null | wc -l",
        "sed -n '1,20p' a.py",
        "find . -name '*.py'",
        "rm a.py",
        "cd src && python -m pytest -q tests 2>&1 | tail -5",
        "npx tsc -p . --noEmit",
        "go test ./... && cargo check",
        "git add -A",
    ],
)
def test_commands_that_only_show_something_are_harmless(command: str) -> None:
    assert is_harmless(json.dumps({"command": command}))


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ a.py",
        "sed -n 'w b.py' a.py",
        "cat a.py > b.py",
        "echo x >> a.py",
        "echo $(touch a.py)",
        "echo `touch a.py`",
        "git checkout a.py",
        "git diff --output=a.py",
        "find . -name a.py -delete",
        "find . -exec rm {} +",
        "sort a.py -o a.py",
        "cat a.py | tee b.py",
        "rm -rf build",
        "npm run check",
        "npx tsc",
        "npx prettier a.ts",
        "pytest --snapshot-update",
        "ruff check --fix",
        "pytest-fix",
        "cargo fix",
        "go generate",
        "git commit -m x",
        "make",
        "python fix.py",
        "cat a.py & make",
        "cat a.py\nmake",
        "A=1 make",
        "cat " + "a" * 3000,
        'echo "don\'t" > row.tsx && echo "won\'t"',
        "echo \"it's $(sed -i s/c/C/ row.tsx) that's\"",
        'echo "a\'b" `rm x` "c\'d"',
        "sort -uo row.tsx row.tsx",
        "pytest --force-regen",
        "pytest --inline-snapshot=create",
        "cargo test -- --bless",
        "go test -golden ./...",
        "git grep -Ovim x",
        "less +!sh a.py",
    ],
)
def test_every_other_command_may_change_files(command: str) -> None:
    assert not is_harmless(json.dumps({"command": command}))
    assert not is_harmless('{"command": 7}')

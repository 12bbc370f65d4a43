"""Every `pagein ...` in the docs names a command and options that exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from rich.markup import render
from tests.docs.test_docs import pages

from pagein.cli.cli import app

FENCED = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`([^`\n]*)`")
SETS = re.compile(r"\w+=.*")
COMMANDS: Any = typer.main.get_command(app)
NO_COMMANDS = {"pagein object 1"}
"""Quoted texts that only look like commands: the first line of what a hash is taken of."""
ENDS = {"|", "&&", "||", ";", ">", ">>", "<", "&", "2>"}


def command_lines(text: str) -> Iterator[str]:
    """The lines of code that begin with pagein, behind a prompt and variables."""
    lines = []
    for language, block in FENCED.findall(text):
        typed = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
        if language in ("console", "text"):  # the rest is what was printed
            typed = [line for line in typed if line.startswith("$ ")]
        lines += typed
    lines += INLINE.findall(FENCED.sub("", text))
    for line in lines:
        for part in re.split(r"&&|\|", line.strip().removeprefix("$ ")):
            words = part.split()
            while words and SETS.fullmatch(words[0]):
                words.pop(0)
            if len(words) > 1 and words[0] == "pagein" and part.strip() not in NO_COMMANDS:
                yield part.strip()


def problem_of(line: str) -> str:
    """What the parser says about a command line; "" if it names only what there is."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return ""  # a quote that goes on in the next line
    words = words[words.index("pagein") + 1 :]
    words = words[: next((place for place, word in enumerate(words) if word in ENDS), len(words))]
    command = COMMANDS
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        found = command.commands.get(words[0])
        if found is None:
            return f"there is no command {words[0]}"
        command, words = found, words[1:]
    try:
        context = command.context_class(command, **command.context_settings)
        command.make_parser(context).parse_args([word for word in words if word != "..."])
    except Exception as problem:  # noqa: BLE001 - its class is the parser's own
        is_only_named = "requires an argument" in str(problem)  # an option without its value, in a sentence
        return "" if is_only_named else str(problem)
    return ""


def test_the_docs_name_no_command_and_no_option_that_does_not_exist(root: Path) -> None:
    lines = {
        (page.relative_to(root).as_posix(), line)
        for page in pages(root)
        for line in command_lines(page.read_text(encoding="utf-8"))
    }
    assert len(lines) > 200
    assert sorted((page, line, said) for page, line in lines if (said := problem_of(line))) == []


def test_what_does_not_exist_is_noticed() -> None:
    assert "no command" in problem_of("pagein serv --port 1")
    assert "--prot" in problem_of("PAGEIN_OFF=1 pagein serve --prot 1 | head")
    assert problem_of("pagein run claude --anything  # its own") == ""
    assert list(command_lines("```sh\n$ A=1 pagein serve\n```\nand `pagein off`, `pip install pagein`")) == [
        "A=1 pagein serve",
        "pagein off",
    ]


def every_command(command: Any) -> Iterator[Any]:  # noqa: ANN401 - the framework's own class
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from every_command(one)


def test_a_terminal_takes_no_word_of_a_help_text_for_markup() -> None:
    texts = {
        text
        for command in every_command(COMMANDS)
        for text in (command.help, command.epilog, *(getattr(one, "help", None) for one in command.params))
        if text
    }
    assert len(texts) > 200
    assert {text for text in texts if render(text).plain != text} == set()

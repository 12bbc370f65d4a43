"""The examples of docs/sessions.md print what the page says, on a store that two sessions filled."""

import re
from pathlib import Path

import pytest
from tests.tools.made_memory import MadeSession
from typer.testing import CliRunner

from pagein.cli.cli import app
from pagein.store.sqlite.sqlite_store import SqliteStore

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sessions.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
CART = "/home/me/shop/src/cart.py"
FIRST = "def total(items):\n    return sum(item.price for item in items)\n"
SECOND = "def total(items, rate=0.0):\n    return sum(item.price for item in items) * (1 + rate)\n"
THIRD = SECOND.replace("rate=0.0", "rate")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.pagein"
    kept = SqliteStore(path)
    monday = MadeSession(
        kept,
        "3f2a9c1e-7b40-4c55-9d1e-5a0c6e1f2b3d",
        1_763_371_800.0,
        title="Write the total of a cart",
        cwd="/home/me/shop",
    )
    chat = monday.thread()
    chat.say("Write the total of a cart")
    made = chat.file(CART, FIRST, "write")
    chat.call("toolu_01Kc", "Write", '{"file_path":"src/cart.py"}', "ok", files={"write": made})
    chat.answer("It is in src/cart.py.")
    chat.say("Now with tax")
    chat.file(CART, SECOND, "edit")
    chat.call("toolu_01Pz", "Edit", '{"file_path":"src/cart.py"}', "ok", files={"edit": made})
    chat.call("toolu_01Qw", "Bash", '{"command":"pytest -q"}', "1 failed", status="fail")
    chat.answer("The tax is in; one test still expects the old total.")
    tuesday = MadeSession(
        kept, "019a9c70-41d2-7c33-8a4e-1f2e3d4c5b6a", 1_763_460_000.0, harness="codex", title="Make the rate mandatory",
        cwd="/home/me/shop", model="gpt-5.5",
    )  # fmt: skip
    chat = tuesday.thread()
    chat.say("Make the rate mandatory")
    chat.file(CART, THIRD, "edit")
    chat.call("call_7f3a", "apply_patch", '{"path":"src/cart.py"}', "ok", files={"edit": made})
    chat.answer("Done.")
    kept.close()
    return path


def test_every_example_prints_what_the_page_says(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [one for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")) for one in examples(block)]
    assert len(asked) > 6
    for command, said in asked:
        result = CliRunner().invoke(app, command.split(), env={"COLUMNS": "110", "PAGEIN_STORE": str(store)})
        assert result.exit_code == 0, (command, result.exception)
        assert trimmed(result.output) == trimmed(said), command


def examples(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with its output."""
    parts = re.split(r"^\$ pagein ", block, flags=re.MULTILINE)[1:]
    return [(command, said) for part in parts for command, _, said in [part.partition("\n")]]


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]

"""The examples of docs/pools.md run, and its table of settings is that of the settings."""

import doctest
from pathlib import Path

from pagein.settings.keys import KEYS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pools.md"


def test_the_examples_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(page.replace("```\n", "\n"), {}, PAGE.name, str(PAGE), 0)
    told: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert (done.failed, "".join(told)) == (0, "")
    assert done.attempted > 10


def test_the_settings_have_these_defaults() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = [name for name in KEYS if name.startswith("pool_")]
    assert named
    for name in named:
        assert f"| `{name}` | {KEYS[name].default} |" in page

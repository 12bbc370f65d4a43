"""The site has every page in its navigation, and its pages read there as in the repository. `make site` builds it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

PICTURES = ("window", "cache", "epoch", "recall")


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, where one value is the name of a function."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, name, _node: name)


def placed(navigation: list[Any] | dict[str, Any]) -> Iterator[str]:
    for entry in navigation if isinstance(navigation, list) else navigation.values():
        yield from (entry,) if isinstance(entry, str) else placed(entry)


def test_every_page_is_in_the_navigation_once(root: Path, script: Callable[[str], ModuleType]) -> None:
    config = yaml.load((root / "mkdocs.yml").read_text(encoding="utf-8"), Loader)  # noqa: S506 - a safe loader
    found = sorted(placed(config["nav"]))
    docs = root / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    pages -= {name for name in pages if name.startswith("decisions/0")}  # their index links them
    assert found == sorted(pages | set(script("site_pages").PAGES))


def test_the_site_names_nothing_to_load_from_elsewhere(root: Path) -> None:
    config = (root / "mkdocs.yml").read_text(encoding="utf-8")
    assert "://" not in config
    assert "font: false" in config


@pytest.mark.parametrize(
    ("place", "line", "there"),
    [
        ("index.md", "[a](docs/run.md#x) ![p](docs/images/demo.svg)", "[a](run.md#x) ![p](images/demo.svg)"),
        ("index.md", "[s](SECURITY.md), [u](src/pagein/ui/LICENSE)", "[s](SECURITY.md), u"),
        ("hosts/pi.md", "[g](../gateway.md) [s](../../SECURITY.md#a)", "[g](../gateway.md) [s](../SECURITY.md#a)"),
        ("library.md", "[`x`](../examples/x.py), [w](https://example.org/a)", "`x`, [w](https://example.org/a)"),
        ("examples/README.md", "[s](../docs/a.md) [h](#here)", "[s](../a.md) [h](#here)"),
    ],
)
def test_links_lead_to_pages_of_the_site(
    script: Callable[[str], ModuleType], place: str, line: str, there: str
) -> None:
    assert script("site_pages").for_site(line, place) == there + "\n"


def test_a_list_gets_its_empty_line_and_code_stays(script: Callable[[str], ModuleType]) -> None:
    text = "Two:\n- a\n  goes on\n- b\n\n```\nwords\n- [no](docs/list.md)\n```\n1. c\n"
    there = "Two:\n\n- a\n  goes on\n- b\n\n```\nwords\n- [no](docs/list.md)\n```\n\n1. c\n"
    assert script("site_pages").for_site(text, "index.md") == there


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_loads_nothing_and_is_described_where_it_stands(root: Path, name: str) -> None:
    text = (root / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
    label = ET.fromstring(text).attrib["aria-label"]  # noqa: S314 - our own file
    assert "href" not in text
    assert "prefers-color-scheme:dark" in text
    page = (root / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert f"![{label.removesuffix('.')}](images/{name}.svg)" in page


def test_the_questions_are_reached_from_the_readme_and_name_a_way_each(root: Path) -> None:
    """What a newcomer asks has an answer with a command or a link, one click from the README."""
    assert "(docs/questions.md)" in (root / "README.md").read_text(encoding="utf-8")
    page = (root / "docs" / "questions.md").read_text(encoding="utf-8")
    answers = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)+)", page, re.MULTILINE))
    assert len(answers) >= 10
    assert [asked for asked, answer in answers.items() if "pagein " not in answer and "](" not in answer] == []

"""Prepare the pages of the docs for the site that mkdocs builds from mkdocs.yml.

The docs are written for readers of the repository. Three things differ on the site: pages outside of docs/ are part of it, links to
source files lead nowhere, and its Markdown parser wants an empty line before each list.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Pages outside of docs/, by their place on the site.
PAGES = {
    "index.md": "README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "examples/README.md": "examples/README.md",
}
FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^(\s*)(?:[-*]|\d+\.) ")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:  # noqa: ANN401 - mkdocs ships no types
    """Let nested lists be indented by two spaces, as elsewhere."""
    config.markdown_extensions.append(TwoSpaces())
    return config


def on_files(files: Any, *, config: Any) -> Any:  # noqa: ANN401
    """Add the pages outside of docs/."""
    from mkdocs.structure.files import File

    for place, source in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Return the page's text as the site needs it."""
    return for_site(markdown, page.file.src_uri)


def for_site(markdown: str, place: str) -> str:
    """Return the text of the page at this place of the site, with the links of the site and empty lines before lists."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        if FENCE.match(line):
            in_code = not in_code
        elif not in_code and ITEM.match(line) and lines and lines[-1].strip() and not _continues_list(lines):
            lines.append("")
        lines.append(line if in_code else with_links(line, place))
    return "\n".join(lines) + "\n"


def _continues_list(lines: list[str]) -> bool:
    """Whether the lines end in an item of a list, or in a line that goes on with one."""
    for line in reversed(lines):
        if ITEM.match(line):
            return True
        if not line.strip() or not line.startswith(" "):
            return False
    return False


def with_links(line: str, place: str) -> str:
    """Return a line whose links lead to pages of the site. Of links to other files of the repository only the words stay."""
    return LINK.sub(lambda link: _on_site(link, place), line)


def _on_site(link: re.Match[str], place: str) -> str:
    image, words, target = link.groups()
    path, mark, anchor = target.partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return link[0]
    source = PAGES.get(place, f"docs/{place}")
    goal = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    found = {source: place for place, source in PAGES.items()}.get(goal)
    if found is None and not goal.startswith("docs/"):
        return words
    there = posixpath.relpath(found or goal.removeprefix("docs/"), posixpath.dirname(place) or ".")
    return f"{image}[{words}]({there}{mark}{anchor})"


try:
    from markdown.extensions import Extension
except ImportError:  # the tests read this file without mkdocs
    Extension = object


class TwoSpaces(Extension):  # type: ignore[misc]
    """The indentation of nested blocks: two spaces."""

    def extendMarkdown(self, md: Any) -> None:  # noqa: ANN401, N802 - the library's name
        """Set it."""
        md.tab_length = 2

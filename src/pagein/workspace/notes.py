"""Parse Markdown notes, in Obsidian's dialect: frontmatter, links, tags.

Rules of this file
------------------
1. CommonMark determines the text: nothing in code, in HTML or after a backslash is a link or a tag.
2. A damaged note is still a note. The error in its frontmatter is recorded as `problem`, and its text counts.
3. Frontmatter is data: plain scalars, lists and mappings with a JSON form. Nothing in it is executed, and its size is limited.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

SUFFIXES: Final = (".md", ".markdown", ".mdown", ".mkd")
_LONGEST: Final = 4_000_000
_LONGEST_FRONTMATTER: Final = 64 * 1024
_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class NoteLink:
    """A link from a note to another note, or to a place in a note.

    target: a note's name, path or id as written; empty for a place in the same note
    headings: path to a heading, outermost first
    block: the id of a block
    alias: the displayed text
    embedded: whether the target's content is shown in place
    line: from 1, in the file; None for a link in the frontmatter
    place: JSON pointer into the frontmatter; empty for a link in the text
    """

    target: str
    headings: tuple[str, ...] = ()
    block: str | None = None
    alias: str | None = None
    embedded: bool = False
    line: int | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Structured content of a note.

    frontmatter: its properties, JSON values only
    problem: why the frontmatter is unreadable, if so
    tags: without `#`, without repetition, in the order of first use, case-insensitive
    id: the frontmatter's `id`, which identifies a note independently of its path
    title: the frontmatter's, or the first heading
    aliases: other names from the frontmatter
    blocks: ids of blocks in the text, without `^`
    """

    frontmatter: Mapping[str, object] = field(default_factory=dict)
    links: tuple[NoteLink, ...] = ()
    tags: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    title: str | None = None
    problem: str | None = None

    @property
    def id(self) -> str | None:
        """Return the frontmatter's id, if it is a text or a number."""
        given = self.frontmatter.get("id")
        if isinstance(given, bool) or not isinstance(given, str | int):
            return None
        return str(given).strip() or None

    @property
    def aliases(self) -> tuple[str, ...]:
        """Return other names of the note."""
        return _texts(self.frontmatter.get("aliases", self.frontmatter.get("alias")), split=False)


def is_note(path: str) -> bool:
    """Return whether a file of this name is parsed as Markdown."""
    return path.lower().endswith(SUFFIXES)


def parse_note(text: str) -> Note:
    """Parse a note. Never raises: every text is a valid note."""
    if len(text) > _LONGEST:
        return Note(problem=f"the note has {len(text)} characters; up to {_LONGEST} are read for links and tags")
    tokens = _parser().parse(text.removeprefix(_BOM), {})
    frontmatter, problem = _frontmatter(tokens)
    links = [*_links_in(frontmatter), *_links(tokens)]
    inline = [str(token.meta["tag"]) for token in _inline(tokens, "hashtag")]
    named = frontmatter.get("tags", frontmatter.get("tag"))
    return Note(
        frontmatter=frontmatter,
        links=tuple(links),
        tags=_distinct([*_texts(named, split=True), *inline]),
        blocks=tuple(dict.fromkeys(_blocks(tokens))),
        title=_title(frontmatter, tokens),
        problem=problem,
    )


# --- the parser ---

_WIKILINK: Final = re.compile(r"(!?)\[\[([^\[\]\n]+)\]\]")
# letters and digits of every script, and symbols used in tags; no punctuation
_TAG: Final = re.compile(r"#([\w/\-\u00a9\u00ae\u2190-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]+)")
_BEFORE_TAG: Final = re.compile(r"[\s(\[{,;\"'*_~>|]")
_BLOCK: Final = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]+)$")


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).use(front_matter_plugin)
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("link", "hashtag", _hashtag)
    return parser


def _wikilink(state: "StateInline", silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    link = _read_link(found[2], embedded=bool(found[1]))
    if link is None:
        return False
    if not silent:
        state.push("wikilink", "", 0).meta = {"link": link, "below": _lines_before(state)}
    state.pos = found.end()
    return True


def _lines_before(state: "StateInline") -> int:
    """Return the number of line feeds between the start of the block and here.

    Counted incrementally, because a block may have many links.
    """
    block, position, lines = state.env.get("counted", (None, 0, 0))
    if block is not state.tokens or position > state.pos:
        position, lines = 0, 0
    lines += state.src.count("\n", position, state.pos)
    state.env["counted"] = (state.tokens, state.pos, lines)
    return int(lines)


def _hashtag(state: "StateInline", silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    found = _TAG.match(state.src, state.pos, state.posMax)
    if found is None or (state.pos and not _BEFORE_TAG.match(state.src[state.pos - 1])):
        return False
    tag = found[1].rstrip("/")
    if not tag.strip("/") or tag.isdecimal():
        return False
    if not silent:
        state.push("hashtag", "", 0).meta = {"tag": tag}
    state.pos = found.end()
    return True


def _read_link(inside: str, *, embedded: bool = False, place: str = "") -> NoteLink | None:
    # in a table the bar is escaped as \|, and some authors do so in plain text too
    named, bar, alias = inside.replace("\\|", "|").partition("|")
    target, *parts = (part.strip() for part in named.split("#"))
    block = next((part[1:] for part in parts if part.startswith("^")), None)
    headings = tuple(part for part in parts if part and not part.startswith("^"))
    if not target and not headings and not block:
        return None
    shown = alias.strip() if bar else ""
    return NoteLink(target, headings, block or None, shown or None, embedded, None, place)


# --- the text ---


def _inline(tokens: "list[Token]", kind: str) -> "Iterator[Token]":
    for token in tokens:
        for child in token.children or ():
            if child.type == kind:
                yield child
            if child.children:  # the text of an image
                yield from _inline([child], kind)


def _links(tokens: "list[Token]") -> Iterator[NoteLink]:
    for token in tokens:
        first = None if token.map is None else token.map[0] + 1
        below = 0
        for child in token.children or ():
            below = child.meta.get("below", below + (child.type in {"softbreak", "hardbreak"}))
            link = _link(child)
            if link is not None:
                yield replace(link, line=None if first is None else first + below)


def _link(token: "Token") -> NoteLink | None:
    if token.type == "wikilink":
        link: NoteLink = token.meta["link"]
        return link
    if token.type == "link_open":
        return _local(str(token.attrs.get("href", "")))
    if token.type == "image":
        return _local(str(token.attrs.get("src", "")), embedded=True)
    return None


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


def _local(address: str, *, embedded: bool = False) -> NoteLink | None:
    """Return a Markdown link to a file; None for a web address."""
    if not address or _SCHEME.match(address):
        return None
    return _read_link(unquote(address), embedded=embedded)


def _blocks(tokens: "list[Token]") -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield from (found[1] for line in token.content.split("\n") for found in [_BLOCK.search(line)] if found)


def _title(frontmatter: Mapping[str, object], tokens: "list[Token]") -> str | None:
    named = frontmatter.get("title")
    if isinstance(named, str) and named.strip():
        return named.strip()
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            return token.content.strip() or None
    return None


# --- the frontmatter ---


def _frontmatter(tokens: "list[Token]") -> tuple[dict[str, object], str | None]:
    written = next((token.content for token in tokens if token.type == "front_matter"), "")
    if not written.strip():
        return {}, None
    if len(written) > _LONGEST_FRONTMATTER:
        return {}, f"the frontmatter has {len(written)} characters; {_LONGEST_FRONTMATTER} are read"
    from pagein.workspace.frontmatter import BadFrontmatter, parse_frontmatter

    try:
        return parse_frontmatter(written), None
    except BadFrontmatter as problem:
        return {}, str(problem)


def _links_in(value: object, place: str = "") -> Iterator[NoteLink]:
    """Yield the links in texts of the frontmatter, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _links_in(inner, f"{place}/{str(name).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _links_in(inner, f"{place}/{index}")
    elif isinstance(value, str):
        for found in _WIKILINK.finditer(value):
            link = _read_link(found[2], embedded=bool(found[1]), place=place)
            if link is not None:
                yield link


def _texts(value: object, *, split: bool) -> tuple[str, ...]:
    """Return the texts of a property that is a text or a list of texts.

    split: whether a text may contain several values
    """
    values = value if isinstance(value, list) else [value]
    texts = [str(one) for one in values if isinstance(one, str | int | float) and not isinstance(one, bool)]
    if split:
        texts = [word.lstrip("#") for text in texts for word in re.split(r"[,\s]+", text)]
    return tuple(text.strip() for text in texts if text.strip())


def _distinct(tags: list[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(tag.casefold(), tag)
    return tuple(first.values())

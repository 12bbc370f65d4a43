"""Describe a file as an object: textual content, and metadata that identifies the file without the content."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Self

from pagein.errors import BadInput
from pagein.model.documents import Document
from pagein.model.references import Reference
from pagein.model.values import NO_FIELDS, Fields, frozen_fields
from pagein.policy.privacy.exclusions import keys_in
from pagein.workspace.notes import NoteLink, is_note, parse_note

_SNIFFED: Final = 8_000  # as git does: a zero byte may be UTF-8, but a file with one is no text
Resolve = Callable[[str, str], str]
"""Maps a link's target as written, and the path of its note, to the id or nickname for a reference."""

_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "markdown"),
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "cpp"),
    **dict.fromkeys((".yml", ".yaml"), "yaml"),
    **dict.fromkeys((".html", ".htm"), "html"),
    **dict.fromkeys((".sh", ".bash", ".zsh"), "shell"),
    **{
        f".{name}": name
        for name in ("json", "jsonl", "toml", "xml", "css", "scss", "sql", "java", "go", "php", "lua", "swift")
    },
    ".rs": "rust",
    ".rb": "ruby",
    ".cs": "csharp",
    ".kt": "kotlin",
    ".rst": "rst",
    ".txt": "text",
    ".csv": "csv",
}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as found on the disk.

    digest: hash of its bytes
    text: None for a file that is binary, contains a key, or is too long to store
    """

    path: str
    digest: str
    size: int
    text: str | None
    media_type: str | None = None

    @classmethod
    def of(cls, document: Document) -> Self:
        """Return the description of a document."""
        is_text = document.is_text and b"\0" not in document.content[:_SNIFFED]
        text = document.text if is_text and not keys_in(document.text) else None
        return cls(document.key, document.hash.hex, len(document.content), text, document.media_type)


def file_type(path: str) -> str:
    """Return the kind of a text file from its name: `python`, `markdown`, ...

    For an unknown suffix the suffix itself; `text` without suffix.
    """
    suffix = PurePosixPath(path).suffix.lower()
    return _TYPES.get(suffix, suffix[1:] or "text")


def object_type(path: str) -> str:
    """Return the object type for a new file."""
    return "note" if is_note(path) else "file"


def facts(seen: FoundFile, home: str, resolve: Resolve) -> Fields:
    """Return the metadata of a found file.

    home: identifies machine and folder of the path
    """
    plain: dict[str, object] = {
        "path": seen.path,
        "home": home,
        "file_type": file_type(seen.path) if seen.text is not None else "binary",
        "file_hash": seen.digest,
        "size": seen.size,
    }
    if seen.media_type is not None:
        plain["media_type"] = seen.media_type
    if seen.text is not None and is_note(seen.path):
        plain.update(note_facts(seen.text, seen.path, resolve))
    return frozen_fields(plain)


def note_facts(text: str, path: str, resolve: Resolve) -> dict[str, object]:
    """Return the metadata of a note: its title, tags, links and frontmatter."""
    note = parse_note(text)
    said: dict[str, object] = {
        "title": note.title,
        "note_id": note.id,
        "tags": note.tags,
        "aliases": note.aliases,
        "frontmatter": _json(note.frontmatter),
        "links": tuple(_link(link, path, resolve) for link in note.links),
        "blocks": note.blocks,
        "problem": note.problem,
    }
    return {name: value for name, value in said.items() if value not in (None, (), {}, NO_FIELDS)}


def _json(frontmatter: Mapping[str, object]) -> object:
    try:
        return frozen_fields(frontmatter)
    except BadInput:  # a number outside JSON's range
        return {name: str(value) for name, value in frontmatter.items()}


def _link(link: NoteLink, path: str, resolve: Resolve) -> dict[str, object]:
    """Return a link as data: a reference to the target, and the written form."""
    said: dict[str, object] = {
        "to": Reference(resolve(link.target, path)) if link.target else None,
        "text": link.target or None,
        "headings": link.headings,
        "block": link.block,
        "alias": link.alias,
        "embedded": link.embedded or None,
        "line": link.line,
        "place": link.place or None,
    }
    return {name: value for name, value in said.items() if value not in (None, ())}


def name_of(path: str) -> str:
    """Return a note's name in links: its file name without the suffix."""
    return PurePosixPath(path).stem

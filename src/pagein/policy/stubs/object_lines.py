"""Lines about a stored object, without its content."""

from typing import Final

from pagein.model.links import Resolution, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import Value, canonical
from pagein.model.version_hash import metadata_view
from pagein.model.versions import Version

_LONGEST: Final = 120
_TOLD: Final = ("id", "type")
_NAMES: Final = ("title", "harness", "session_id")


def object_line(version: Version) -> str:
    """Return the type, the id with the version, and the metadata view of a version, in one line.

    Where the view shows nothing else, the title and the session tell what it is.
    """
    shown = [(name, value) for name, value in metadata_view(version) if name not in _TOLD and value is not None]
    if not shown:  # a session has no fields in its view
        shown = [(name, value) for name in _NAMES if (value := version.metadata.get(name))]
    view = ", ".join(f"{name}={short_value(value)}" for name, value in shown)
    return f"{version.type} {version.id}@{version.number}" + (f": {view}" if view else "")


def target_line(target: Resolution | UnresolvedReference) -> str:
    """Return the target of a reference, and the source of that knowledge."""
    if isinstance(target, UnresolvedReference):
        return f"{target.reference.target}: {target.why}"
    return f"{object_line(target.version)} ({'pinned, verified' if target.reference.pin is not None else 'newest'})"


def short_value(value: Value | ContentHash) -> str:
    """Return a value in one short line."""
    match value:
        case ContentHash():
            text = value.hex[:12]
        case str():
            text = " ".join(value.split())
        case Reference():
            text = f"[[{value.target}]]"
        case _:
            text = canonical(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"

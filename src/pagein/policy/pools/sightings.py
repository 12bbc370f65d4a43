"""What a stored version tells of an object, and an act that tells it to a session's pools."""

from pagein.model.pool_notes import PoolAct, PoolActKind
from pagein.model.version_hash import metadata_view
from pagein.model.versions import Version
from pagein.policy.pools.pool_values import PooledObject
from pagein.policy.stubs.object_lines import short_value


def act_about(act: PoolActKind, one: PooledObject) -> PoolAct:
    """Return an act about an object, with all that is known of the object."""
    return PoolAct(
        act, one.id, one.type, one.content, one.version or "", one.chars, one.path, one.file_type, one.nickname,
        one.tool, one.args, one.status, one.deleted, view=one.view,
    )  # fmt: skip


def sighting_of(version: Version) -> PooledObject:
    """Return what a stored version tells of an object."""
    facts = {name: str(version.metadata.get(name) or "") for name in ("path", "file_type", "tool", "status")}
    digest = None if version.content_hash is None else version.content_hash.hex
    unread = digest is None and version.metadata.get("unread") is True
    return PooledObject(
        version.id,
        version.type,
        "text" if digest is not None else "unread" if unread else "none",
        digest,
        version.chars,
        facts["path"],
        facts["file_type"],
        facts["tool"],
        str(version.metadata.get("args_display") or ""),
        facts["status"],
        version.nickname or "",
        locked=version.locked,
        deleted=version.deleted,
        view=() if version.view is None else _view_of(version),
    )


def _view_of(version: Version) -> tuple[tuple[str, str], ...]:
    shown = ((name, value) for name, value in metadata_view(version) if name not in ("id", "type", "deleted"))
    return tuple((name, short_value(value)) for name, value in shown if value is not None)

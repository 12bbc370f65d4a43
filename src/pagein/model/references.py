"""References between objects: to the newest version of an object, or pinned to a past version."""

from dataclasses import dataclass
from typing import Final

from pagein.errors import BadInput
from pagein.model.names import ContentHash

LINK: Final = "link"


@dataclass(frozen=True, slots=True)
class Pin:
    """A static reference's record of the target version.

    at: transaction time in seconds since 1970, used to look the version up.
    object, view, content: hashes. They verify the version found by time, and find it if the time is wrong. content is
        None for an object whose content is null.
    """

    at: float
    object: ContentHash
    view: ContentHash
    content: ContentHash | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to an object, at any place in a document.

    target: id of the object; for a dynamic reference also its nickname.
    pin: None for a dynamic reference (the newest version); set for a static one.
    field: the referenced part (`content`, `metadata`, or the name of a metadata or additional field); None for the
        whole object.
    relation: relation between holder and target (`link`, `derived_from`, ...).
    """

    target: str
    pin: Pin | None = None
    field: str | None = None
    relation: str = LINK

    def __post_init__(self) -> None:
        if not self.target.strip():
            raise BadInput("a reference must name its target")


def reference_to_fields(reference: Reference) -> dict[str, object]:
    """Encode a reference as plain JSON values, without defaults."""
    out: dict[str, object] = {"id": reference.target}
    if reference.field is not None:
        out["field"] = reference.field
    if reference.relation != LINK:
        out["relation"] = reference.relation
    if reference.pin is not None:
        pin = reference.pin
        content = None if pin.content is None else pin.content.hex
        out["pin"] = {
            "at": pin.at,
            "object_hash": pin.object.hex,
            "metadata_view_hash": pin.view.hex,
            "content_hash": content,
        }
    return out


def reference_from_fields(fields: object) -> Reference:
    """Decode a reference made by `reference_to_fields`. Raises BadInput for any malformed value."""
    try:
        match fields:
            case {"id": str() as target, **rest}:
                known: dict[str, str] = {name: str(rest[name]) for name in ("field", "relation") if name in rest}
                pin = _pin(rest["pin"]) if "pin" in rest else None
                return Reference(target, pin, known.get("field"), known.get("relation", LINK))
    except (KeyError, TypeError, ValueError) as problem:
        raise BadInput(f"not a reference: {problem}") from problem
    raise BadInput("a reference needs an `id`")


def _pin(fields: object) -> Pin:
    if not isinstance(fields, dict):
        raise BadInput("a pin needs fields")
    content = fields["content_hash"]
    return Pin(
        float(str(fields["at"])),
        ContentHash.parse(str(fields["object_hash"])),
        ContentHash.parse(str(fields["metadata_view_hash"])),
        None if content is None else ContentHash.parse(str(content)),
    )

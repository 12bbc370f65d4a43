"""References: how one object names another, at its newest or pinned to what it was (memory-system 7.2, 8.1)."""

from dataclasses import dataclass
from typing import Final

from pagein.errors import BadInput
from pagein.model.names import ContentHash

LINK: Final = "link"


@dataclass(frozen=True, slots=True)
class Pin:
    """What a static reference knows of the version that it means.

    at: transaction time in seconds since 1970, by which the version is looked up. The hashes prove what is found there
    and find it where the time is wrong; content is None for an object whose content is null.
    """

    at: float
    object: ContentHash
    view: ContentHash
    content: ContentHash | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to an object, wherever in a document it stands.

    target: id of the object; in a dynamic one also its nickname. pin: None for dynamic ("whatever it is now"), else static.
    field: which part is meant (`content`, `metadata`, or the name of a metadata or additional field); None for the object.
    relation: what the reference says about the two (`link`, `derived_from`, ...).
    """

    target: str
    pin: Pin | None = None
    field: str | None = None
    relation: str = LINK

    def __post_init__(self) -> None:
        if not self.target.strip():
            raise BadInput("a reference must name its target")


def reference_to_fields(reference: Reference) -> dict[str, object]:
    """Plain JSON values of a reference, defaults left out."""
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
    """Read what `reference_to_fields` wrote. Raises BadInput on anything else."""
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

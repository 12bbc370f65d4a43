"""Requests to an object store and their outcomes: writes, and queries for objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pagein.errors import BadInput
from pagein.model.names import ContentHash
from pagein.model.values import Value, canonical, frozen
from pagein.model.versions import SOMEBODY, Draft, Version, Writer

NEW: Final = 0
"""Expected version of a write that requires the object to be new."""


@dataclass(frozen=True, slots=True)
class Write:
    """A request to write a version.

    request: unique name of the write. A repeated request changes nothing and gets the same answer.
    at: the writer's clock.
    expected: required number of the newest version (`NEW`: the object must not exist); None for no requirement.
    """

    request: str
    draft: Draft
    at: float
    expected: int | None = None
    writer: Writer = SOMEBODY

    def __post_init__(self) -> None:
        if not self.request.strip():
            raise BadInput("a write needs a request id")
        frozen(self.at, "/at")


Change: TypeAlias = Literal["created", "updated", "unchanged"]
Refusal: TypeAlias = Literal[
    "invalid_session_id", "request_reused", "version_conflict", "type_changed", "nickname_taken"
]


@dataclass(frozen=True, slots=True)
class Written:
    """The write was stored.

    version: the version written; for `unchanged` the newest version, which has the same fields already.
    repeated: this request had been carried out before; version and change are from that time.
    """

    version: Version
    change: Change
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class WriteRefusal:
    """The write was refused and nothing was stored. The same request may be sent again.

    current: the newest version of the object, if it exists, as the basis for a new decision.
    """

    why: Refusal
    current: Version | None


Outcome: TypeAlias = Written | WriteRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query for objects by their newest versions. Omitted fields do not restrict the query; the newest object comes first.

    types: the types to include.
    where: metadata fields with their exact values, or with one element for list values; also `nickname`, `content_hash`
        (64 digits) and `session` (of the writer).
    under, ending: a field and the text that it begins or ends with.
    beginning: the text that the id begins with.
    deleted: whether deleted objects are wanted; None for both.
    since, until: bounds of the transaction time, inclusive.
    limit: maximum number of objects.
    before: only objects whose newest version has a lower sequence (for the next page).
    by_time: the latest first by the times of the newest versions, and not in the order of the store.
    """

    types: frozenset[str] = frozenset()
    where: Mapping[str, Value] = field(default_factory=dict)
    under: tuple[str, str] | None = None
    ending: tuple[str, str] | None = None
    beginning: str = ""
    deleted: bool | None = False
    since: float | None = None
    until: float | None = None
    before: int | None = None
    limit: int | None = None
    by_time: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise BadInput("a limit must not be negative")


EVERYTHING: Final = Query(deleted=None)

_LONGEST_KEY: Final = 1_000


def key_of(value: Value) -> str:
    """The index text of a value: the canonical form or, for a long value, the beginning and the hash of the form."""
    text = canonical(value)
    return text if len(text) <= _LONGEST_KEY else text[:_LONGEST_KEY] + ContentHash.of(text.encode()).hex


def prefix_key(text: str) -> str:
    """The common prefix of the keys of every text with this beginning.

    Raises BadInput for a beginning over the length limit.
    """
    return _part_of_key(canonical(text)[:-1])


def suffix_key(text: str) -> str:
    """The common suffix of the keys of every text with this ending, keys of very long texts aside.

    Raises BadInput for an ending over the length limit.
    """
    return _part_of_key(canonical(text)[1:])


def _part_of_key(key: str) -> str:
    if len(key) > _LONGEST_KEY:
        raise BadInput(f"a text to look up by its beginning or end must not be longer than {_LONGEST_KEY} characters")
    return key


def keys_of(version: Version) -> frozenset[tuple[str, str]]:
    """The index keys of a version: names with keys, an entry per element of a list."""
    found = {(name, key_of(one)) for name, value in version.metadata.items() for one in _each(value)}
    return frozenset(found | {(name, key_of(value)) for name, value in _envelope(version).items()})


def _envelope(version: Version) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "nickname": version.nickname,
        "content_hash": None if version.content_hash is None else version.content_hash.hex,
        "session": version.writer.session,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _each(value: Value) -> tuple[Value, ...]:
    return (value, *dict.fromkeys(value)) if isinstance(value, tuple) else (value,)


def matches(query: Query, version: Version) -> bool:
    """Whether the newest version of an object matches a query, ignoring `limit`."""
    return (
        (not query.types or version.type in query.types)
        and query.deleted in (None, version.deleted)
        and (query.since is None or query.since <= version.at)
        and (query.until is None or version.at <= query.until)
        and (query.before is None or version.sequence < query.before)
        and version.id.startswith(query.beginning)
        and fields_match(query, version)
    )


def fields_match(query: Query, version: Version) -> bool:
    """Whether a version has the fields that a query asks for: `where`, `under` and `ending`."""
    ends = [asked[0] for asked in (query.under, query.ending) if asked is not None]
    if not query.where and not ends:
        return True
    envelope = _envelope(version)
    keys = frozenset(
        (name, key_of(one))
        for name in {*query.where, *ends}
        for fields in (version.metadata, envelope)
        if name in fields
        for one in _each(fields[name])
    )
    return (
        all((name, key_of(value)) in keys for name, value in query.where.items())
        and (query.under is None or _is_under(keys, *query.under))
        and (query.ending is None or _has_ending(keys, *query.ending))
    )


def query_order(query: Query, version: Version) -> tuple[float, int]:
    """The sort key of a newest version in the answer to a query, the greatest first."""
    return (version.at if query.by_time else 0.0, version.sequence)


def _is_under(keys: frozenset[tuple[str, str]], name: str, beginning: str) -> bool:
    prefix = prefix_key(beginning)
    return any(field_name == name and key.startswith(prefix) for field_name, key in keys)


def _has_ending(keys: frozenset[tuple[str, str]], name: str, ending: str) -> bool:
    suffix = suffix_key(ending)
    return any(field_name == name and key.endswith(suffix) for field_name, key in keys)

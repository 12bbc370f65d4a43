"""Translate a `Query` into SQL."""

from dataclasses import replace
from typing import Final

import msgspec

from pagein.model.values import Value
from pagein.model.writes import Query, key_of, prefix_key, suffix_key
from pagein.store.sql.lookup_pairs import documents_with
from pagein.store.sql.sql_lookups import is_stored, key_number
from pagein.store.sql.sql_rows import Rows, encode_text, question_marks
from pagein.store.sql.sqlite_schema import TEXT_NAMES

# Keys are ASCII without DEL, so DEL ends the range of keys with a common prefix.
_BEHIND_ALL: Final = "\x7f"
# Ids may have any characters, in the order of code points.
_BEHIND_IDS: Final = "\U0010ffff"


def with_stored_names(query: Query) -> Query:
    """Return a query that the tables can answer. The new query finds at least the results of the given query.

    Beginnings and ends of other fields than `TEXT_NAMES` are not stored, nor are some keys (`sql_lookups.is_stored`): all versions are
    found, for the caller to compare.
    """
    where = {name: value for name, value in query.where.items() if is_stored(name, key_of(value))}
    under, ending = (
        asked if asked is None or asked[0] in TEXT_NAMES else None for asked in (query.under, query.ending)
    )
    if (under, ending, len(where)) == (query.under, query.ending, len(query.where)):
        return query
    return replace(query, where=where, under=under, ending=ending, limit=None)


def documents_with_key(rows: Rows, name: str, value: Value) -> set[int]:
    """Return the numbers of the objects that may have a value in a field. None that has it is missing."""
    return documents_with(rows, (key_number(encode_text(name), key_of(value)),))


def conditions(rows: Rows, query: Query) -> tuple[str, tuple[object, ...]]:
    """Return the WHERE condition of a query, with order and limit, and the values of the parameters."""
    texts: list[str] = ["1 = 1"]
    values: list[object] = []
    if query.types:
        texts.append(f"document.type IN ({question_marks(query.types)})")
        values += [encode_text(one) for one in sorted(query.types)]
    if query.where:
        documents = set.intersection(*(documents_with_key(rows, *one) for one in query.where.items()))
        # any number of objects in one value, for either database
        texts.append("document.number IN (SELECT CAST(key AS BIGINT) FROM json_each(?))")
        values.append(msgspec.json.encode(dict.fromkeys(documents, 0)).decode())
    if query.under is not None:
        name, beginning = query.under
        prefix = prefix_key(beginning)
        texts.append(
            "document.number IN (SELECT document FROM lookup_text WHERE name = ? AND value >= ? AND value < ?)"
        )
        values += [encode_text(name), prefix, prefix + _BEHIND_ALL]
    if query.ending is not None:
        name, ending = query.ending
        suffix = suffix_key(ending)
        texts.append(
            "document.number IN (SELECT document FROM lookup_text WHERE name = ? AND substr(value, length(value) - ? + 1) = ?)"
        )
        values += [encode_text(name), len(suffix), suffix]
    if query.beginning:
        texts.append("document.id >= ? AND document.id < ?")
        values += [encode_text(query.beginning), encode_text(query.beginning) + _BEHIND_IDS]
    bounds = (
        ("document.deleted = ?", None if query.deleted is None else int(query.deleted)),
        ("at >= ?", query.since),
        ("at <= ?", query.until),
        ("document.head < ?", query.before),
    )
    for text, bound in bounds:
        if bound is not None:
            texts.append(text)
            values.append(bound)
    values.append(2**62 if query.limit is None else query.limit)
    order = "at DESC, document.head DESC" if query.by_time else "document.head DESC"
    return f"{' AND '.join(texts)} ORDER BY {order} LIMIT ?", tuple(values)

"""Check items of OpenAI Responses by their ids: rules R3-R6."""

from collections.abc import Iterator
from typing import Final

from pagein.providers.validity.call_pairs import Found
from pagein.providers.validity.turns import TurnPart, Turns, Wire, text_at

NO_REASONING: Final = (
    "Item '{item}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
)
NO_FOLLOWER: Final = "Item '{item}' of type 'reasoning' was provided without its required following item."
ID_SHAPE: Final = "Invalid 'input[{place}].id': '{item}'. Expected an ID that begins with '{prefix}'."
DUPLICATE: Final = "Duplicate item found with id {item}. Remove duplicate items from your input and try again."
NOT_KEPT: Final = (
    "Item with id '{item}' not found. Items are not persisted when `store` is set to false. "
    "Try again with `store` set to true, or remove this item from your input."
)

_PREFIXES: Final = {"function_call": "fc", "message": "msg", "reasoning": "rs"}


def items_with_id(fields: Wire) -> Iterator[tuple[int, Wire, str]]:
    """Yield the items of a request that have an id: place, item, id."""
    given = fields.get("input")
    for place, item in enumerate(given if isinstance(given, list) else ()):
        name = item.get("id") if isinstance(item, dict) else None
        if isinstance(name, str) and name:
            yield place, item, name


def check_calls_without_reasoning(turns: Turns, _since: int) -> Found:
    """R3: a call with an item id follows its reasoning item. The reasoning may be in a response stored by the provider."""
    if turns.fields.get("previous_response_id"):
        return
    seen: set[str] = set()
    for place, item, name in items_with_id(turns.fields):
        needed = turns.received.reasoning.get(name)
        if needed is not None and needed not in seen:
            yield _at(place), NO_REASONING.format(item=name, kind=_kind(item), reasoning=needed)
        seen.add(name)


def check_reasoning_alone(turns: Turns, _since: int) -> Found:
    """R4: a reasoning item is followed by the item from the same answer."""
    standing = {name for _, _, name in items_with_id(turns.fields)}
    for place, item, name in items_with_id(turns.fields):
        if _kind(item) != "reasoning":
            continue
        needed = turns.received.followers.get(name)
        if not (needed in standing if needed else _is_followed_by_model(turns, place)):
            yield _at(place), NO_FOLLOWER.format(item=name)


def _is_followed_by_model(turns: Turns, place: int) -> bool:
    """Whether the next item may be the model's: neither a message of the user nor a result."""
    behind = turns.turns[place + 1] if place + 1 < len(turns.turns) else None
    return behind is not None and (
        behind.side == "assistant" or any(part.kind in ("other", "server_call") for part in behind.parts)
    )


def check_item_ids(turns: Turns, _since: int) -> Found:
    """R5: ids are unique and have the prefix of their kind of item."""
    seen: set[str] = set()
    for place, item, name in items_with_id(turns.fields):
        kind = _kind(item)
        if name in seen:
            yield _at(place), DUPLICATE.format(item=name)
        seen.add(name)
        if kind == "message" and item.get("role") != "assistant":
            continue  # clients may choose the ids of the user's messages
        if not name.startswith(prefix := _PREFIXES.get(kind, "")):
            yield _at(place), ID_SHAPE.format(place=place, item=name, prefix=prefix)


def check_unstored_reasoning(turns: Turns, _since: int) -> Found:
    """R6: reasoning that was not stored has its encrypted content."""
    if turns.fields.get("store") is False:
        for place, item, name in items_with_id(turns.fields):
            if _kind(item) == "reasoning" and not item.get("encrypted_content"):
                yield _at(place), NOT_KEPT.format(item=name)


def _at(place: int) -> TurnPart:
    return TurnPart("other", place, 0)


def _kind(item: Wire) -> str:
    return text_at(item, "type") or "message"

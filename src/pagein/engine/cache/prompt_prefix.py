"""Digest the prompt prefix (model, tools, instructions) and cache-relevant settings, to detect changes.

Changes are journaled on the branch; a provider's cache holds nothing after the first changed part.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

from pagein.engine.intake.message_chain import Transcript
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.model.entries import Body, EntryId, NoteEntry
from pagein.model.journal_notes import PrefixDigests, SystemPromptNote
from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import Text
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import profile_of, tools_of
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope, same_name
from pagein.providers.wire.wire_format import WireFormat

Part: TypeAlias = Literal["model", "tools", "system", "settings", "headers", "messages"]
"""A part of a request on which a provider's cache depends."""

_SETTINGS: Final = (
    "tool_choice",
    "disable_parallel_tool_use",
    "parallel_tool_calls",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "output_config",
    "response_format",
    "text",
    "speed",
    "context_management",
)
_PARTS: Final[tuple[Part, ...]] = ("model", "tools", "system", "settings", "headers")


NO_HEAD: Final = PrefixDigests()


class Fronts:
    """The prompt prefixes of each branch so far: after a new prefix the cache holds nothing.

    The cache may still hold an earlier prefix, so a client can return to it.
    """

    def __init__(self, journal: Journal[State]) -> None:
        self._seen: Fold[frozenset[tuple[str, ...]]] = Fold(
            journal, frozenset(), _add_tools, "fronts", takes=(PrefixDigests,)
        )

    def is_new(self, parent: EntryId | None, head: PrefixDigests, form: WireFormat) -> bool:
        """Return whether no earlier request of this branch had this prompt prefix."""
        seen = self._seen[parent]
        if not form.cache.depends_on_settings:
            return bool(seen) and head.conversation not in {one[1:3] for one in seen if one[0] == head.model}
        return bool(seen) and _front(head) not in seen


def changed_parts(before: PrefixDigests, head: PrefixDigests) -> tuple[Part, ...]:
    """Return the parts in which two prompt prefixes differ."""
    return tuple(part for part in _PARTS if getattr(before, part) != getattr(head, part))


def _front(head: PrefixDigests) -> tuple[str, ...]:
    return head.model, head.tools, head.system, head.settings


def is_switched(before: PrefixDigests, head: PrefixDigests) -> bool:
    """Return whether two successive requests use different caches of Anthropic."""
    return before != NO_HEAD and _front(before) != _front(head)


def _add_tools(seen: frozenset[tuple[str, ...]], body: Body) -> frozenset[tuple[str, ...]]:
    match body:
        case NoteEntry(note=PrefixDigests() as head):
            return seen | {_front(head)}
        case _:
            return seen


def head_of(envelope: Envelope, script: Transcript, context: str = "") -> PrefixDigests:
    """Return the digests of the prompt prefix in this request.

    context: the caller's own part, as in `Engine.prepare`.
    """
    fields = envelope.fields
    model = model_in(envelope) or ""
    settings = b",".join(encode_json(name) + b":" + fields[name] for name in _SETTINGS if name in fields)
    instructions = [fields[name] for name in format_named(envelope.api).requests.system_fields if name in fields]
    system = [*instructions, *(item.raw for item in script.items[: script.head])]
    return PrefixDigests(
        # journaled as text, which cannot hold half of a surrogate pair
        model.encode("utf-8", "replace").decode(),
        _digest([fields["tools"]] if "tools" in fields else []),
        _digest(system),
        _digest([b"{%s}" % settings]) if settings else "",
        _digest([encode_json(context)]) if context else "",
    )


def notes_of_change(
    before: PrefixDigests, head: PrefixDigests, envelope: Envelope, script: Transcript
) -> Iterator[PrefixDigests | SystemPromptNote]:
    """Yield the facts to journal where a request's prompt prefix differs from the last one's."""
    yield head
    if before.system != head.system and (text := _system_text(envelope, script)):
        yield SystemPromptNote(text)


def _system_text(envelope: Envelope, script: Transcript) -> str:
    """Return the texts of a request's system prompt: in fields of its own, and in the first messages; "" if absent."""
    form = format_named(envelope.api).requests
    fields = {name: decode_json(bytes(envelope.fields[name])) for name in form.system_fields if name in envelope.fields}
    values = (decode_json(bytes(item.raw)) for item in script.items[: script.head])
    leading = (form.message(value, 0) for value in values if isinstance(value, dict))
    prompts = (*form.system(fields), *leading)
    return "\n".join(block.text for one in prompts for block in one.blocks if isinstance(block, Text))


def _digest(raws: list[bytes]) -> str:
    name = blake2b(digest_size=8)
    for raw in raws:
        name.update(_digest_of(raw))
    return name.hexdigest() if raws else ""


@lru_cache(maxsize=64)
def _digest_of(raw: bytes) -> bytes:
    """Digest tools and prompts, which are large and the same from call to call."""
    return same_name(decode_json(raw))


def model_in(envelope: Envelope) -> str | None:
    """Return the model of a request; None if absent."""
    named = envelope.fields.get(format_named(envelope.api).requests.model_field)
    return envelope.path_model or (None if named is None else _text(bytes(named)))


@lru_cache(maxsize=64)
def _text(raw: bytes) -> str | None:
    """Return a text of a request; None for any other value."""
    value = decode_json(raw)
    return value if isinstance(value, str) else None


def profile_in(envelope: Envelope) -> Profile | None:
    """Return the client profile of a request's tools; None if unknown."""
    return _profile(bytes(envelope.fields.get("tools", b"[]")), envelope.api)


@lru_cache(maxsize=64)
def _profile(tools: bytes, api: Api) -> Profile | None:
    """Return the client profile of a list of tools, cached because tools rarely change."""
    offered = tools_of(format_named(api).tools.definitions(decode_json(tools)))
    return profile_of(offered) if offered else None

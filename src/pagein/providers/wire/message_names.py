"""Names of wire messages: a repeated message has the same name, even in a different notation.

Rules of this file
------------------
1. Not part of a name: cache breakpoints, because clients move them from call to call, and fields with their default
   value (`null`, `is_error: false`, `type: message`).
2. A string content has the name of a content with one block of that text: clients switch between the two.
3. The order of fields counts inside arguments, where providers keep it, and nowhere else.
4. A name in a chain also stands for everything said before.
5. After a message where the journal was broken names differ from before: its name counts with one `~` for each break.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from pagein.model.json_text import encode_each, encode_json
from pagein.providers.wire.json_values import Json

_SIZE: Final = 16
_MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
# Not a set: the type of a block may be any value, also an unhashable one.
_TEXTS: Final = ("text", "input_text", "output_text")
_CONTENTS: Final = frozenset({"content", "output"})
_DEFAULTS: Final[Mapping[str, object]] = {"is_error": False, "type": "message"}


def chain_name(before: str, value: Json) -> str:
    """The name of a message after the message named `before` ("": the first): 32 hexadecimal digits."""
    return _chain_name(before, encode_json(_canonical(value)))


def chain_names(root: str, before: str, values: Iterable[Json], breaks: Mapping[str, int]) -> list[str]:
    """The names of messages after the message named `before` ("": the first; then they follow `root`).

    breaks: names of messages after which the journal was broken, with the number of breaks.
    """
    names: list[str] = []
    for text in encode_each([_canonical(value) for value in values]):
        before = _chain_name((before or root) + "~" * breaks.get(before, 0), text)
        names.append(before)
    return names


def _chain_name(before: str, text: bytes) -> str:
    digest = blake2b(before.encode(), digest_size=_SIZE)
    digest.update(b"\n")
    digest.update(text)
    return digest.hexdigest()


def same_name(value: object) -> bytes:
    """A digest of any part of a request without its breakpoints: a system prompt, a list of tools."""
    parts = _content(value) if isinstance(value, str | list) else value
    return blake2b(encode_json(parts), digest_size=_SIZE).digest()


def _canonical(value: Json) -> dict[str, Any]:
    return {
        name: _content(value[name]) if name in _CONTENTS else value[name]
        for name in sorted(value)
        if name not in _MARKS and value[name] is not None and _DEFAULTS.get(name, value) != value[name]
    }


def _content(content: object) -> object:
    if isinstance(content, str):
        return [{"text": content, "type": "text"}]
    if isinstance(content, list):
        return [_block(one) if isinstance(one, dict) else one for one in content]
    return content


def _block(block: dict[str, Any]) -> dict[str, Any]:
    made = _canonical(block)
    if made.get("type") in _TEXTS:
        made["type"] = "text"
    return made

"""Signatures of thinking: a keyed hash over the prompt, the previous thinking, the model and the words.

Rules of this file
------------------
1. A signature contains its bond, so a returned signature is checked without any memory (T1, T2, T6).
2. A signature never depends on cache breakpoints, on the order of tools or on the notation of a text (T3, T10): names
   are those of `thinking_bonds`.
"""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

from pagein.providers.validity.turns import Trail

_MAGIC: Final = b"pagein-simulated-1"
_NAME: Final = 16
_SHORT: Final = 8
_SIZE: Final = len(_MAGIC) + _NAME + 2 * _SHORT + _NAME
_NOTHING: Final = bytes(_SHORT)
_STANDARD: Final = str.maketrans("-_", "+/")  # libraries send bytes back in either alphabet, and APIs take both


@dataclass(frozen=True, slots=True)
class Seal:
    """The content of a signature: the name of the prompt, a digest of the previous signature, a digest of the model."""

    prompt: bytes
    previous: bytes
    model: bytes


def seal_thinking(key: bytes, before: Trail, model: str, words: str) -> str:
    """Sign the words of thinking, made by a model after a prompt."""
    seal = Seal(before.name, short(before.thinking), short(model))
    said = _MAGIC + seal.prompt + seal.previous + seal.model
    return base64.b64encode(said + _code(key, said, words)).decode()


def open_seal(key: bytes, signature: str, words: str | None) -> Seal | None:
    """Read a signature. None for a signature of a different provider, or for different words.

    words: None for hidden words.
    """
    try:
        raw = base64.b64decode(signature.translate(_STANDARD), validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != _SIZE or not raw.startswith(_MAGIC):
        return None
    said, code = raw[:-_NAME], raw[-_NAME:]
    if words is not None and not compare_digest(code, _code(key, said, words)):
        return None
    at = len(_MAGIC)
    return Seal(raw[at : at + _NAME], raw[at + _NAME : at + _NAME + _SHORT], raw[at + _NAME + _SHORT : -_NAME])


def trail_of(seal: Seal, signatures: Iterable[str]) -> Trail:
    """The prompt named by a seal. The previous signature is looked up among the signatures of the request."""
    if seal.previous == _NOTHING:
        return Trail(seal.prompt)
    return Trail(seal.prompt, next((one for one in signatures if short(one) == seal.previous), "not in this request"))


def short(text: str) -> bytes:
    """A digest of a signature or a model; zeros for an empty text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_SHORT).digest() if text else _NOTHING


def _code(key: bytes, said: bytes, words: str) -> bytes:
    return blake2b(said + words.encode("utf-8", "surrogatepass"), key=key, digest_size=_NAME).digest()


def is_ours(signature: str) -> bool:
    """Whether a signature looks like one of this provider, valid or not."""
    return signature.startswith(base64.b64encode(_MAGIC[:15]).decode())

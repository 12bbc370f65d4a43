"""Compare a prompt with the smallest one that the provider's cache stores, where storing costs more than sending.

A prompt below that minimum is paid at the plain price. If pagein's tools lift it over the minimum, it is written to the
cache, at up to twice the price, which the client's own prompt is not (law 5).
"""

import re
from collections.abc import Iterable
from math import ceil
from typing import Final

from pagein.engine.cache.cache_inputs import RequestTrail
from pagein.engine.intake.message_chain import Transcript
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.wire.formats import SYSTEM_FIELDS
from pagein.providers.wire.request_body import Envelope

_MOST: Final = 5.0
"""Bytes of a token at most, in a prompt prefix as a whole: English prose has about 4, code and JSON fewer."""
_LEAST: Final = 2.0
"""Bytes of a token at least, in a prompt as a whole."""
_WRAPPER: Final = 100
"""Bytes of a part at most for its braces, a role and a breakpoint, which are hardly a token."""
_ENCODED: Final = re.compile(rb'"(?:base64|signature|encrypted_content)"|"data:')


def is_below(model: str, prompt: int) -> bool:
    """Return whether a prompt of so many tokens was too small to be cached."""
    paid = newest_prices(model) if model else None
    return paid is not None and 0 < prompt < paid.cache.min_prefix


def is_front_uncached(envelope: Envelope, script: Transcript, trail: RequestTrail, model: str) -> bool:
    """Return whether the cache surely holds nothing of a prompt that begins anew, so that tools may leave at no cost.

    That is so where nothing of the branch was ever cached, and where the prompt prefix alone is too small for the cache.

    trail: the requests before on the branch.
    """
    if trail.answered is not None and not trail.may_be_cached and not trail.is_open:
        return True
    whole = sum(map(len, (*_front(envelope), *script.raws)))
    return is_below(model, trail.smallest) or is_below(model, ceil(whole / _LEAST))


def is_front_stored(envelope: Envelope, script: Transcript, model: str) -> bool:
    """Return whether the cache surely stores the client's prompt prefix alone, or storing it costs no more than sending it.

    Then tools lift no prompt over the minimum, however small the client makes it later.
    """
    paid = newest_prices(model) if model else None
    if paid is None or paid.write_5m <= 1.0:
        return True
    return _size((*_front(envelope), *script.raws[: script.head]), _WRAPPER) / _MOST >= paid.cache.min_prefix


def _front(envelope: Envelope) -> Iterable[bytes]:
    return (bytes(envelope.fields[name]) for name in ("tools", *SYSTEM_FIELDS) if name in envelope.fields)


def _size(raws: Iterable[bytes], wrapper: int = 0) -> int:
    """Return the bytes of parts of a prompt without those with an image or sealed text, whose bytes tell no tokens.

    wrapper: bytes of each part to leave out.
    """
    return sum(max(0, len(raw) - wrapper) for raw in raws if not _ENCODED.search(raw))

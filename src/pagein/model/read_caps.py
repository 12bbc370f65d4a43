"""The size limit of a read: how many lines and bytes of a file one read shows."""

from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True, slots=True)
class ReadCaps:
    """Maximum size of one read: whole lines up to `lines`, and up to `bytes` of UTF-8 with the line feeds between."""

    lines: int = 2000
    bytes: int = 50 * _KIB


DEFAULT_CAPS = ReadCaps()

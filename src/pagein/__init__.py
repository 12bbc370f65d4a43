"""pagein: virtual memory for the context window of coding agents."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagein.wiring import open as open  # noqa: A004 -- users write pagein.open

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`pagein.open` is fetched when it is asked for: importing pagein must stay cheap for those who only want its version."""
    if name == "open":
        from pagein.wiring import open as found

        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""pagein: virtual memory for the context window of coding agents."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagein.wiring import open as open  # noqa: A004 -- users write pagein.open

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import `pagein.open` on first use.

    `import pagein` must stay cheap for programs that only read the version.
    """
    if name == "open":
        from pagein.wiring import open as found

        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""pagein: virtual memory for the context window of coding agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pagein.adapters.sdk_clients import wrap as wrap
    from pagein.engine.engine import Engine as Engine
    from pagein.engine.engine import Settings as Settings
    from pagein.engine.session import Session as Session
    from pagein.errors import BadInput as BadInput
    from pagein.errors import BadSetting as BadSetting
    from pagein.errors import HostError as HostError
    from pagein.errors import NotRecallable as NotRecallable
    from pagein.errors import PageinError as PageinError
    from pagein.errors import StoreError as StoreError
    from pagein.wiring import open as open  # noqa: A004 -- users write pagein.open

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "BadSetting",
    "Engine",
    "HostError",
    "NotRecallable",
    "PageinError",
    "Session",
    "Settings",
    "StoreError",
    "open",
    "wrap",
]

_PLACES: Final = {
    "Engine": "pagein.engine.engine",
    "Session": "pagein.engine.session",
    "Settings": "pagein.engine.engine",
    "open": "pagein.wiring",
    "wrap": "pagein.adapters.sdk_clients",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use.

    `import pagein` must stay cheap for programs that only read the version.
    """
    if name in __all__:
        return getattr(import_module(_PLACES.get(name, "pagein.errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

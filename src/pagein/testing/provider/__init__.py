"""The simulated provider: a real HTTP server on loopback that answers by script, refuses what a provider would, and bills."""

from pagein.testing.provider.asked import Asked
from pagein.testing.provider.records import Bill, Record
from pagein.testing.provider.running import SimulatedProvider
from pagein.testing.provider.script import BREAK, Call, Failure, Said, Say, Script, Scripts, Think, Turn
from pagein.testing.provider.settings import Settings

__all__ = [
    "BREAK",
    "Asked",
    "Bill",
    "Call",
    "Failure",
    "Record",
    "Said",
    "Say",
    "Script",
    "Scripts",
    "Settings",
    "SimulatedProvider",
    "Think",
    "Turn",
]

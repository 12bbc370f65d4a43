"""The simulated provider: a real HTTP server on loopback that answers by script, refuses what a provider would, and bills."""

from pagein.simulator.model_call import Asked
from pagein.simulator.provider_settings import Settings
from pagein.simulator.provider_thread import SimulatedProvider
from pagein.simulator.records import Bill, Record
from pagein.simulator.script import BREAK, Call, Failure, Said, Say, Script, Scripts, Think, Turn

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

"""The simulated provider: a real HTTP server on loopback with scripted answers, real refusals and a bill."""

from pagein.simulator.model_call import ProviderCall
from pagein.simulator.provider_settings import ProviderSettings
from pagein.simulator.provider_thread import SimulatedProvider
from pagein.simulator.records import ProviderBill, Record
from pagein.simulator.script import BREAK, Failure, Said, Say, Script, ScriptCall, Scripts, ScriptTurn, Think

__all__ = [
    "BREAK",
    "Failure",
    "ProviderBill",
    "ProviderCall",
    "ProviderSettings",
    "Record",
    "Said",
    "Say",
    "Script",
    "ScriptCall",
    "ScriptTurn",
    "Scripts",
    "SimulatedProvider",
    "Think",
]

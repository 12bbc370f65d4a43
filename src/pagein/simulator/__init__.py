"""The simulated provider: a real HTTP server on loopback with scripted answers, real refusals and a bill."""

from pagein.simulator.model_call import ProviderCall
from pagein.simulator.provider_settings import ProviderSettings
from pagein.simulator.provider_thread import SimulatedProvider
from pagein.simulator.records import ProviderBill, Record
from pagein.simulator.script import BREAK, Failure, Say, Script, ScriptCall, ScriptPart, Scripts, ScriptTurn, Think

__all__ = [
    "BREAK",
    "Failure",
    "ProviderBill",
    "ProviderCall",
    "ProviderSettings",
    "Record",
    "Say",
    "Script",
    "ScriptCall",
    "ScriptPart",
    "ScriptTurn",
    "Scripts",
    "SimulatedProvider",
    "Think",
]

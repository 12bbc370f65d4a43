"""Real coding agents at work: what they are told, how they are run against a provider on this machine, what came of it.

`scripts/install_clients.sh` installs them. Their runs are scripted: the simulated provider says what the model would say.
"""

from pagein.testing.clients.agents import AGENTS, Agent, agent_named, commands_folder, version_of
from pagein.testing.clients.comparing import Figures, compared
from pagein.testing.clients.gateways import GatewayProcess
from pagein.testing.clients.jobs import LONG_JOB, Job
from pagein.testing.clients.runs import Outcome, Place, work

__all__ = [
    "AGENTS",
    "LONG_JOB",
    "Agent",
    "Figures",
    "GatewayProcess",
    "Job",
    "Outcome",
    "Place",
    "agent_named",
    "commands_folder",
    "compared",
    "version_of",
    "work",
]

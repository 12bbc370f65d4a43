"""Real coding agents at work: their tasks, their runs against a provider on this machine, and the results.

`scripts/install_clients.sh` installs them. Their runs are scripted: the simulated provider says what the model would say.
"""

from tests.agents.agent_drivers import AGENTS, GEMINI_CLI, Agent, agent_named, commands_folder, version_of
from tests.agents.comparison import JobFigures, compare_outcomes
from tests.agents.gateway_process import GatewayProcess
from tests.agents.jobs import LONG_JOB, ONE_PROMPT, PLANNING, Job
from tests.agents.runs import Outcome, Place, work

__all__ = [
    "AGENTS",
    "GEMINI_CLI",
    "LONG_JOB",
    "ONE_PROMPT",
    "PLANNING",
    "Agent",
    "GatewayProcess",
    "Job",
    "JobFigures",
    "Outcome",
    "Place",
    "agent_named",
    "commands_folder",
    "compare_outcomes",
    "version_of",
    "work",
]

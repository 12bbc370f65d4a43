"""Real coding agents at work: what they are told, how they are run against a provider on this machine, what came of it.

`scripts/install_clients.sh` installs them. Their runs are scripted: the simulated provider says what the model would say.
"""

from pagein.testing.clients.agents import AGENTS, Agent, agent_named, commands_folder
from pagein.testing.clients.jobs import LONG_JOB, SHORT_JOB, Edit, Job, Prompt, Read, Recall, Run, Say, scripts_for
from pagein.testing.clients.runs import Outcome, Place, work

__all__ = [
    "AGENTS",
    "LONG_JOB",
    "SHORT_JOB",
    "Agent",
    "Edit",
    "Job",
    "Outcome",
    "Place",
    "Prompt",
    "Read",
    "Recall",
    "Run",
    "Say",
    "agent_named",
    "commands_folder",
    "scripts_for",
    "work",
]

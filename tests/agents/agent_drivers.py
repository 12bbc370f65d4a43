"""The agents that are driven: with which settings they find a provider on this machine, and nothing else, and how they are asked.

Each runs with a home of its own, without telemetry, updates or looks at remote lists, and with an environment that holds only
what is said here. Settings: what each documents; which of them it heeds was measured with the versions of scripts/clients.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.agents.speech import CLAUDE_CODE, CODEX, CODEX_PROGRAMS, GEMINI, OPENCODE, OPENCODE_PATCHING, PI, Speech

from pagein.errors import BadInput
from pagein.providers.validity import Api

PLACEHOLDER_KEY: Final = "not-a-key"
"""What the agents take for the key of their provider."""
_WINDOW: Final = 200_000
_LONGEST_ANSWER: Final = 8_192


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent needs to start: settings files by their path in its home, and environment, in which `{home}` stands for it."""

    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent with a model at a provider.

    name: ours, of the agent and the wire format. program: its command. setup: given the provider's address without a path.
    arguments: of the command that carries one prompt (given by standard input) to its end; the flag says whether the last
    conversation goes on. answer: the final text in what it printed. thinks: it asks for thinking, so its model's answers begin so.
    lists_tools: its requests have a list of tools, to which a gateway can add.
    """

    name: str
    program: str
    api: Api
    model: str
    speech: Speech
    setup: Callable[[str, str], Setup]
    arguments: Callable[[str, bool], Sequence[str]]
    answer: Callable[[str], str]
    thinks: bool = False
    lists_tools: bool = True

    def settings(self, address: str) -> Setup:
        """Settings for a provider at this address."""
        return self.setup(address, self.model)

    def command(self, *, goes_on: bool) -> list[str]:
        """The command line."""
        return [self.program, *self.arguments(self.model, goes_on)]


def commands_folder() -> Path | None:
    """The folder with the agents' commands; None where they are not installed."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = Path(os.environ.get("PAGEIN_CLIENTS") or Path(cache) / "pagein" / "clients")
    return home / "node_modules" / ".bin" if (home / ".installed").is_file() else None


def search_path(commands: Path) -> str:
    """Where an agent finds programs: its own, node, and the system's."""
    node = shutil.which("node", path=str(commands)) or shutil.which("node")
    folders = [str(commands), *([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"]
    return os.pathsep.join(dict.fromkeys(folders))


def version_of(agent: Agent, commands: Path) -> str:
    """The version that was installed."""
    noted = (commands.parents[1] / ".installed").read_text(encoding="utf-8").splitlines()
    return next((line.split()[1] for line in noted if line.startswith(f"{agent.program} ")), "?")


def _claude_setup(address: str, _: str) -> Setup:
    return Setup(
        environment={
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": PLACEHOLDER_KEY,
            "CLAUDE_CONFIG_DIR": "{home}/claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }
    )


def _claude_arguments(model: str, goes_on: bool) -> Sequence[str]:  # noqa: FBT001 - the shape of all of these
    fixed = ["-p", "--model", model, "--output-format", "json", "--strict-mcp-config"]
    return [*(["--continue"] if goes_on else []), *fixed, "--allowedTools", "Bash", "Edit", "Read", "Write"]


def _claude_answer(printed: str) -> str:
    return str(json.loads(printed.strip().splitlines()[-1]).get("result", ""))


def _codex_setup(address: str, model: str) -> Setup:
    lines = {
        "model": model,
        "model_provider": "simulated",
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
    }
    provider = {"name": "simulated", "base_url": f"{address}/v1", "wire_api": "responses", "env_key": "SIMULATED_KEY"}
    numbers = {"request_max_retries": "0", "stream_max_retries": "0", "requires_openai_auth": "false"}
    text = [f"{name} = {json.dumps(value)}" for name, value in lines.items()]
    text += ["[model_providers.simulated]", *(f"{name} = {json.dumps(value)}" for name, value in provider.items())]
    text += [f"{name} = {value}" for name, value in numbers.items()]
    environment = {"CODEX_HOME": "{home}/codex", "SIMULATED_KEY": PLACEHOLDER_KEY}
    return Setup({"codex/config.toml": "\n".join([*text, ""])}, environment)


def _codex_arguments(_: str, goes_on: bool) -> Sequence[str]:  # noqa: FBT001
    fixed = ["exec", "--skip-git-repo-check", "--json"]
    return [*fixed, "resume", "--last", "-"] if goes_on else [*fixed, "-"]


def _codex_answer(printed: str) -> str:
    items = [event.get("item", {}) for event in _events(printed) if event.get("type") == "item.completed"]
    return next((str(item["text"]) for item in reversed(items) if item.get("type") == "agent_message"), "")


def _opencode_setup(provider: Mapping[str, Any], name: str, address: str, model: str) -> Setup:
    models = {model: {"name": model, "limit": {"context": _WINDOW, "output": _LONGEST_ANSWER}, "tool_call": True}}
    options = {"baseURL": f"{address}/v1", "apiKey": PLACEHOLDER_KEY}
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"{name}/{model}",
        "small_model": f"{name}/{model}",
        "enabled_providers": [name],
        "provider": {name: {**provider, "options": options, "models": models}},
    }
    environment = {
        "OPENCODE_CONFIG": "{home}/opencode.json",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    return Setup({"opencode.json": json.dumps(settings)}, environment)


def _opencode_arguments(_: str, goes_on: bool) -> Sequence[str]:  # noqa: FBT001
    return ["run", "--format", "json", *(["--continue"] if goes_on else [])]


def _opencode_answer(printed: str) -> str:
    texts = [event["part"]["text"] for event in _events(printed) if event.get("type") == "text"]
    return str(texts[-1]) if texts else ""


def _pi_setup(api: str, path: str, address: str, model: str) -> Setup:
    provider = {
        "baseUrl": f"{address}{path}",
        "api": api,
        "apiKey": PLACEHOLDER_KEY,
        "models": [{"id": model, "contextWindow": _WINDOW, "maxTokens": _LONGEST_ANSWER}],
    }
    settings = {"retry": {"enabled": False, "provider": {"maxRetries": 0}}}
    files = {
        "pi/models.json": json.dumps({"providers": {"simulated": provider}}),
        "pi/settings.json": json.dumps(settings),
    }
    return Setup(files, {"PI_CODING_AGENT_DIR": "{home}/pi", "PI_OFFLINE": "1", "PI_TELEMETRY": "0"})


def _pi_arguments(model: str, goes_on: bool) -> Sequence[str]:  # noqa: FBT001
    return ["--model", f"simulated/{model}", *(["--continue"] if goes_on else []), "-p"]


def _gemini_setup(address: str, _: str) -> Setup:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},  # without it no request is sent
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    environment = {
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_API_KEY": PLACEHOLDER_KEY,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "NO_COLOR": "1",
    }
    return Setup({".gemini/settings.json": json.dumps(settings)}, environment)


def _gemini_arguments(model: str, goes_on: bool) -> Sequence[str]:  # noqa: FBT001
    return ["-m", model, "--approval-mode", "yolo", "-o", "json", *(["--resume", "latest"] if goes_on else [])]


def _gemini_answer(printed: str) -> str:
    return str(json.loads(printed[printed.index("{") :]).get("response", ""))


def _events(printed: str) -> list[Mapping[str, Any]]:
    """What a program that prints one JSON object per line printed, other lines left out."""
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def _pi(name: str, api: Api, model: str, spoken: str, path: str) -> Agent:
    return Agent(
        name,
        "pi",
        api,
        model,
        PI,
        lambda *at: _pi_setup(spoken, path, *at),
        _pi_arguments,
        lambda printed: printed.strip(),
    )


def _opencode(name: str, api: Api, model: str, speech: Speech, provider: Mapping[str, Any]) -> Agent:
    called = "simulated" if provider else "anthropic"
    setup = lambda *at: _opencode_setup(provider, called, *at)  # noqa: E731
    return Agent(name, "opencode", api, model, speech, setup, _opencode_arguments, _opencode_answer)


_COMPATIBLE: Final = {"npm": "@ai-sdk/openai-compatible", "name": "simulated"}

AGENTS: Final = (
    Agent(
        "claude-code",
        "claude",
        "anthropic",
        "claude-sonnet-4-5",
        CLAUDE_CODE,
        _claude_setup,
        _claude_arguments,
        _claude_answer,
        thinks=True,
    ),
    Agent("codex", "codex", "openai_responses", "gpt-5.5", CODEX, _codex_setup, _codex_arguments, _codex_answer),
    Agent(
        "codex-programs",
        "codex",
        "openai_responses",
        "gpt-5.6-sol",
        CODEX_PROGRAMS,
        _codex_setup,
        _codex_arguments,
        _codex_answer,
        lists_tools=False,
    ),
    _opencode("opencode-chat", "openai_chat", "gpt-5.1", OPENCODE_PATCHING, _COMPATIBLE),
    _opencode("opencode-anthropic", "anthropic", "claude-sonnet-4-5", OPENCODE, {}),
    _pi("pi-chat", "openai_chat", "gpt-5.1", "openai-completions", "/v1"),
    _pi("pi-responses", "openai_responses", "gpt-5.5", "openai-responses", "/v1"),
    _pi("pi-anthropic", "anthropic", "claude-sonnet-4-5", "anthropic-messages", ""),
)
"""All that are driven: four programs, three wire formats."""


GEMINI_CLI: Final = Agent(
    "gemini-cli",
    "gemini",
    "gemini_generate_content",
    "gemini-3-flash-preview",
    GEMINI,
    _gemini_setup,
    _gemini_arguments,
    _gemini_answer,
    thinks=True,
)
"""Driven apart from the others, one prompt a conversation: 0.61.0 sends every result twice when it goes on with one."""


def agent_named(name: str) -> Agent:
    """The agent of this name. Raises BadInput where there is none."""
    found = next((agent for agent in AGENTS if agent.name == name), None)
    if found is None:
        raise BadInput(f"there is no agent {name}; there are {', '.join(agent.name for agent in AGENTS)}")
    return found

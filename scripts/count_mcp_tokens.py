"""Count the tokens of pagein's texts for an MCP client: the list of tools, the instructions, and the skill of the plugin.

python scripts/count_mcp_tokens.py            the usual tools, and each one that the setting adds
python scripts/count_mcp_tokens.py --json
python scripts/count_mcp_tokens.py --server COMMAND...    the list of another server, on standard input and output

Needs the extras `tokens` and, for another server, `mcp`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pagein.mcp.offered_tools import INSTRUCTIONS, TOOLS, USUAL, offered
from pagein.providers.tokens.vocabularies import exact_counter

MODEL = "gpt-5.5"
"""Its vocabulary is o200k_base."""
SKILL = Path(__file__).parents[1] / "extensions" / "claude-code" / "skills" / "pagein" / "SKILL.md"


async def listed(command: Sequence[str]) -> tuple[list[dict[str, object]], str]:
    """Return the tools of a server, as a client gets them, and the server's instructions."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with Client(stdio_client(server), mode="legacy") as client:  # what every server speaks
        found = await client.list_tools()
        return [
            one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in found.tools
        ], client.instructions or ""


def main() -> None:
    """Print the counts."""
    counter = exact_counter(MODEL)
    if counter is None:
        sys.exit("count_mcp_tokens.py: install the extra: pip install 'pagein[tokens]'")

    def count(value: object) -> int:
        return int(counter.count(value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))))

    if "--server" in sys.argv:
        others, instructions = asyncio.run(listed(sys.argv[sys.argv.index("--server") + 1 :]))
        needed = [{name: one[name] for name in ("name", "description", "inputSchema") if name in one} for one in others]
        told = {
            "tools": len(others),
            "as a client gets it": count(others),
            "names, descriptions, schemas": count(needed),
        }
        print(json.dumps({**told, "instructions": count(instructions)}))
        return
    tools = {
        name: {"description": count(one.description), "schema": count(one.definition["inputSchema"])}
        for name, one in sorted(TOOLS.items())
    }
    whole = {
        "the usual tools": count([one.definition for one in offered(USUAL)]),
        "every tool": count([one.definition for one in offered(tuple(TOOLS))]),
        "the server's instructions": count(INSTRUCTIONS),
        "the skill of the plugin for Claude Code": count(SKILL.read_text(encoding="utf-8")),
    }
    if "--json" in sys.argv:
        print(json.dumps({"tools": tools, "whole": whole}, indent=2))
        return
    for name, one in tools.items():
        print(f"| `{name}` | {one['description']} | {one['schema']} |")
    for name, tokens in whole.items():
        print(f"| {name} | | {tokens} |")


if __name__ == "__main__":
    main()

"""Count the tokens of what an MCP client is told: the list of tools, the instructions, and the skill of the plugin.

python scripts/count_mcp_tokens.py            the usual tools, and each one that the setting adds
python scripts/count_mcp_tokens.py --json

Needs the extra `tokens`.
"""

import json
import sys
from pathlib import Path

from pagein.mcp.offered_tools import INSTRUCTIONS, TOOLS, USUAL, offered
from pagein.providers.tokens.vocabularies import exact_counter

MODEL = "gpt-5.5"
"""Its vocabulary is o200k_base."""
SKILL = Path(__file__).parents[1] / "extensions" / "claude-code" / "skills" / "pagein" / "SKILL.md"


def main() -> None:
    """Print the counts."""
    counter = exact_counter(MODEL)
    if counter is None:
        sys.exit("count_mcp_tokens.py: install the extra: pip install 'pagein[tokens]'")

    def count(value: object) -> int:
        return int(counter.count(value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))))

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

"""Prompts that a program assembles itself: from files, symbol entries and history (tiered), or from objects (pooled).

prompts = tiered("claude-sonnet-5-5", session=pagein.open().session("fix-login"))
assembled = prompts.assemble(PromptContents(prompt="Why?", system="You fix bugs.", files={"a.py": text}))
reply = client.messages.create(**assembled.request)

agent = pooled("claude-sonnet-5-5", pagein.open().session("fix-login"), system="You fix bugs.")
agent.say("Why does the login fail?")
reply = client.messages.create(**agent.request())
calls = agent.hear(reply)
"""

from pagein.assembly.pooled_prompts import PooledAgent, PooledCall, pooled
from pagein.assembly.tiered_prompts import AssembledPrompt, TieredPrompts, tiered
from pagein.model.laid_prompts import HistoryMessage, PromptContents

__all__ = [
    "AssembledPrompt",
    "HistoryMessage",
    "PooledAgent",
    "PooledCall",
    "PromptContents",
    "TieredPrompts",
    "pooled",
    "tiered",
]

"""The cache's view of a Gemini prompt: instructions, tools, then the contents."""

from collections.abc import Iterator
from typing import Any

from pagein.providers.cache_simulator import Chains
from pagein.providers.prices.token_prices import Prices
from pagein.providers.validity.turns import TurnPart, object_at, objects_at, text_at
from pagein.providers.wire.body_check import turns_of
from pagein.simulator.model_call import Body, ProviderCall
from pagein.simulator.prompt_blocks import CacheBlock, PromptBlocks, Prompts, sums


def prompt_of(prompts: Prompts, asked: ProviderCall, _prices: Prices) -> PromptBlocks:
    """Read the prompt of a call."""
    stored = [*_blocks(prompts, asked, asked.stored)] if asked.stored else []
    blocks = [*stored, *_blocks(prompts, asked, asked.body)]
    chain = prompts.chain_ids(prompts.chains.extend(Chains.ROOT, ("gemini", asked.model)), blocks)
    return PromptBlocks(chain, sums(blocks), stored=len(stored))


def _blocks(prompts: Prompts, asked: ProviderCall, body: Body) -> Iterator[CacheBlock]:
    yield from (prompts.block(asked.model, part, "system") for part in _head(body))
    for turn in turns_of(body, asked.api).turns:
        for part in turn.parts:
            if part.kind != "thinking":
                yield prompts.block(asked.model, _countable(part), turn.side)


def _head(body: Body) -> Iterator[TurnPart]:
    told = object_at(body, "systemInstruction") or object_at(body, "system_instruction")
    for place, part in enumerate(objects_at(told, "parts")):
        yield TurnPart("text", -1, place, text=text_at(part, "text"))
    for place, tool in enumerate(objects_at(body, "tools")):
        yield TurnPart("tool", -1, place, source=tool)


def _countable(part: TurnPart) -> TurnPart:
    """A part in the form whose tokens are counted."""
    source: dict[str, Any] = dict(part.wire)
    if part.kind == "call":
        call = object_at(part.wire, "functionCall")
        source = {"name": text_at(call, "name"), "input": call.get("args")}
    elif part.kind == "result":
        answer = object_at(part.wire, "functionResponse")
        told = object_at(answer, "response")
        text = next((told[name] for name in ("output", "error") if isinstance(told.get(name), str)), "")
        source = {"content": text or str(dict(told)), "name": text_at(answer, "name")}
    return TurnPart(part.kind, part.message, part.block, part.id, part.text, None, source)

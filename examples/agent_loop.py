"""Your own agent loop with pagein, against a simulated provider: no key, no network, no cost.

    python examples/agent_loop.py
    python examples/agent_loop.py --plain      # the same without pagein

With a real provider, `call` is the SDK's own: `client.messages.create(**request)`.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen
from zlib import crc32

import pagein
from pagein.engine.session import Session
from pagein.simulator import SimulatedProvider
from pagein.tools.brief import answer_call, definitions
from pagein.tools.catalogue import PEEK, SEARCH, guidance

Fields = dict[str, Any]

MODEL = "claude-sonnet-5-5"
STEPS = 24
SYSTEM = "You check listings."
SHELL = {
    "name": "shell",
    "description": "Run a command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def shell(command: str) -> str:
    """What a command printed: a long listing, the same whenever it is asked for."""
    rows = (f"{command}: row {row}" for row in range(200))
    return "\n".join(f"{row}, checksum {crc32(row.encode()):010}" for row in rows)


def agent(call: Callable[[Fields], Fields], session: Session | None) -> list[Fields]:
    """Let the model work until it calls no tool any more. Returns the conversation as the agent keeps it: whole."""
    tools = [SHELL, *(definitions("anthropic") if session else [])]
    messages: list[Fields] = [
        {"role": "user", "content": "Check the listings, and tell what row 120 of the first was."}
    ]
    while True:
        request: Fields = {"model": MODEL, "max_tokens": 4096, "tools": tools, "messages": messages}
        request["cache_control"] = {"type": "ephemeral"}
        request["system"] = SYSTEM if session is None else f"{SYSTEM}\n\n{guidance((PEEK, SEARCH))}"
        if session is None:
            reply = call(request)
        else:
            reply = call(session.prepare(request).request)
            session.observe(reply)
        messages.append({"role": "assistant", "content": reply["content"]})
        calls = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not calls:
            return messages
        messages.append({"role": "user", "content": [result_of(one, session) for one in calls]})


def result_of(call: Fields, session: Session | None) -> Fields:
    """Run a tool: the agent's own, or one of pagein's that brings back what left the window."""
    result = {"type": "tool_result", "tool_use_id": call["id"]}
    if call["name"] == SHELL["name"]:
        return {**result, "content": shell(call["input"]["command"])}
    if session is None:
        return {**result, "content": f"there is no tool {call['name']}", "is_error": True}
    found = answer_call(session, call["name"], call["input"], call["id"])
    return {**result, "content": found.text, "is_error": found.is_error}


def model() -> list[list[object]]:
    """What the model does: it runs commands, and at the end looks up what it saw first."""
    work: list[list[object]] = [[{"tool": "shell", "args": {"command": f"list part-{step}"}}] for step in range(STEPS)]
    recall = [
        {"capture": {"id": r"pg-[0-9a-f]{8}-[0-9a-f]{8}(?= \| shell[^\n]*part-0: )"}},
        {"tool": "peek", "args": {"id": "{{id}}", "line": 121, "lines": 1}},
        {"otherwise": [{"text": "The first listing is still in my window."}]},
    ]
    return [*work, recall, [{"text": "Done."}]]


def post(url: str, request: Fields) -> Fields:
    """One model call over HTTP."""
    headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
    asked = Request(f"{url}/v1/messages", json.dumps(request).encode(), headers)  # noqa: S310 -- always HTTP
    with urlopen(asked) as answer:  # noqa: S310 -- as above
        reply: Fields = json.load(answer)
    return reply


def main() -> None:
    """Run the agent and print the provider's bill."""
    parser = argparse.ArgumentParser(description="An agent loop with pagein.")
    parser.add_argument("--plain", action="store_true", help="run it without pagein")
    parser.add_argument("--store", default=":memory:", help="where pagein keeps what leaves the window")
    asked = parser.parse_args()
    with SimulatedProvider(model()) as provider, pagein.open(asked.store) as engine:
        session = None if asked.plain else engine.session("example", model=MODEL)
        messages = agent(lambda request: post(provider.url, request), session)
        bill = provider.bill()
        told = [f"{bill.requests} calls, {bill.refused} refused, {bill.bit:,.0f} BIT, ${bill.usd or 0:.3f}"]
        if session is not None:
            stubs = [one for one in session.hand.window() if one.form != "whole"]
            told.append(f"{len(stubs)} of {STEPS} listings left the window; {stubs[0].object_id} is the first")
            told.append("recalled: " + messages[-2]["content"][0]["content"].splitlines()[0])
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()

"""An agent of one's own that speaks Gemini's `generateContent`, with pagein in its loop: the model stands in the address of the call."""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pagein
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.session import Session
from pagein.simulator import SimulatedProvider
from pagein.simulator.records import ProviderBill
from pagein.tools.brief import answer_call, definitions

Fields = dict[str, Any]

MODEL = "gemini-3.8-flash"
TASKS = 14
THOUGHT = {"thinking": "I look."}  # the first call of an answer has the signature of the thought
SHELL = {"name": "shell", "description": "Run a command.", "parameters": {"type": "object"}}


def shell(command: str) -> str:
    return "\n".join(f"{command}: row {row}, {'x' * 30}" for row in range(200))


def script() -> list[list[object]]:
    """Each task is one command; the last one looks up what an earlier one printed."""
    work = [
        turn
        for task in range(TASKS)
        for turn in ([THOUGHT, {"tool": "shell", "args": {"command": f"list part-{task}"}}], [{"text": "Done."}])
    ]
    recall = [
        {"capture": {"id": r"pg-[0-9a-f]{8}-[0-9a-f]{8}(?= \| shell[^\n]*part-6: )"}},
        THOUGHT,
        {"tool": "peek", "args": {"id": "{{id}}", "line": 121, "lines": 1}},
        {"otherwise": [{"text": "The listing is still in my window."}]},
    ]
    return [*work, recall, [{"text": "Done."}]]  # type: ignore[list-item]


def post(url: str, body: bytes) -> Fields:
    asked = Request(f"{url}/v1beta/models/{MODEL}:generateContent", body, {"x-goog-api-key": "none"})  # noqa: S310 - HTTP
    with urlopen(asked) as answer:  # noqa: S310 - as above
        reply: Fields = json.load(answer)
    return reply


def work(call: Callable[[Fields], Fields], session: Session | None) -> list[Fields]:
    """The agent's loop. Returns the conversation as the agent keeps it."""
    tools = [{"functionDeclarations": [SHELL, *(definitions("gemini_generate_content") if session else [])]}]
    contents: list[Fields] = []
    for task in range(TASKS + 1):
        contents.append({"role": "user", "parts": [{"text": f"Do task {task}."}]})
        while True:
            fields = {
                "contents": contents,
                "systemInstruction": {"parts": [{"text": "You check listings."}]},
                "tools": tools,
            }
            said = call(fields)["candidates"][0]["content"]
            contents.append(said)
            calls = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
            if not calls:
                break
            contents.append({"role": "user", "parts": [answer_to(one, session) for one in calls]})
    return contents


def answer_to(call: Fields, session: Session | None) -> Fields:
    own = call["name"] == "shell" or session is None
    text = (
        shell(call["args"]["command"])
        if own or session is None
        else answer_call(session, call["name"], call["args"], call["id"]).text
    )
    return {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": text}}}


def run(
    session: Session | None, **given: str
) -> tuple[list[Fields], ProviderBill, list[tuple[PreparedRequest, Observation]]]:
    seen: list[tuple[PreparedRequest, Observation]] = []
    with SimulatedProvider(script()) as provider:

        def call(fields: Fields) -> Fields:
            if session is None:
                return post(provider.url, json.dumps(fields).encode())
            prepared = session.prepare(fields, **given)  # type: ignore[arg-type]
            reply = post(provider.url, prepared.body)
            seen.append((prepared, session.observe(reply, prepared)))
            return reply

        return work(call, session), provider.bill(), seen


def test_a_session_that_is_told_the_model_decides_by_its_prices() -> None:
    whole, plain, _ = run(None)
    with pagein.open(":memory:") as engine:
        session = engine.session("gemini")
        contents, bill, seen = run(session, model=MODEL)
        assert session.model == MODEL
    assert (plain.refused, bill.refused) == (0, 0)
    assert bill.bit < plain.bit * 0.8
    assert {prepared.model for prepared, _ in seen} == {MODEL}
    assert {prepared.failure for prepared, _ in seen} == {None}
    assert [one.usage is not None for _, one in seen] == [True] * len(seen)
    assert any(prepared.replaced for prepared, _ in seen)
    assert any(prepared.gained for prepared, _ in seen)  # saved, by the prices of this model
    [recalled] = [part["functionResponse"]["response"]["output"] for part in contents[-2]["parts"]]
    assert "list part-6: row 120" in recalled
    assert whole[:2] == contents[:2]


def test_the_model_of_the_address_wins_and_may_change_with_every_call() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("gemini")
        fields = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]}
        assert session.prepare(fields).model == ""
        assert session.prepare(fields, model="gemini-2.5-pro").model == "gemini-2.5-pro"
        assert session.prepare(fields, model=MODEL).model == MODEL
        assert session.model == MODEL


def test_a_coroutine_tells_the_model_too() -> None:
    with pagein.open(":memory:") as engine:
        fields = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]}
        prepared = asyncio.run(engine.session("gemini").aprepare(fields, model=MODEL))
        assert prepared.model == MODEL

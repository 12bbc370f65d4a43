import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.simulator.raw_clients import Wire, begun


@contextmanager
def started(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "pagein", "provider", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it says until it ends. `communicate` would lose what was read together with the first line."""
    assert process.stdout is not None
    assert process.stderr is not None
    said = process.stdout.read(), process.stderr.read()
    process.wait(120)
    return said


def post(url: str, body: Wire) -> Wire:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310 - our own
    with urlopen(request, timeout=120) as answer:  # noqa: S310 - our own
        found: Wire = json.loads(answer.read())
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_provider_serves_until_it_is_ended_and_prints_the_bill(tmp_path: Path, number: signal.Signals) -> None:
    script, record = tmp_path / "job.json", tmp_path / "requests.jsonl"
    script.write_text('[[{"text": "from the file"}]]')
    with started("--script", str(script), "--record", str(record), "--prices", "generic:r=.1", "--json") as process:
        url = json.loads(first_line(process))["url"]
        body = post(url + "/v1/messages", begun("anthropic", "hi"))
        process.send_signal(number)
        out, err = rest(process)
    assert body["content"] == [{"type": "text", "text": "from the file"}]
    assert (process.returncode, err) == (0, "")
    bill = json.loads(out)["bill"]
    assert (bill["requests"], bill["usage"]["fresh"]) == (1, body["usage"]["input_tokens"])
    assert len(record.read_text().splitlines()) == 1


def test_the_provider_prints_its_address_and_its_number_of_calls() -> None:
    with started() as process:
        greeting = first_line(process)
        url = greeting.split()[-1]
        post(url + "/v1/messages", begun("anthropic", "hi"))
        process.send_signal(signal.SIGINT)
        out, err = rest(process)
    assert greeting.startswith("simulated provider at http://127.0.0.1:")
    assert f"ANTHROPIC_BASE_URL={url}" in out
    assert err.startswith("1 model call, 0 refused")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--api", "grok"], "--api grok: one of anthropic, openai-chat, openai-responses, gemini"),
        (["--script", "no-such-file.json"], "no-such-file.json: No such file"),
        (["--script", __file__], "is not JSON"),
        (["--prices", "no-such-model"], "no prices for 'no-such-model'"),
        (["--account", "yesterday"], "--account yesterday: no date"),
        (["--speed", "0"], "--speed 0: more than 0"),
        (["--record", "no/such/folder/x.jsonl"], "no/such/folder/x.jsonl"),
    ],
)
def test_an_impossible_option_of_the_provider_is_refused_in_one_line(options: list[str], words: str) -> None:
    with started(*options) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken_is_said() -> None:
    with started("--json") as first:
        port = json.loads(first_line(first))["url"].rpartition(":")[2]
        with started("--port", port) as second:
            _, err = second.communicate(timeout=120)
    assert (second.returncode, f"cannot listen at 127.0.0.1 port {port}" in err) == (2, True)

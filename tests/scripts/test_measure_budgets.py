"""Budgets are measured by one command, on whatever sessions it is given."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _measured(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "measure_budgets.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 our own script


def _line(**fields: object) -> str:
    return json.dumps(
        {"sessionId": "s", "timestamp": "2026-11-20T10:00:00Z", "version": "2.0.0", "cwd": "/w", **fields}
    )


def _said(number: int, role: str, content: object) -> str:
    message = {"role": role, "content": content, **({"model": "claude-sonnet-4-5"} if role == "assistant" else {})}
    return _line(type=role, uuid=f"u{number}", parentUuid=f"u{number - 1}" if number else None, message=message)


def _called(number: int, name: str, arguments: dict[str, object], result: str) -> list[str]:
    call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
    return [_said(2 * number + 1, "assistant", [call]), _said(2 * number + 2, "user", [answer])]


def test_reads_of_known_lines_cost_nothing_and_a_search_that_narrows_restores(tmp_path: Path) -> None:
    text = "".join(f"{line:>6}\u2192line {line}\n" for line in range(1, 11))
    lines = [_said(0, "user", "please")]
    for number in range(30):
        if number == 20:
            lines += _called(number, "Grep", {"pattern": "line"}, "Found 1 file\n/w/a.py")
        else:
            lines += _called(number, "Read", {"file_path": f"/w/f{number % 15}.py"}, text)
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    done = _measured(str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sessions"] == 1
    most = {way: (kinds["reads"][-1], kinds["lines"][-1]) for way, kinds in told["spent"].items()}
    assert most["as written"] == (28, 280)
    assert most["restored"] == (19, 190)
    # each of the 15 files was new once; the last new one came behind 14 others
    assert most["new lines"] == most["restored, new lines"] == (14, 140)
    assert told["meets"]["strict"]["as written"]["hard"] == 1.0
    assert told["meets"]["strict"]["restored"] == {"soft": 0.0, "hard": 0.0}


def test_where_there_is_nothing_to_measure_that_is_told(tmp_path: Path) -> None:
    done = _measured(str(tmp_path))
    assert (done.returncode, done.stderr.strip()) == (2, "no session could be used")

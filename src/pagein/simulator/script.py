"""Scripts of the simulated provider: a script is a list of turns, and each turn answers a model call.

As JSON a turn is a list. Its items are the content of the answer, in order, and directions for the turn as a whole:

    {"text": "..."}  {"thinking": "..."}  {"redacted": "..."}  {"tool": "read", "args": {...}, "ns": "mcp__pagein"}
    {"usage": 31000}  {"usage": {"input": 31000, "output": 5, "read": 0, "written": 0}}
    {"error": 429, "retry_after": 2, "times": 1, "after": 5, "kind": "...", "message": "..."}  {"break": 5, "times": 1}
    {"break": null}
    {"wait": .5}  {"delay": .01}  {"stop": "max_tokens"}
    {"capture": {"id": "id ([0-9a-f-]+)"}}  {"otherwise": [...]}

`{{id}}` in texts and arguments is replaced by the text captured from the request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput

Json: TypeAlias = Mapping[str, Any]

BREAK: Final = 0
"""Status of a failure without an answer: the connection ends."""


@dataclass(frozen=True, slots=True)
class Say:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking. With `redacted` the text never leaves the provider."""

    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A tool call. String arguments are the free text for a custom tool (Responses only)."""

    tool: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    namespace: str | None = None


ScriptPart: TypeAlias = Say | Think | ScriptCall


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a turn.

    status: HTTP status of the answer; BREAK ends the connection.
    after: number of streamed events before the failure; None: fail instead of answering.
    times: how often the same request fails before it is answered; 0: always.
    retry_after: seconds, for the header.
    kind, message: of the error; None: the provider's own words.
    """

    status: int
    after: int | None = None
    times: int = 1
    retry_after: float | None = None
    kind: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """The answer to a model call.

    usage: figures that replace the simulated ones (`input`, `read`, `written`, `output`).
    wait: seconds before the first byte.
    delay: seconds before each event of a stream.
    stop: stop reason; None for the natural one.
    captures: regular expressions by name.
    otherwise: the turn to use if a capture fails.
    """

    said: tuple[ScriptPart, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    failure: Failure | None = None
    wait: float = 0.0
    delay: float = 0.0
    stop: str | None = None
    captures: Mapping[str, str] = field(default_factory=dict)
    otherwise: "ScriptTurn | None" = None


@dataclass(frozen=True, slots=True)
class Script:
    """A list of turns."""

    turns: tuple[ScriptTurn, ...]

    @property
    def calls_tools(self) -> bool:
        """Whether any turn calls a tool."""
        return any(isinstance(one, ScriptCall) for turn in self.turns for one in turn.said)


@dataclass(frozen=True, slots=True)
class Scripts:
    """The scripts of a provider.

    plain: for prompts that do not name a script.
    named: by the name in `SCRIPT@name`.
    """

    plain: Script | None = None
    named: Mapping[str, Script] = field(default_factory=dict)


NO_SCRIPTS: Final = Scripts()


def scripts_from(value: object) -> Scripts:
    """Parse scripts: a list of turns, or an object of named scripts with the plain script as `default`. Raises BadInput."""
    if isinstance(value, Scripts):
        return value
    if isinstance(value, Script):
        return Scripts(value)
    if isinstance(value, Mapping):
        named = {str(name): script_from(turns, f"script {name}") for name, turns in value.items()}
        return Scripts(named.get("default"), named)
    return Scripts(script_from(value))


def script_from(value: object, what: str = "script") -> Script:
    """Parse a script from a list of turns. Raises BadInput with the number of the turn."""
    if isinstance(value, Script):
        return value
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BadInput(f"{what}: not a list of turns")
    return Script(tuple(turn_from(one, f"{what}: turn {place}") for place, one in enumerate(value)))


def turn_from(value: object, what: str = "turn") -> ScriptTurn:
    """Parse a turn from a list of content and directions. A bare string is content. Raises BadInput."""
    if isinstance(value, ScriptTurn):
        return value
    if isinstance(value, str):
        return ScriptTurn((Say(value),))
    items = [value] if isinstance(value, Mapping) else value
    if not isinstance(items, Sequence):
        raise BadInput(f"{what}: not a list")
    turn = ScriptTurn()
    for item in items:
        turn = _with(turn, item, what)
    return turn


def _with(turn: ScriptTurn, item: object, what: str) -> ScriptTurn:
    if isinstance(item, Say | Think | ScriptCall):
        return replace(turn, said=(*turn.said, item))
    if isinstance(item, str):
        return replace(turn, said=(*turn.said, Say(item)))
    if not isinstance(item, Mapping):
        raise BadInput(f"{what}: {item!r} is neither text nor an object")
    read = next((reader for key, reader in _READERS.items() if key in item), None)
    if read is None:
        raise BadInput(f"{what}: {dict(item)!r} has none of {', '.join(_READERS)}")
    try:
        return read(turn, item)
    except (TypeError, ValueError, AttributeError) as problem:
        raise BadInput(f"{what}: {dict(item)!r}: {problem}") from problem


def _say(turn: ScriptTurn, item: Json) -> ScriptTurn:
    return replace(turn, said=(*turn.said, Say(_text(item["text"]))))


def _think(turn: ScriptTurn, item: Json) -> ScriptTurn:
    return replace(turn, said=(*turn.said, Think(_text(item["thinking"]))))


def _think_redacted(turn: ScriptTurn, item: Json) -> ScriptTurn:
    return replace(turn, said=(*turn.said, Think(_text(item["redacted"]), redacted=True)))


def _call(turn: ScriptTurn, item: Json) -> ScriptTurn:
    args = item.get("args", {})
    namespace = item.get("ns")
    call = ScriptCall(
        _text(item["tool"]),
        args if isinstance(args, str) else dict(args),
        None if namespace is None else str(namespace),
    )
    return replace(turn, said=(*turn.said, call))


def _usage(turn: ScriptTurn, item: Json) -> ScriptTurn:
    given = item["usage"]
    figures = {"input": int(given)} if isinstance(given, int) else {str(k): int(v) for k, v in given.items()}
    if strange := sorted(figures.keys() - {"input", "read", "written", "output"}):
        raise ValueError(f"usage has no {', '.join(strange)}")
    return replace(turn, usage=figures)


def _error(turn: ScriptTurn, item: Json) -> ScriptTurn:
    after, wait = item.get("after"), item.get("retry_after")
    failure = Failure(
        int(item["error"]),
        None if after is None else int(after),
        int(item.get("times", 1)),
        None if wait is None else float(wait),
        item.get("kind"),
        item.get("message"),
    )
    return replace(turn, failure=failure)


def _break(turn: ScriptTurn, item: Json) -> ScriptTurn:
    return replace(
        turn, failure=Failure(BREAK, None if item["break"] is None else int(item["break"]), int(item.get("times", 1)))
    )


def _otherwise(turn: ScriptTurn, item: Json) -> ScriptTurn:
    return replace(turn, otherwise=turn_from(item["otherwise"], "otherwise"))


_READERS: Final[Mapping[str, Callable[[ScriptTurn, Json], ScriptTurn]]] = {
    "text": _say,
    "thinking": _think,
    "redacted": _think_redacted,
    "tool": _call,
    "usage": _usage,
    "error": _error,
    "break": _break,
    "wait": lambda turn, item: replace(turn, wait=float(item["wait"])),
    "delay": lambda turn, item: replace(turn, delay=float(item["delay"])),
    "stop": lambda turn, item: replace(turn, stop=_text(item["stop"])),
    "capture": lambda turn, item: replace(turn, captures={str(k): _text(v) for k, v in item["capture"].items()}),
    "otherwise": _otherwise,
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value

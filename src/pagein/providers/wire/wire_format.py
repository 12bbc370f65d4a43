"""The contract of a wire format: every difference between the providers' notations of requests and answers.

A format is one `WireFormat` value, made in a folder of its own beside this module, with a row in `formats.FORMATS`. All
other code asks the value; it never compares names of formats. `pagein.testing.wire_format` checks an implementation.

Rules of this file
------------------
1. All functions are pure. They accept any JSON: a wrong type counts as an absent value, unless BadInput is named.
2. What a function does not change keeps its bytes.
3. An absent ability is data (`None`, False or empty), so that callers need no exceptions for a format.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pagein.model.messages import Block, Message, Usage
from pagein.model.server_results import ServerResult
from pagein.providers.caches.cache_values import Breakpoint
from pagein.providers.validity.rules import ValidityRule
from pagein.providers.validity.turns import Api, PromptTurn, TurnPart, Turns, Wire
from pagein.providers.wire.json_values import Json
from pagein.providers.wire.message_texts import MessageTexts
from pagein.providers.wire.streams.model_reply import ModelReply, ReplyReader
from pagein.providers.wire.streams.model_turn import ModelTurn, OwnToolResult
from pagein.providers.wire.streams.stream_merge import StreamMerger


class Render(Protocol):
    """Renders neutral messages as a request body of plain values."""

    def __call__(self, messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ServerResultForm:
    """The form of results of the provider's own tools in a message of the model.

    results: the results of finished calls among the neutral blocks of a message.
    with_stubs: puts texts in place of blocks of a message, given by block, and removes everything that could point to
        what was there. A block with an empty text is left out.
    may_leave: whether results of finished turns may leave a request, given as the bytes of its fields and of its messages
        since the user's last words.
    """

    results: Callable[[Sequence[Block]], tuple[ServerResult, ...]]
    with_stubs: Callable[[bytes, Mapping[int, str]], bytes]
    may_leave: Callable[[Mapping[str, bytes], Sequence[bytes]], bool]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """How a request is written. A message is one item of the list of messages; a block is one neutral block of it.

    items: the field of the body that holds the messages.
    system_fields: the fields of the body that hold prompts outside the messages.
    system: reads these prompts from the decoded fields.
    message: converts a decoded message. Its second argument is the number of the message in the request: a format whose
        calls have no ids makes ids of it that are unique in the request and equal for a call and its result.
    with_results: replaces the content of results in a message, given by block.
    with_arguments: replaces the arguments of calls in a message, given as JSON text by block.
    user_message: a message of the user with one text, of plain values.
    with_notes: appends texts to a message of the user's side. Returns the message, and new messages after it if the
        format needs them, joined by commas.
    with_words: changes the texts of a user message.
    render: renders neutral messages as a request body.
    cache_blocks: the blocks of a decoded message as the prompt cache counts them, each with its side (`user`, `tool`,
        `assistant` or a further role).
    without_blocks: removes some blocks of thinking from a message; None for a format without such blocks.
    server_results: the form of results of the provider's own tools in a message; None if they never leave.
    takes_bare_string: whether a bare string may stand for the list of messages.
    has_call_ids: whether calls and results carry ids. False: ids made by `message` are no part of what was said.
    model_field: the field of the body with the model's name; "" if the name is in the path of the request.
    """

    items: str
    system_fields: tuple[str, ...]
    system: Callable[[Mapping[str, object]], tuple[Message, ...]]
    message: Callable[[Json, int], Message]
    with_results: Callable[[bytes, Mapping[int, str]], bytes]
    with_arguments: Callable[[bytes, Mapping[int, str]], bytes]
    user_message: Callable[[str], dict[str, Any]]
    with_notes: Callable[[bytes, Sequence[str]], bytes]
    with_words: Callable[[bytes, MessageTexts], bytes]
    render: Render
    cache_blocks: Callable[[Json], Sequence[tuple[Json, str]]]
    without_blocks: Callable[[bytes, Collection[int]], bytes] | None = None
    server_results: ServerResultForm | None = None
    takes_bare_string: bool = False
    has_call_ids: bool = True
    model_field: str = "model"


@dataclass(frozen=True, slots=True)
class DeferralForm:
    """The form of deferred tools, which stay out of the prompt until a search finds them.

    search: the definition of the provider's tool that searches; its `name` is in no use by clients.
    tokens: its tokens in the prompt.
    may_defer: whether a definition may be deferred.
    is_free: whether some definitions leave deferral to pagein: the client searches for none of its own tools, and uses
        nothing that tool search does not go with.
    deferred: the bytes of a definition as a deferred one.
    """

    search: Json
    tokens: int
    may_defer: Callable[[Json], bool]
    is_free: Callable[[Sequence[Json]], bool]
    deferred: Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class ToolForm:
    """How tools are offered in a request.

    definition: the definition of a tool from its name, its description and the JSON schema of its arguments.
    definitions: the definitions in the decoded value of the field `tools`, one by one. Each has a `name`, and the schema
        of its arguments under `parameters` or `input_schema`, itself or in the object `function`.
    offered: adds definitions to the bytes of the field `tools`, after the client's own, whose bytes stay.
    is_function: whether a definition is a function that the client answers.
    may_continue: whether recall answers may continue a request, given as the bytes of its fields: the model answers
        once, and the provider keeps nothing of the conversation.
    deferral: how tools are deferred; None for a format without tool search, or whose search spares too little.
    """

    definition: Callable[[str, str, Mapping[str, Any]], dict[str, Any]]
    definitions: Callable[[object], list[Json]]
    offered: Callable[[bytes, Sequence[bytes]], bytes]
    is_function: Callable[[Json], bool]
    may_continue: Callable[[Mapping[str, bytes]], bool]
    deferral: DeferralForm | None = None


@dataclass(frozen=True, slots=True)
class BreakpointForm:
    """How cache breakpoints are written.

    field: the field of a block that holds its breakpoint.
    text: the type of block for which a plain string is the short form.
    may_carry: whether the provider accepts a breakpoint on a block; its turn is None for tools and system.
    word: the TTL of a breakpoint, as `TurnPart.mark` has it.
    mark: the value of the field for such a TTL.
    automatic: the field of the body with the automatic breakpoint; "" if there is none.
    marks_end: whether the request marks its own end. False: the provider does, and uses one of the breakpoints for it.
    """

    field: str
    text: str
    may_carry: Callable[[PromptTurn | None, TurnPart], bool]
    word: Callable[[Breakpoint], str]
    mark: Callable[[str], Wire]
    automatic: str = ""
    marks_end: bool = True


@dataclass(frozen=True, slots=True)
class CacheForm:
    """What a request says about the prompt cache. How a cache behaves is data of its own: `caches/cache_rules.py`.

    A cache that promises nothing is such data too: `CacheRules.hit_probability`.

    unpriced: the price specification for a model without known prices.
    breakpoints: how breakpoints are written; None for a format without breakpoints.
    needs_breakpoints: whether nothing is cached without a breakpoint. False: prefixes are cached implicitly.
    depends_on_settings: whether settings of the request, such as thinking, distinguish prompts in the cache.
    takes_ttls: whether a request chooses between TTLs by its breakpoints, so that pagein may add breakpoints, choose
        TTLs and send keep-alive requests.
    miss_question: the field of a request, with its value, that asks why the cache was missed, from the name of the answer
        before or None; None for a format without such a field. A model's answer in this format then has an `id`.
    """

    unpriced: str
    breakpoints: BreakpointForm | None = None
    needs_breakpoints: bool = False
    depends_on_settings: bool = False
    takes_ttls: bool = False
    miss_question: Callable[[str | None], tuple[str, Json]] | None = None


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer, and of the messages that continue an answer.

    usage_field: the field of an answer, or of an event of a stream, that holds the usage.
    usage: reads this field.
    reader: makes a reader for the events of a stream.
    whole: reads an answer without streaming, an object without an error.
    turn: separates recall calls, given by the names of the recall tools, from the client's calls.
    result: a recall result, in the form that goes beside the client's own results.
    results: recall results, in the form of `result`, as messages to send back.
    with_results: inserts results at the start of the client's message; None: results are messages of their own.
    merger: makes a merger for the streams of an answer, without the calls of these tools.
    merged: merges consecutive answers into one, without the calls of these tools.
    """

    usage_field: str
    usage: Callable[[Json], Usage]
    reader: Callable[[], ReplyReader]
    whole: Callable[[Json], ModelReply]
    turn: Callable[[ModelReply, Collection[str]], ModelTurn]
    result: Callable[[OwnToolResult], Json]
    results: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]
    merger: Callable[[Collection[str]], StreamMerger]
    merged: Callable[[Sequence[Json], Collection[str]], Json]
    with_results: Callable[[bytes, Sequence[bytes]], bytes] | None = None


@dataclass(frozen=True, slots=True)
class ValidityForm:
    """The rules for requests that the provider accepts.

    turns: converts a body to turns, the input of the rules.
    rules: the rules by id. Several formats may share a rule: then it is the same value under the same id.
    with_answer: a body with an answer appended, given as blocks or messages of the format.
    binds_thinking: whether blocks of thinking may be bound to the prompt before them. The model decides whether they are.
    signs_open_turn: whether signatures of calls are checked until the user's next words, so that nothing is evicted or
        masked until then.
    """

    turns: Callable[[Wire], Turns]
    rules: Mapping[str, ValidityRule]
    with_answer: Callable[[Wire, Sequence[Wire]], Wire]
    binds_thinking: bool = False
    signs_open_turn: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path that a vendor knows.

    name: its name in figures and logs.
    is_call: whether it is a model call in this format. False: a further path, such as the count of tokens.
    model: the model's name, if the path has it.
    streams: whether the path asks for a stream.
    query: what the query of a call must contain, so that its answer can be read. Without it the call passes through.
    """

    name: str
    is_call: bool = True
    model: str = ""
    streams: bool = False
    query: str = ""


@dataclass(frozen=True, slots=True)
class HttpForm:
    """The format over HTTP: vendor, paths, errors.

    vendor: the upstream, by the name of its setting. Formats of one vendor share `error` and `claims`.
    endpoint: the meaning of a path without its query; None for a path of another format. Calls are requests by POST.
    prefixes: beginnings of further paths of the vendor, with or without `/v1` before them.
    claims: whether headers, with names in lower case, show a client of the vendor.
    error: the body of an error, from a status, a message and a code for logs.
    path: the path of a call without a stream; `{model}` stands for the model's name.
    """

    vendor: str
    endpoint: Callable[[str], Endpoint | None]
    prefixes: tuple[str, ...]
    claims: Callable[[Mapping[str, str]], bool]
    error: Callable[[int, str, str], Json]
    path: str


@dataclass(frozen=True, slots=True)
class WireFormat:
    """A wire format.

    name: used by callers, logs and the journal. It never changes: older stores contain it.
    likeness: how certain it is that a decoded body is written in this format: 0 for impossible. The surest format is
        taken when nobody names one; no two formats give the same number above 0 for one body.
    """

    name: Api
    likeness: Callable[[Json], int]
    requests: RequestForm
    tools: ToolForm
    cache: CacheForm
    answers: AnswerForm
    validity: ValidityForm
    http: HttpForm

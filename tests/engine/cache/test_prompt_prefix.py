"""The part of a prompt in front of the conversation."""

from pagein.engine.cache.cache_inputs import changed_parts, head_of
from pagein.engine.intake.message_chain import transcript
from pagein.providers.wire.request_body import open_body

BODY = b'{"model":"gpt-5.1","reasoning":{"effort":"low"},"text":{"verbosity":"low"},"input":[{"role":"user","content":"hi"}]}'


def test_settings_of_a_request_are_part_of_its_head() -> None:
    quiet, eager = (
        open_body(body, "openai_responses") for body in (BODY, BODY.replace(b'"effort":"low"', b'"effort":"high"'))
    )
    heads = [head_of(one, transcript(one.items, one.api), "beta-1") for one in (quiet, eager)]
    assert changed_parts(*heads) == ("settings",)


def test_what_the_caller_says_is_part_of_a_head() -> None:
    one = open_body(BODY, "openai_responses")
    script = transcript(one.items, one.api)
    assert changed_parts(head_of(one, script, "beta-1"), head_of(one, script, "beta-2")) == ("headers",)

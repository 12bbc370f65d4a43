import time

import pytest

from pagein.model.messages import Message, Text
from pagein.policy.clients.client_prompts import is_client_prompt, user_words


@pytest.mark.parametrize(
    "text",
    [
        "Generate a title for this conversation:\n",
        "What did we do so far?",
        "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary",
        "The conversation history before this point was compacted into the following summary:\n\n<summary>",
        "<conversation>\n[User]: fix it\n</conversation>\n\nThe messages above are a conversation to summarize.",
        "This session is being continued from a previous conversation that ran out of context. The summary",
        "<command-name>/clear</command-name>\n   <command-message>clear</command-message>\n   <command-args></command-args>",
        "<command-message>compact</command-message>\n<command-name>/compact</command-name>\n<command-args>be short</command-args>",
        "<local-command-stdout>Set model to opus</local-command-stdout>",
        "/clear",
        "<session>\nfix the login\n</session>\n\nWrite the title in the language the user wrote in, regardless of the above",
        "Continue from where you left off.",
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]\n",
        "<task-notification>\n<task-id>b1</task-id>\n<status>failed</status>\n</task-notification>",
        "<bash-stdout>a </b></bash-stdout><bash-stderr></bash-stderr>",
        "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
    ],
)
def test_what_clients_ask_and_tell_for_themselves_is_known(text: str) -> None:
    assert is_client_prompt(text)


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>/review</command-name>\n<command-args>the login</command-args>",
        "<command-name>/clear</command-name> and then fix the login",
        "/clear the cache of the shop",
        "Fix the login",
        "Please generate a title for this conversation",
        "What did we do so far? And why?",
        "Continue from where you left off. Then run the tests",
        "[Request interrupted by user] is what I see, why?",
        "<task-notification></task-notification> is shown twice",
        "<session>\nfix the login\n</session>\nWhat does this log say?",
        "",
    ],
)
def test_words_of_people_are_none_of_it(text: str) -> None:
    assert not is_client_prompt(text)


def test_the_words_of_a_user_stand_without_what_their_editor_adds() -> None:
    opened = "<ide_opened_file>The user opened the file /w/a.py in the IDE.</ide_opened_file>"
    dated = "<current_datetime>2026-06-25T03:50:44+02:00</current_datetime>\n\nFix the login"
    assert user_words(Message("user", (Text(opened), Text(dated)))) == "Fix the login"
    assert user_words(Message("system", (Text("<skills_instructions>\n## Skills\n</skills_instructions>"),))) == ""


def test_many_notices_are_read_in_linear_time() -> None:
    notices = "<task-notification>x</task-notification>\n" * 20_000
    began = time.perf_counter()
    assert is_client_prompt(notices)
    assert not is_client_prompt(notices + "and more")
    assert time.perf_counter() - began < 1

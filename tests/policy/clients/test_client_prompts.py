import pytest

from pagein.policy.clients.client_prompts import is_client_prompt


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
        "<session>\nfix the login\n</session>\nWhat does this log say?",
        "",
    ],
)
def test_words_of_people_are_none_of_it(text: str) -> None:
    assert not is_client_prompt(text)

"""The weight of messages with images, which a rewrite in front of them pays for."""

import pytest

from pagein.engine.log.session_log import message_entry
from pagein.model.messages import Block, Image, Message, Text, ToolResult
from pagein.providers.tokens.counters import ratio_counter

SCREEN = Image("image/png", 60_000)
COUNTER = ratio_counter("claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("block", "images"),
    [(SCREEN, 1), (ToolResult("c", "seen", images=(SCREEN, SCREEN)), 2), (Text("seen"), 0)],
    ids=["an image", "a result with two", "none"],
)
def test_an_image_weighs_as_much_as_a_screen(block: Block, images: int) -> None:
    """Images that weighed nothing were taken for a large prompt prefix, and rewrites for cheap: +11 % of a session."""
    message = Message("user", (block,))
    words = message_entry(Message("user", (Text("seen"),)), Message("user", (Text("seen"),)), COUNTER).tokens
    weight = message_entry(message, message, COUNTER).tokens
    assert 1500 * images <= weight <= 1500 * images + words

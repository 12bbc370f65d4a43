"""Each text in place of other text says how to recall it, in the words of the model's way of recall."""

import json

import pytest

from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin
from pagein.policy.eviction.argument_masks import ArgumentRules, mask_arguments
from pagein.policy.stubs.paste_stubs import shorten_paste
from pagein.policy.stubs.recall_ways import SHELL, TOOLS, Way
from pagein.policy.stubs.result_stubs import LONGEST, stub

ID = ObjectId.of(ContentHash.of(b"body"), Origin("session", "call"), b"secret")
THEIRS = Way("mcp__pagein__peek", "mcp__pagein__search")
WAYS = [  # how each views, and how it searches
    (TOOLS, f'Use peek("{ID}") to view', "search"),
    (THEIRS, f'Use mcp__pagein__peek("{ID}") to view', "mcp__pagein__search"),
    (SHELL, f"Run `pagein peek {ID}` to view", "`pagein search`"),
]


@pytest.mark.parametrize(("way", "view", "search"), WAYS)
def test_a_stub_says_how_to_recall(way: Way, view: str, search: str) -> None:
    text = stub(ID, "Read", 9, "about", way)
    assert text == f"[pagein: {ID} | Read | 9 tokens | about]\n{view}, or {search} to find specific content."
    assert len(text) <= LONGEST


@pytest.mark.parametrize(("way", "view", "search"), WAYS)
def test_a_shortened_text_says_how_to_recall(way: Way, view: str, search: str) -> None:
    text = shorten_paste(str(ID), 9, "word " * 1000, 1000, way)
    assert f"not shown. {view} them, or {search} to find specific content.]\n[the end:]\n" in text


@pytest.mark.parametrize(("way", "view", "search"), WAYS)
def test_a_mask_says_how_to_recall_and_stays_json(way: Way, view: str, search: str) -> None:
    arguments = json.dumps({"old_string": "line\n" * 400})
    masked = json.loads(mask_arguments(arguments, str(ID), "Edit", ArgumentRules(), way, written=False))
    assert masked["old_string"].endswith(f"replaced text - 401 lines] {view}.")
    assert search not in masked["old_string"]

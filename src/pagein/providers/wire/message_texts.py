"""Changes to the texts of a message whose content is a string or a list of blocks. The other bytes stay the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pagein.model.json_text import array_items, array_of, decode_json, encode_json, object_of
from pagein.providers.wire.json_values import with_field


@dataclass(frozen=True, slots=True)
class MessageTexts:
    """Replacements and additions for the text of a user message.

    texts: replacement texts by block.
    front, behind: texts to add before and after the blocks.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    front: str = ""
    behind: str = ""


def with_content_words(item: bytes, words: MessageTexts, kind: str, *, joins: bool) -> bytes:
    """Change the text of a user message. Blocks without a replacement keep their bytes.

    kind: the type of a block of text.
    joins: whether texts are added to a string directly. False: as separate blocks.
    """

    def change_content(content: bytes | None) -> bytes:
        raw = (content or b"[]").strip()
        if raw[:1] == b'"':
            said = encode_json(words.texts[0]) if 0 in words.texts else raw
            if not words.front and not words.behind:
                return said
            if joins:
                texts = (words.front, str(decode_json(said)), words.behind)
                return encode_json("\n\n".join(text for text in texts if text))
            blocks = [text_block(said)]
        else:
            blocks = array_items(raw, "content")
            for place, text in words.texts.items():
                blocks[place] = with_field(blocks[place], "text", lambda _, text=text: encode_json(text))  # type: ignore[misc]
        front, behind = (
            [encode_json({"type": kind, "text": one})] if one else [] for one in (words.front, words.behind)
        )
        return array_of([*front, *blocks, *behind])

    return with_field(item, "content", change_content)


def blocks_of(content: bytes | None) -> list[bytes]:
    """The blocks of a content. A string becomes a block of text."""
    raw = (content or b"[]").strip()
    return [text_block(raw)] if raw[:1] == b'"' else array_items(raw, "content")


def text_block(raw: bytes) -> bytes:
    """A block of type `text` around a JSON string."""
    return object_of({"type": b'"text"', "text": raw})


def with_messages_behind(item: bytes, messages: Sequence[bytes]) -> bytes:
    """A message with further messages behind it, joined by commas."""
    return b",".join([item, *messages])

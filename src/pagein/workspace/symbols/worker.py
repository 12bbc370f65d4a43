"""A process that parses files: from a language and a content to the symbols, or the reason for their absence.

Parsing holds the interpreter lock, so it has a process of its own. The process is started by `crew.py`, and ends when its input ends.
A frame is its length in four bytes, then MessagePack.
"""

import struct
import sys
from typing import BinaryIO, Final

import msgspec

from pagein.errors import PageinError
from pagein.model.symbols import FileSymbols

LENGTH: Final = struct.Struct(">I")


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame; None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    frame = stream.read(length)
    return frame if len(frame) == length else None


def write_frame(stream: BinaryIO, *parts: bytes) -> None:
    """Write one frame from parts."""
    stream.write(LENGTH.pack(sum(map(len, parts))))
    stream.writelines(parts)
    stream.flush()


def parse(language: str, content: bytes) -> FileSymbols | str:
    """Return the symbols of a content, or in words why there are none."""
    from pagein.workspace.symbols.grammars import load_grammar
    from pagein.workspace.symbols.tags import extract_symbols

    try:
        return extract_symbols(load_grammar(language), content)
    except PageinError as problem:
        return str(problem)
    except Exception as problem:  # noqa: BLE001 - whatever a grammar does costs one file, and is told
        return f"{type(problem).__name__}: {problem}"


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the questions end."""
    encode = msgspec.msgpack.Encoder().encode
    while (language := read_frame(questions)) is not None and (content := read_frame(questions)) is not None:
        write_frame(answers, encode(parse(language.decode(), content)))


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)

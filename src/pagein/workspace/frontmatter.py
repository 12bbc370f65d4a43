"""Read the YAML frontmatter of a note as plain data.

YAML 1.2's core schema: `no` and `12:30` are texts, as authors of notes expect. Anchors are refused, because a few of
them can expand beyond available memory.
"""

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from yaml import SafeLoader

_DEEPEST: Final = 50
_NULL: Final = re.compile(r"(?:~|null|Null|NULL|)")
_BOOL: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)")
_INT: Final = re.compile(r"[-+]?[0-9]{1,18}|0o[0-7]{1,20}|0x[0-9a-fA-F]{1,15}")
_FLOAT: Final = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]{1,3})?|[0-9]+[eE][-+]?[0-9]{1,3})")


class BadFrontmatter(Exception):
    """Unreadable frontmatter. The message gives the reason and, if possible, the line."""


def parse_frontmatter(text: str) -> dict[str, object]:
    """Return the properties: null, booleans, numbers, texts, lists and mappings with text keys.

    Raises BadFrontmatter.
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=_loader())
        value = None if node is None else _plain(node, 0)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1} of it"
        raise BadFrontmatter(
            f"the frontmatter is no YAML{where}: {getattr(problem, 'problem', None) or problem}"
        ) from problem
    except RecursionError as problem:
        raise BadFrontmatter("the frontmatter is nested too deeply") from problem
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadFrontmatter("the frontmatter is no mapping of names to values")
    return value


@cache
def _loader() -> "type[SafeLoader]":
    import yaml
    from yaml.composer import ComposerError

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # the stubs leave it out
                raise ComposerError(None, None, "aliases are not read", mark)
            return super().compose_node(parent, index)

    return Loader


def _plain(node: object, depth: int) -> object:
    from yaml import MappingNode, ScalarNode, SequenceNode

    if depth > _DEEPEST:
        raise BadFrontmatter(f"the frontmatter is nested deeper than {_DEEPEST}")
    if isinstance(node, MappingNode):
        return {_key(key): _plain(value, depth + 1) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return [_plain(one, depth + 1) for one in node.value]
    if isinstance(node, ScalarNode):
        return str(node.value) if node.style else scalar(node.value)
    raise BadFrontmatter("the frontmatter holds something that is no value")


def _key(node: object) -> str:
    from yaml import ScalarNode

    if not isinstance(node, ScalarNode):
        raise BadFrontmatter("the frontmatter has a key that is no text")
    return str(node.value)


def scalar(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted text in YAML's core schema.

    Infinities and numbers beyond 64 bits stay texts, because JSON cannot hold them.
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    number = float(text) if _FLOAT.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text

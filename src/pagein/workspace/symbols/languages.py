"""The languages with symbols: their file names, grammars and queries."""

import functools
import importlib.util
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """A language with a grammar.

    module, function: what gives the grammar: a module of an extra, and its function, or in `semble_grammars` its name for the language
    endings: of the names of its files
    queries: folders in `queries/`; their queries are taken together
    """

    name: str
    module: str
    function: str
    endings: tuple[str, ...]
    queries: tuple[str, ...]

    @property
    def is_extra(self) -> bool:
        """Whether the grammar comes with the extra `symbols-all`; without it, the language has none."""
        return self.module == BREADTH


BREADTH: Final = "semble_grammars"
LANGUAGES: Final = (
    Language("python", "tree_sitter_python", "language", (".py", ".pyi"), ("python",)),
    Language("javascript", "tree_sitter_javascript", "language", (".js", ".mjs", ".cjs", ".jsx"), ("javascript",)),
    Language("typescript", "tree_sitter_typescript", "language_typescript", (".ts", ".mts", ".cts"), ("typescript",)),
    Language("tsx", "tree_sitter_typescript", "language_tsx", (".tsx",), ("typescript", "tsx")),
    Language("go", "tree_sitter_go", "language", (".go",), ("go",)),
    Language("rust", "tree_sitter_rust", "language", (".rs",), ("rust",)),
    Language("java", "tree_sitter_java", "language", (".java",), ("java",)),
    Language("c", "tree_sitter_c", "language", (".c", ".h"), ("c",)),
    Language(
        "cpp",
        "tree_sitter_cpp",
        "language",
        (".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".ipp", ".tpp", ".inl"),
        ("cpp",),
    ),
    Language("csharp", "tree_sitter_c_sharp", "language", (".cs",), ("csharp",)),
    Language("ruby", "tree_sitter_ruby", "language", (".rb", ".rake", ".gemspec"), ("ruby",)),
    Language("php", "tree_sitter_php", "language_php", (".php",), ("php",)),
    Language("bash", "tree_sitter_bash", "language", (".sh", ".bash"), ("bash",)),
    Language("kotlin", BREADTH, "kotlin", (".kt", ".kts"), ("kotlin",)),
    Language("lua", BREADTH, "lua", (".lua",), ("lua",)),
    Language("scala", BREADTH, "scala", (".scala", ".sc"), ("scala",)),
    Language("swift", BREADTH, "swift", (".swift",), ("swift",)),
)
_BY_NAME: Final = {one.name: one for one in LANGUAGES}
_BY_ENDING: Final = {ending: one for one in LANGUAGES for ending in one.endings}


@functools.cache
def has_breadth() -> bool:
    """Return whether the extra `symbols-all` is installed."""
    return importlib.util.find_spec(BREADTH) is not None


def language_named(name: str) -> Language:
    """Return the language of this name. Raises KeyError."""
    return _BY_NAME[name]


def language_of(path: str) -> Language | None:
    """Return the language of a file by the end of its name, in any case; None without a grammar."""
    name = path.rpartition("/")[2].lower()
    _, dot, ending = name.rpartition(".")
    return _BY_ENDING.get(dot + ending) if dot else None

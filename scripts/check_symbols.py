"""Compare the definitions that pagein finds in real repositories with those of their languages' own parsers.

Three sources at pinned versions come from the package registries: Django (Python, with `ast`), RxJS (TypeScript, with the compiler's
parser), and Cobra with chi (Go, with universal-ctags). Needs pip, npm, node, apt-get, dpkg-deb and ctags.

    python scripts/check_symbols.py --folder out/symbols

Exits with 1 if less than 99 % of the definitions of a source are found with the exact lines of the definition itself.
"""

import argparse
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.symbol_oracles.oracles import Place, go_places, python_places, typescript_places

from pagein.workspace.symbols.grammars import load_grammar
from pagein.workspace.symbols.languages import language_of
from pagein.workspace.symbols.tags import extract_symbols

LEAST = 0.99
PYTHON_SOURCE = "django==5.2.6"
TYPESCRIPT_SOURCE = "rxjs@7.8.1"
COMPILER = "typescript@5.9.3"
GO_SOURCES = ("golang-github-spf13-cobra-dev", "golang-github-go-chi-chi-dev")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found: definitions of the oracle, how many of them pagein has, and the others with their files."""

    name: str
    files: int
    wanted: int
    found: int
    missing: tuple[tuple[str, Place], ...]
    extra: tuple[tuple[str, Place], ...]

    @property
    def share(self) -> float:
        return self.found / self.wanted if self.wanted else 0.0


def our_places(path: Path, content: bytes) -> Counter[Place]:
    """Return the definitions that pagein finds in a file."""
    language = language_of(path.name)
    if language is None:
        raise ValueError(f"no language for {path}")
    symbols = extract_symbols(load_grammar(language.name), content)
    return Counter((one.name.strip("\"'"), one.first, one.last) for one in symbols.definitions)


def compare(name: str, wanted: dict[Path, Counter[Place]]) -> Comparison:
    """Compare the definitions of an oracle with pagein's. A last line that the oracle does not know is not compared."""
    missing: list[tuple[str, Place]] = []
    extra: list[tuple[str, Place]] = []
    total = 0
    for path, places in wanted.items():
        ours = our_places(path, path.read_bytes())
        total += places.total()
        for place in places.elements():
            known = place if place[2] else next((one for one in ours if one[:2] == place[:2] and ours[one]), place)
            if ours[known] > 0:
                ours[known] -= 1
            else:
                missing.append((path.name, place))
        extra += [(path.name, place) for place in (+ours).elements()]
    return Comparison(name, len(wanted), total, total - len(missing), tuple(missing), tuple(extra))


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def fetch_python(folder: Path) -> Path:
    """Fetch and unpack the sdist of Django."""
    place = folder / "python"
    if not place.exists():
        _run(
            folder,
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            PYTHON_SOURCE,
        )
        _unpacked(next(folder.glob("django-*.tar.gz")), place)
    return place


def fetch_npm(folder: Path, package: str, name: str) -> Path:
    """Fetch and unpack a package of npm."""
    place = folder / name
    if not place.exists():
        _run(folder, "npm", "pack", "--silent", package)
        _unpacked(next(folder.glob(f"{package.partition('@')[0]}-*.tgz")), place)
    return place / "package"


def fetch_go(folder: Path) -> Path:
    """Fetch and unpack the sources of Go packages in Debian."""
    place = folder / "go"
    if not place.exists():
        _run(folder, "apt-get", "download", *GO_SOURCES)
        for package in GO_SOURCES:
            _run(folder, "dpkg-deb", "-x", str(next(folder.glob(f"{package}_*.deb"))), str(place))
    return place


def compare_python(folder: Path) -> Comparison:
    """Compare with Python's `ast`."""
    files = sorted(fetch_python(folder).rglob("*.py"))
    places = {path: python_places(path.read_bytes()) for path in files}
    return compare(f"{PYTHON_SOURCE} / ast", {path: one for path, one in places.items() if one is not None})


def compare_typescript(folder: Path) -> Comparison:
    """Compare with the parser of the TypeScript compiler."""
    compiler = fetch_npm(folder, COMPILER, "compiler")
    files = sorted((fetch_npm(folder, TYPESCRIPT_SOURCE, "typescript") / "src").rglob("*.ts"))
    return compare(f"{TYPESCRIPT_SOURCE} / {COMPILER}", typescript_places(compiler, files))


def compare_go(folder: Path) -> Comparison:
    """Compare with universal-ctags."""
    return compare("cobra, chi / universal-ctags", go_places(sorted(fetch_go(folder).rglob("*.go"))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparisons, and return the exit status."""
    parser = argparse.ArgumentParser(description="Compare definitions with those of other parsers.")
    parser.add_argument("--folder", type=Path, default=Path("out/symbols"), help="where sources are kept")
    parser.add_argument("--most", type=int, default=20, help="how many differences to print for each source")
    given = parser.parse_args(arguments)
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    works: tuple[Callable[[Path], Comparison], ...] = (compare_python, compare_typescript, compare_go)
    is_good = True
    for work in works:
        one = work(folder)
        is_good = is_good and one.share >= LEAST
        print(f"{one.name}: {one.files} files, {one.found} of {one.wanted} definitions ({one.share:.2%})", end="; ")
        print(f"{len(one.extra)} that the oracle does not name")
        for label, places in (("missing", one.missing), ("extra", one.extra)):
            for file, place in places[: given.most]:
                print(f"  {label} {file}: {place[0]} {place[1]}-{place[2]}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())

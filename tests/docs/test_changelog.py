"""The tables of old and new names lead to names that exist."""

import re
from pathlib import Path

ROW = re.compile(r"^\| `([\w.]+)` \| (?:`([\w.]+)`|goes) \|(.*)$", re.MULTILINE)


def rows(root: Path, heading: str) -> list[tuple[str, str, str]]:
    page = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    part = page.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    found = ROW.findall(part)
    assert found
    return found


def module_file(root: Path, name: str) -> Path | None:
    places = ((root / "src" / "pagein").joinpath(*name.split(".")), root.joinpath(*name.split(".")))
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return next((file for file in files if file.is_file()), None)


def source_of(root: Path, name: str) -> str:
    """The source of the module in which a dotted name is defined, "" for none."""
    parts = name.split(".")
    files = (module_file(root, ".".join(parts[:end])) for end in range(len(parts) - 1, 0, -1))
    return next((file.read_text(encoding="utf-8") for file in files if file is not None), "")


def is_word_of(name: str, source: str) -> bool:
    return re.search(rf"\b{name.rpartition('.')[2]}\b", source) is not None


def test_every_new_module_exists(root: Path) -> None:
    assert [new for _, new, _ in rows(root, "Modules") if new and module_file(root, new) is None] == []


def test_every_new_name_is_in_its_module(root: Path) -> None:
    found = rows(root, "Public classes and functions")
    assert [new for _, new, _ in found if not is_word_of(new, source_of(root, new))] == []


def test_every_new_method_is_in_the_module_of_its_class(root: Path) -> None:
    missing = [
        f"{owner}.{method}"
        for _, owner, changes in rows(root, "Methods and properties of public classes")
        for method in re.findall(r"→ `(\w+)`", changes)
        if not is_word_of(method, source_of(root, owner))
    ]
    assert missing == []


def test_no_old_name_is_listed_twice(root: Path) -> None:
    for heading in ("Modules", "Public classes and functions"):
        old = [name for name, _, _ in rows(root, heading)]
        assert sorted(old) == sorted(set(old))

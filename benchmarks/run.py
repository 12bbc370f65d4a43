"""Run the benchmarks and print ratios and counts. `make bench` runs all of them; nothing here is a test.

python benchmarks/run.py            all of them
python benchmarks/run.py replay     those whose name contains a word
python benchmarks/run.py --json     one JSON object instead of a table
"""

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

HERE = Path(__file__).parent


def benchmarks() -> dict[str, Callable[[], dict[str, float]]]:
    """Each `bench_*.py` beside this file has a `measure()` that gives figures by name."""
    found = {}
    for file in sorted(HERE.glob("bench_*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        found[file.stem.removeprefix("bench_")] = cast("Callable[[], dict[str, float]]", module.measure)
    return found


def main(arguments: list[str]) -> None:
    """Run the benchmarks that the arguments choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run only benchmarks whose name contains one of these words")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    asked = parser.parse_args(arguments)
    results = {}
    for name, measure in benchmarks().items():
        if asked.words and not any(word in name for word in asked.words):
            continue
        results[name] = measure()
        if not asked.json:
            print(name)
            for figure, value in results[name].items():
                print(f"  {figure:58} {value:12.3f}")
    if asked.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])

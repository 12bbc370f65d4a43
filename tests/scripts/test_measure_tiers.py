"""What the tiered layout costs on generated sessions, and how near its order comes to the optimum."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "measure_tiers.py"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_tiers", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("files", [24, 200])
def test_the_preset_is_at_least_a_third_cheaper_than_the_seed_design_at_every_edit_rate(
    measure: ModuleType, files: int
) -> None:
    found = measure.multiples(files, 1, ("seed", "pagein", "append the diff"))
    for rate in measure.THINNING:
        assert found["pagein"][rate] < found["seed"][rate] * 2 / 3
        assert found["append the diff"][rate] < found["pagein"][rate]  # which no order beats


def test_its_order_is_near_the_optimum_of_tiny_instances(measure: ModuleType) -> None:
    found = measure.ratios(60)
    assert found["pagein"][0] <= 1.27
    assert found["by the next edit, foreseen"][0] < 1.06
    assert all(1.0 <= mean <= worst for mean, worst in found.values())

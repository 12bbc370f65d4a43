"""A new vendor is new modules, and a row in few that exist."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import pagein
from pagein.gateway.settings import GatewaySettings
from pagein.providers.prices.model_abilities import TABLE
from pagein.providers.prices.price_table import CATALOGUE
from pagein.providers.prices.price_table import VENDORS as MODELS
from pagein.providers.vendors import VENDORS

ROOT = Path(pagein.__file__).parent
MOST = 6
"""Modules that exist, and that a new vendor with a new format and a new client touches."""

NEWEST = re.compile(r"gemini|google", re.IGNORECASE)
"""The vendor that came last, its format, its models and its client."""

OWN = (
    "gateway/clients/gemini_cli.py",
    "providers/prices/models/google.py",
    "providers/wire/gemini_generate_content/",
    "replay/readers/gemini_cli.py",
    "simulator/gemini_generate_content/",
)
"""What was made for it."""

ROWS = {
    "gateway/client_setup.py": "the row of its client",
    "gateway/settings.py": "the field for the address of its upstream",
    "providers/prices/price_table.py": "the row of its models",
    "providers/vendors.py": "its row",
    "providers/wire/formats.py": "the row of its format",
    "simulator/formats.py": "the row of its format in the simulated provider",
}

OF_OTHER_RECIPES = {
    "policy/clients/profiles.py": "a client profile: the one file of data that the recipe for profiles names",
    "policy/eviction/residency.py": "a client profile: its name for a web search",
    "replay/readers/detection.py": "a replay reader",
    "replay/readers/discovery.py": "a replay reader",
    "replay/readers/line_index.py": "a replay reader",
    "testing/made_sessions.py": "a sample of prices for the adversary; a vendor needs none",
}


def code_of(source: str) -> str:
    """The code without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(held := getattr(node, name, None), list):
                kept = [one for one in held if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
                setattr(node, name, kept or ([ast.Pass()] if name == "body" else []))
    return ast.unparse(tree)


def test_a_new_vendor_is_named_in_few_modules_that_existed() -> None:
    named = {
        place
        for path in sorted(ROOT.rglob("*.py"))
        if not (place := path.relative_to(ROOT).as_posix()).startswith(OWN)
        and NEWEST.search(source := path.read_text(encoding="utf-8"))
        and NEWEST.search(code_of(source))
    }
    assert named == {*ROWS, *OF_OTHER_RECIPES}
    assert len(ROWS) <= MOST


@pytest.mark.parametrize(
    ("source", "is_named"),
    [
        ('"""Gemini."""\n', False),
        ("# Gemini\n", False),
        ('def f():\n    """Gemini."""\n', False),
        ("import google\n", True),
        ("GEMINI = 1\n", True),
        ("f(google=1)\n", True),
        ("f('/v1beta/models/gemini-2.5-pro')\n", True),
    ],
)
def test_a_name_in_code_is_found(source: str, *, is_named: bool) -> None:
    assert bool(NEWEST.search(code_of(source))) == is_named


def test_each_vendor_has_the_setting_of_its_address() -> None:
    defaults = {one.name: one.default for one in fields(GatewaySettings)}
    assert {one.name: defaults.get(one.name) for one in VENDORS} == {one.name: one.address for one in VENDORS}


def test_the_rows_of_a_model_stand_together() -> None:
    assert sum(map(len, CATALOGUE.values())) == sum(len(one.prices) for one in MODELS)
    assert sum(map(len, TABLE.values())) == sum(len(one.abilities) for one in MODELS)

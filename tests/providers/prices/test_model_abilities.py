from datetime import date

import pytest

from pagein.providers.prices.model_abilities import TABLE, UNKNOWN, abilities
from pagein.providers.prices.price_table import ALIASES, CATALOGUE
from pagein.providers.validity import target


def test_every_model_of_the_three_providers_has_a_row() -> None:
    priced = {name for name, rows in CATALOGUE.items() if rows[0].provider in ("anthropic", "openai", "google")}
    assert priced == set(TABLE)


def test_models_are_known_by_the_ids_that_hosts_record() -> None:
    for recorded, name in [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic/claude-sonnet-5.5", "claude-sonnet-5-5"),
        ("us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6"),
        ("gpt-5.6", "gpt-5.6-sol"),
    ]:
        assert abilities(recorded).name == name
    assert all(abilities(alias).name == name for alias, name in ALIASES.items() if name in TABLE)


@pytest.mark.parametrize("model", [None, "", "some-model-of-tomorrow", "claude-opus-9"])
def test_a_model_that_nobody_knows_refuses_nothing_and_may_bind(model: str | None) -> None:
    assert abilities(model) == UNKNOWN
    assert not UNKNOWN.refuses
    assert UNKNOWN.may_bind


def test_a_fact_holds_from_its_day_on() -> None:
    assert "system messages" in abilities("claude-sonnet-5", date(2026, 10, 19)).refuses
    assert "system messages" not in abilities("claude-sonnet-5", date(2026, 10, 20)).refuses
    assert "system messages" not in abilities("claude-sonnet-5").refuses


def test_binding_is_what_the_price_table_says() -> None:
    for name, rows in TABLE.items():
        assert {row.binds for row in rows} == {CATALOGUE[name][-1].binds_thinking}


def test_every_row_has_a_source() -> None:
    assert all(row.source for rows in TABLE.values() for row in rows)


def test_betas_are_lacking_only_where_they_are_told() -> None:
    assert not target("claude-opus-5").lacks_beta("compact-")
    assert target("claude-opus-5", betas=["other-2026"]).lacks_beta("compact-")
    assert not target("claude-opus-5", betas=["compact-2026-09-04"]).lacks_beta("compact-")

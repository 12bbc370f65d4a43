from collections.abc import Callable

from pagein.model.bill import Bill, Figures
from pagein.replay.results.spread import spreads
from pagein.ui.verdict import verdict


def engine(bill: Bill, **changed: float) -> Bill:
    if "cost" in changed:
        changed["usd"] = changed["cost"] * 3e-6
    figures: Figures = {**bill["policies"]["pagein"], **changed}  # type: ignore[typeddict-item]  # names are the figures' own
    bill["policies"]["pagein"] = figures
    return bill


def test_a_saving_is_told_with_both_costs_and_what_was_lost(bill: Bill) -> None:
    said = verdict(bill)
    assert said.tone == "saves"
    assert said.headline == (
        "This session cost $10.26 at list prices as recorded, without pagein. "
        "With pagein it would have cost $8.96: 12.7 % less."
    )
    assert "Tool results left the window 64 times and 0 bytes were lost" in said.loss
    assert "needed 3 of them again (1.88 per 100 calls)" in said.loss
    assert said.floor.startswith("System prompt and tool schemas are 18 % of all prompt tokens")


def test_recalls_that_were_only_drawn_are_not_called_more_of_none(bill: Bill) -> None:
    said = verdict(engine(bill, faults=0, stress_recalls=4))
    assert (
        "No later step needed any of them; 4 recalls were assumed all the same, and $0.0630 for recalls " in said.loss
    )


def test_a_session_that_pagein_makes_dearer_is_told_so(bill: Bill) -> None:
    said = verdict(engine(bill, cost=3_420_000 * 1.012))
    assert said.tone == "costs"
    assert "1.2 % more. It does not pay here." in said.headline


def test_a_session_without_anything_to_page_out_is_told_to_cost_the_same(bill: Bill) -> None:
    said = verdict(engine(bill, cost=3_420_000.0, stubs=0, epochs=0))
    assert said.tone == "same"
    assert "pagein saves nothing here: nothing was worth paging out" in said.headline
    assert said.loss == "Nothing left the window, so nothing was lost."


def test_an_equal_cost_with_stubs_is_no_saving(bill: Bill) -> None:
    assert "pagein saves nothing here" in verdict(engine(bill, cost=3_420_000.0 * 0.9997)).headline


def test_lost_bytes_outweigh_any_saving(bill: Bill) -> None:
    said = verdict(engine(bill, unrecoverable_bytes=17))
    assert said.tone == "broken"
    assert said.loss == "BROKEN: 17 bytes did not come back exactly. Please report this."


def test_a_refused_request_outweighs_any_saving(bill: Bill) -> None:
    said = verdict(engine(bill, refused=1))
    assert said.tone == "broken"
    assert "would refuse 1 request." in said.loss


def test_several_sessions_are_spoken_of_as_several(bills: Callable[[int], Bill]) -> None:
    assert verdict(bills(3)).headline.startswith("These 3 sessions cost ")


def test_without_dollars_none_are_named(bill: Bill) -> None:
    for figures in bill["policies"].values():
        figures["usd"] = None
    assert "$" not in verdict(bill).text
    assert "cost 3.42M BIT as recorded, without pagein; a BIT is the price of one input token" in verdict(bill).headline


def test_without_pagein_among_the_policies_only_the_cost_is_told(bill: Bill) -> None:
    del bill["policies"]["pagein"]
    said = verdict(bill)
    assert (said.tone, said.loss) == ("plain", "")
    assert said.headline == "This session cost $10.26 at list prices as recorded, without pagein."


def test_a_bill_without_its_baseline_makes_no_comparison(bill: Bill) -> None:
    bill["baseline"] = "append-5m"
    del bill["policies"]["append-5m"]
    assert verdict(bill).text == "This session was replayed."


def test_what_is_cheaper_than_pagein_is_named_and_what_it_loses(bill: Bill) -> None:
    assert verdict(bill).rival == ""
    bill["policies"]["compact"] |= {"cost": 3_420_000 * 0.8, "usd": 10.26 * 0.8}
    assert verdict(bill).rival == "Cheaper here: compact (-20.0 %), but nothing brings back what it drops."
    bill["policies"]["append-1h"] |= {"cost": 3_420_000 * 0.7, "usd": 10.26 * 0.7}
    assert verdict(bill).rival == "Cheaper here: append-1h (-30.0 %)."


def test_what_nobody_can_have_is_no_rival(bill: Bill) -> None:
    assert bill["policies"]["optimum"]["cost"] < bill["policies"]["pagein"]["cost"]
    assert "optimum" not in verdict(bill).text


def test_a_baseline_that_never_happened_is_not_called_recorded(bill: Bill) -> None:
    bill["baseline"] = "clear"
    assert verdict(bill).headline.startswith(
        "This session would have cost $10.98 at list prices under clear. With pagein"
    )


def test_a_free_session_divides_nothing_by_zero(bill: Bill) -> None:
    for figures in bill["policies"].values():
        figures |= {"cost": 0.0, "usd": 0.0}
    assert "There was nothing to pay for." in verdict(bill).headline


def test_a_recording_that_tells_of_other_calls_than_were_counted_is_named(bill: Bill) -> None:
    bill["per_session"][0]["flags"] = {"uncounted_calls": 60, "uncounted_tokens": 900}
    said = verdict(bill).doubt
    assert "The usage lines of 1 session differ from the count here" in said
    assert "220 calls told and 160 counted" in said
    bill["per_session"][0]["flags"] = {"uncounted_tokens": -900}
    assert "900 prompt tokens apart" in verdict(bill).doubt


def test_figures_that_rest_on_savings_of_earlier_sessions_are_said_to(bill: Bill) -> None:
    assert "--without reserve" not in verdict(bill).text
    bill["per_session"][0]["flags"] = {"reserve": ["pagein"]}
    said = verdict(bill).text
    assert "figures for 1 session assume a store whose earlier sessions have saved enough" in said
    assert "pagein replay --without reserve adds a row for a new store" in said


def test_a_provider_that_lost_its_cache_is_said_to_have_been_paid_more(bill: Bill) -> None:
    bill["per_session"][0]["flags"] = {"provider_missed": 80}
    assert "In 80 of 160 calls (50 %) the recorded provider read far less" in verdict(bill).text
    bill["per_session"][0]["flags"] = {"provider_missed": 7}
    assert verdict(bill).doubt == ""


def test_the_headline_is_what_the_gateway_does_by_default_and_names_what_keep_alive_would_make_of_it(
    bill: Bill,
) -> None:
    bill["policies"]["pagein-quiet"] = {**bill["policies"]["pagein"], "cost": 3_300_000.0, "usd": 9.9}
    bill["policies"]["pagein"]["keep_alives"] = 3
    said = verdict(bill).headline
    assert "With pagein it would have cost $9.90: 3.5 % less (with --keep-alive $8.96, -12.7 %)." in said


def test_where_only_the_policy_with_keep_alive_was_asked_for_that_is_said_in_the_same_sentence(bill: Bill) -> None:
    bill["policies"]["pagein"]["keep_alives"] = 3
    assert "With pagein and its --keep-alive it would have cost $8.96" in verdict(bill).headline


def test_the_agents_own_compaction_stands_beside_both_where_a_window_was_nearly_full(bill: Bill) -> None:
    assert verdict(bill).host == "The session never came near the end of its model's window, where an agent compacts."
    bill["per_session"][0]["policies"]["compact"]["epochs"] = 2
    assert verdict(bill).host == (
        "The session came near the end of the model's window. With the agent's own compaction at 80 % of it, it would have "
        "cost $9.75 in place of $10.26, and $8.96 with pagein; nothing brings back what a summary drops."
    )


def test_single_sessions_are_spoken_of_and_the_one_that_loses_most_is_named(bills: Callable[[int], Bill]) -> None:
    bill = bills(4)
    assert verdict(bill).spread.endswith("4 sessions are cheaper, none dearer.")
    for number, factor in ((1, 1.02), (2, 1.01)):
        one = bill["per_session"][number]["policies"]
        one["pagein"] |= {"cost": one["append"]["cost"] * factor, "usd": one["append"]["cost"] * factor * 3e-6}
    bill["spread"] = spreads((one["policies"] for one in bill["per_session"]), "append")
    assert verdict(bill).spread == (
        "The median session changes by -5.8 %; half of them lie between -12.7 % and +1.2 %. 2 sessions are cheaper, 2 dearer, "
        'by $0.14 together, at most +2.0 % ("Mend the parser, part 1" loses most).'
    )

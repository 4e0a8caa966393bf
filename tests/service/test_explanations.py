"""Why somebody was decided so."""

import pytest
from tests.service.lives import live


def test_an_explanation_names_rules_coin_and_what_would_have_changed_it(bank):
    live(bank, 9)
    rejected = next(row for row in bank.ledger.history("bank", "loan") if not row.accept)
    key = next(
        k for k in range(100_000) if bank.ledger.find("bank", f"k{k}").drawn.seq == rejected.seq
    )
    found = bank.get(f"/v1/decisions/k{key}/explanation").json()
    assert found["accept"] is False
    assert found["coin"] >= found["acceptance"]
    assert sum(part["weight"] for part in found["parts"] if part["accepts"]) == pytest.approx(
        found["acceptance"]
    )
    assert found["levers"][0]["feature"] == "score"
    assert found["levers"][0]["gain"] > 0
    assert "Chance had a say" in found["sentence"]

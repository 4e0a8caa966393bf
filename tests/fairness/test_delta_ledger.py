"""The delta ledger: booked once, never more than delta."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import DeltaOverspent, InvalidInput, ProtocolError
from evenhand.fairness.delta_ledger import Booking, DeltaLedger, inverse_square_share, run_share


def test_a_booking_is_added_and_the_old_ledger_is_untouched() -> None:
    empty = DeltaLedger(0.05)
    booked = empty.book("betting", 0.02, at=100)
    assert (empty.spent, empty.entries) == (0.0, ())
    assert booked.entries == (Booking("betting", 0.02, at=100, run=1),)
    assert booked.left == pytest.approx(0.03)


def test_the_same_process_cannot_start_twice() -> None:
    ledger = DeltaLedger(0.05).book("betting", 0.02, at=100)
    with pytest.raises(ProtocolError, match="round 100"):
        ledger.book("betting", 0.001, at=200)


def test_more_than_delta_is_refused_with_what_is_left() -> None:
    ledger = DeltaLedger(0.05).book("first", 0.04, at=0)
    with pytest.raises(DeltaOverspent, match=r"0\.01"):
        ledger.book("second", 0.011, at=1)
    assert ledger.book("second", 0.01, at=1).spent <= 0.05


def test_retraining_until_it_passes_runs_dry() -> None:
    ledger = DeltaLedger(0.05)
    for attempt in range(5):
        ledger = ledger.book(f"attempt {attempt}", 0.01, at=attempt)
    with pytest.raises(DeltaOverspent):
        ledger.book("attempt 5", 0.01, at=5)


def test_the_same_process_may_start_again_in_the_next_run() -> None:
    ledger = DeltaLedger(0.05).book("betting", 0.02, at=100).book("betting", 0.01, at=200, run=2)
    assert [(entry.run, entry.at) for entry in ledger.entries] == [(1, 100), (2, 200)]
    with pytest.raises(ProtocolError, match="round 200"):
        ledger.book("betting", 0.001, at=300, run=2)


@pytest.mark.thorough
def test_nominations_and_restarts_stay_within_delta() -> None:
    delta = 0.05
    ledger = DeltaLedger(delta)
    for run in range(1, 6):
        for n in range(1, 200):
            share = inverse_square_share(run_share(delta, run), n)
            ledger = ledger.book(f"nominee {n}", share, at=n, run=run)
    assert ledger.spent <= delta


@given(st.floats(1e-6, 0.99), st.floats(0.01, 0.99))
def test_runs_sum_to_delta_for_every_reserve(delta: float, reserve: float) -> None:
    total = math.fsum(run_share(delta, run, reserve=reserve) for run in range(1, 2000))
    assert delta * (1 - 2e-3) <= total <= delta * (1 + 1e-12)


def test_the_default_runs_are_the_inverse_squares_of_the_design() -> None:
    for run in range(1, 9):
        assert run_share(0.05, run) == pytest.approx(6 * 0.05 / (math.pi**2 * run**2), rel=1e-12)


def test_an_endless_list_of_shares_can_be_booked_to_the_last() -> None:
    ledger = DeltaLedger(0.3)
    for n in range(1, 4):
        ledger = ledger.book(str(n), 0.1, at=n)
    assert ledger.spent == 0.3
    assert ledger.left == 0.0


@given(st.floats(0.001, 0.999), st.lists(st.floats(1e-9, 1.0), max_size=8))
def test_json_round_trip_is_identical(delta: float, weights: list[float]) -> None:
    ledger = DeltaLedger(delta)
    for n, weight in enumerate(weights):
        ledger = ledger.book(f"process {n}", weight * delta / 10, at=n, run=1 + n % 3)
    assert DeltaLedger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger


def test_a_forged_ledger_is_refused() -> None:
    value = DeltaLedger(0.05).book("a", 0.05, at=0).to_json()
    with pytest.raises(InvalidInput, match="twice"):
        DeltaLedger.from_json({**value, "entries": value["entries"] * 2})
    with pytest.raises(DeltaOverspent):
        DeltaLedger.from_json({**value, "delta": 0.01})


def test_bad_input_is_refused() -> None:
    for delta in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InvalidInput, match=r"in \(0, 1\)"):
            DeltaLedger(delta)
    with pytest.raises(InvalidInput, match="share"):
        DeltaLedger(0.05).book("a", 0.0, at=0)
    with pytest.raises(InvalidInput, match="name"):
        DeltaLedger(0.05).book("", 0.01, at=0)
    with pytest.raises(InvalidInput, match="numbered"):
        inverse_square_share(0.05, 0)


def test_it_describes_itself() -> None:
    text = DeltaLedger(0.05).book("betting", 0.02, at=100).describe()
    assert text == "0.02 from round 100, run 1: betting\n0.02 of 0.05 booked"

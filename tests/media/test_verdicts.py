"""One verdict in every medium: the headline of a page, its rows, the card, the claim, the gate and
its document say the same of intervals whose ends lie anywhere around the limit, a last bit of it
included.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.media.records import people, record

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.evaluation import gate
from evenhand.fairness.certificate import GapInterval
from evenhand.findings import ROUNDING
from evenhand.media import card, document, fragment

LIMITS = (0.05, 0.3)


def ends_around(limit):
    """Ends of intervals: far from the limit, at the tolerance, and a few last bits away."""
    bits = [limit]
    for towards in (0.0, 1.0):
        end = limit
        for _ in range(2):
            end = float(np.nextafter(end, towards))
            bits.append(end)
    rounding = [limit + share * ROUNDING for share in (-2, 0.5, 2)]
    return [*bits, *rounding, 0.0, 1.5 * limit]


def intervals_around(limit):
    """(low, high) on both sides of zero, wide and narrow, also where no value is left."""
    ends = ends_around(limit)
    found = [(-high, high) for high in ends]
    found += [(low, high) for low, high in product(ends, ends)]
    return found + [(-high, -low) for low, high in product(ends, ends)]


def slowly(low, high, limit):
    """The status by its definition: of all values between the ends, are all, or none, allowed?"""
    values = [low, high, *(low + (high - low) * np.linspace(0, 1, 11))] if low <= high else []
    if low <= 0 <= high:
        values.append(0.0)
    inside = [abs(value) <= limit + ROUNDING for value in values]
    if not inside or (any(inside) and not all(inside)):
        return "not shown"
    return "within" if all(inside) else "above"


def said_everywhere(certification, limit):
    """What each medium says: the gate, its document, the page's headline, its rows, the card."""
    result = gate(certification, limit)
    told = certification.result()
    handed_in = certification.model not in (None, certification.certificate.gaps)
    rows = [row[-1] for row in told.table("handed_in" if handed_in else "gaps").rows]
    assert document(told)["verdict"]["status"] == told.verdict.status == result.status
    bold = next(line for line in card(told).splitlines() if line.startswith("**"))
    assert f'class="answer {result.status.replace(" ", "-")}"' in fragment(told)
    return result, rows, bold.lower()


@pytest.fixture(scope="module")
def certified():
    return eh.certify(eh.Stumps(max_bins=8), people(), limit=0.3)


@pytest.mark.thorough
@pytest.mark.parametrize("limit", LIMITS)
def test_every_medium_agrees_about_a_gap_however_near_to_the_limit(certified, limit):
    """A policy that was handed in, whose gap may lie anywhere."""
    seen = set()
    document = replace(certified.certificate, limit=limit, gaps=())
    for low, high in intervals_around(limit):
        gap = GapInterval("FPR", "b<i>", "a", low, high)
        result, rows, bold = said_everywhere(
            replace(certified, certificate=document, model=(gap,)), limit
        )
        status = gap.stands(limit)
        if abs(high - low) > 4 * ROUNDING or low == high:
            assert status == slowly(low, high, limit)
        assert rows == [status]
        assert (result.status, result.findings[0].status) == (status, status)
        assert result.to_json()["findings"][0]["status"] == status
        said = {"within": "handed in: within", "above": "above what", "not shown": "neither within"}
        assert said[status] in bold
        seen.add(status)
    assert seen == {"within", "above", "not shown"}


@pytest.mark.thorough
@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_claimed_is_within_in_every_medium(certified, limit):
    """A certificate exists for exactly the gaps that every medium calls within."""
    for low, high in intervals_around(limit):
        gap = GapInterval("FPR", "b<i>", "a", low, high)
        if gap.stands(limit) != "within":
            with pytest.raises(InvalidInput):
                replace(certified.certificate, limit=limit, gaps=(gap,))
            continue
        document = replace(certified.certificate, limit=limit, gaps=(gap,))
        whole = replace(certified, certificate=document, model=None)
        result, rows, bold = said_everywhere(whole, limit)
        assert (result.status, rows) == ("within", ["within"])
        assert bold.startswith("**within what is allowed")


@pytest.mark.parametrize("limit", [0.1, 0.2])
def test_the_page_of_a_run_whose_gap_is_a_last_bit_above_the_limit(limit):
    rng = np.random.default_rng(24)
    features = rng.random((900, 2))
    label = np.where(rng.random(900) < features[:, 0], 1, -1)
    sample = eh.LabelledSample(features, rng.choice(list("abc"), 900), label)
    found = eh.certify(eh.Stumps(max_bins=20), sample, limit=limit, rates=("fpr", "fnr"))
    reach = max(max(gap.high, -gap.low) for gap in found.certificate.gaps)
    assert reach > limit  # the case that it is about
    assert gate(found).status == "within"
    assert found.result().verdict.status == "within"


def test_a_policy_whose_gap_is_a_last_bit_above_the_limit_is_certified_as_it_is(certified):
    """As it was handed in, and as it is certified: both are asked the same question."""
    policy = certified.policy
    as_it_is = eh.certify(policy, people(), limit=0.5)
    reach = max(max(abs(gap.low), abs(gap.high)) for gap in as_it_is.certificate.gaps)
    limit = float(np.nextafter(reach, 0.0))
    found = eh.certify(policy, people(), limit=limit)
    assert found.model == found.certificate.gaps
    assert found.policy.weights == policy.weights
    assert gate(found).status == "within"


@pytest.mark.thorough
@pytest.mark.parametrize("limit", LIMITS)
def test_an_evaluation_and_a_measurement_agree_with_their_gates(limit):
    """Two more records with gaps: verdict, rows, gate and document, for the same ends."""
    evaluated = record("evaluate")
    measured = record("measure")
    for low, high in intervals_around(limit):
        status = GapInterval("FPR", "b", "a", low, high).stands(limit)
        (gap, *_) = evaluated.gaps
        gap = replace(gap, estimate=replace(gap.estimate, lower=low, upper=high))
        one = replace(evaluated, gaps=(gap,), limit=limit, contradiction=False)
        assert one.verdict == gate(one).status == gap.stands(limit) == status
        told = one.result()
        assert told.table("gaps").rows[0][-1] == told.verdict.status == status
        assert (told.claimed is not None) == (status == "within")
        (rate, *_) = measured.rates
        pair = replace(rate.pairs[0], difference_interval=(low, high))
        two = replace(measured, rates=(replace(rate, pairs=(pair,)),))
        assert two.verdict(limit=limit) == gate(two, limit).status == status

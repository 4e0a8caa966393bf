"""The certificate: impossible states have no constructor, JSON is identical, and the words are
exact.
"""

import json
import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from tests.media.agree import media_agree

from evenhand.canonical import canonical_digest
from evenhand.errors import CannotCertify, InvalidInput
from evenhand.fairness.certificate import (
    PROTOCOL_VERSION,
    CellCount,
    Certificate,
    CoveredFrom,
    DrawCount,
    GapInterval,
    OutsideCount,
    Suspension,
    plain_label,
    standard_assumptions,
)


def certificate(**changes: object) -> Certificate:
    plain = Certificate(
        limit=0.05,
        delta=0.05,
        spent=0.0304,
        bound="joint clamped betting",
        bound_params={"rates": 6},
        policy=canonical_digest({"kind": "mixture"}),
        window=(1, 20_000),
        assumptions=standard_assumptions(maturity="30 days"),
        counts=(CellCount(-1, -1, 4100), CellCount(1, -1, 3000)),
        gaps=(GapInterval("false positive rate", 1, -1, -0.01, 0.0499999999),),
        valid_until=30_000,
        groups=(-1, 1),
        outside=(OutsideCount(None, 12), OutsideCount("Femal", 1)),
        overruled=(DrawCount(1, False, 31),),
        late_groups=(DrawCount(-1, True, 4),),
        erased=3,
    )
    return replace(plain, **changes)


def test_json_round_trip_is_identical() -> None:
    for original in (
        certificate(),
        certificate(valid_until=None, gaps=(), counts=()),
        certificate().suspend("drift in a"),
    ):
        text = json.dumps(original.to_json())
        again = Certificate.from_json(json.loads(text))
        assert again == original
        assert json.dumps(again.to_json()) == text
        assert again.digest == original.digest


def test_it_cannot_be_changed() -> None:
    original = certificate()
    loose = original.to_json()
    loose["counts"][0]["people"] = 0
    loose["bound"]["params"]["rates"] = 0
    assert original == certificate()
    with pytest.raises(FrozenInstanceError):
        certificate().limit = 0.1  # type: ignore[misc]


def test_the_claim_is_exact_and_names_its_probability() -> None:
    assert certificate().claim == (
        "Certified with probability at least 0.95, under the assumptions below: over the whole run "
        "of the learner the gap in false positive rate between any two of the groups -1, 1 is at "
        "most 0.05 for every policy it deploys (manual overrides are not covered)."
    )


def test_a_group_that_joined_later_is_named_with_its_first_round() -> None:
    covered = (CoveredFrom(-1, 0), CoveredFrom(0, 0), CoveredFrom(1, 1350))
    later = certificate(groups=(-1, 0, 1), covered=covered)
    assert later.covered_from == {-1: 0, 0: 0, 1: 1350}
    assert "over the whole run of the learner" in later.claim
    assert "between any two of the groups -1, 0 is" in later.claim
    assert later.claim.endswith("Group 1 joined: the same holds for it from round 1,350 on.")
    assert Certificate.from_json(later.to_json()) == later


def suspended_before(**changes: object) -> Certificate:
    """Certified again after two suspensions."""
    found = (Suspension(400, ("labels -1",), 650), Suspension(900, ("group mix", "labels 1"), 1210))
    covered = (CoveredFrom(-1, 900), CoveredFrom(1, 900))
    return certificate(**{"covered": covered, "suspensions": found, **changes})


def test_after_a_suspension_the_claim_begins_with_it_and_says_so() -> None:
    again = suspended_before()
    assert again.since == 900
    assert again.claim == (
        "Certified with probability at least 0.95, under the assumptions below: from round 900 on "
        "the gap in false positive rate between any two of the groups -1, 1 is at most 0.05 for "
        "every policy it deploys from then on (manual overrides are not covered). The learner was "
        "suspended at round 900 (group mix; labels 1): nothing is claimed of the policies before, "
        "nor of the people whom they decided about."
    )
    text = " ".join(again.describe().split())
    assert "suspended at round 400 (labels -1); constants alone decided until round 650" in text
    assert "suspended at round 900 (group mix; labels 1); constants alone decided until" in text
    assert "over the whole run of the learner" not in text
    assert Certificate.from_json(json.loads(json.dumps(again.to_json()))) == again


def test_a_group_that_joins_after_a_suspension_is_named_with_its_own_first_round() -> None:
    covered = (CoveredFrom(-1, 900), CoveredFrom(0, 900), CoveredFrom(1, 1350))
    claim = suspended_before(groups=(-1, 0, 1), covered=covered).claim
    assert "between any two of the groups -1, 0 is" in claim
    assert claim.endswith("Group 1 joined: the same holds for it from round 1,350 on.")


def test_a_cap_is_claimed_from_the_suspension_on() -> None:
    capped = {"accept_at_most": 0.3, "accepted": (0.1, 0.25)}
    assert "0.3 of the population, from the first person on." in certificate(**capped).claim
    assert "0.3 of the population, from round 900 on." in suspended_before(**capped).claim


def test_a_group_covered_from_before_the_suspension_has_no_constructor() -> None:
    with pytest.raises(InvalidInput) as raised:
        suspended_before(covered=(CoveredFrom(-1, 0), CoveredFrom(1, 900)))
    assert raised.value.argument == "covered"


def test_a_certificate_has_its_counts_and_who_is_outside() -> None:
    told = certificate().result()
    media_agree(told)
    assert (-1, "bad", 4100) in {(int(g), o, n) for g, o, n in told.table("evidence").rows}
    beside = set(told.table("outside").rows)
    assert beside == {
        ("outside the certificate", "unknown", 12),
        ("outside the certificate", "Femal", 1),
        ("overruled by people, counted as drawn: reject", "1", 31),
        ("group reported after the draw: accept", "-1", 4),
        ("erased, counted at its worst", "", 3),
    }
    assert dict(told.table("computed").rows)["bound"] == "joint clamped betting"
    assert told.facts["booked of delta"] == certificate().spent
    assert "30,000" in told.facts["valid until"]
    for forbidden in ("unbiased", "bias-free", "guarantees fairness", "guarantee"):
        assert forbidden not in certificate().describe()


def test_a_suspended_certificate_claims_nothing() -> None:
    told = certificate().suspend("the labels of group 1 changed").result()
    assert told.answer == ("SUSPENDED: the labels of group 1 changed. No claim stands.",)
    assert (told.claimed, told.verdict) == (None, None)
    assert "Certified with probability" not in certificate().suspend("it changed").describe()


@pytest.mark.parametrize("interval", [(-0.01, 0.06), (-0.0501, 0.0), (0.02, 0.01)])
def test_certified_beyond_the_limit_has_no_constructor(interval: tuple[float, float]) -> None:
    gap = GapInterval("FPR", 1, -1, *interval)
    with pytest.raises(InvalidInput, match="limit"):
        certificate(gaps=(gap,))
    assert certificate(gaps=(gap,), status="suspended", reason="interval").status == "suspended"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limit": 0.0}, "limit is 0.0"),
        ({"limit": -0.1}, "limit is -0.1"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"spent": 0.06}, "0.06"),
        ({"window": (10, 2)}, "begins"),
        ({"status": "suspended"}, "reason"),
    ],
)
def test_impossible_certificates_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        certificate(**changes)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="format 99"):
        Certificate.from_json({**certificate().to_json(), "format": 99})


def test_the_hash_is_that_of_the_canonical_json() -> None:
    assert canonical_digest({"a": 1, "b": [2.5]}) == canonical_digest({"b": [2.5], "a": 1})
    assert canonical_digest({"a": 1}) != canonical_digest({"a": 2})
    assert len(certificate().policy) == 64


@pytest.mark.parametrize(
    ("label", "plain"),
    [(np.int64(3), 3), ("a", "a"), (np.str_("b"), "b"), ((1, 2), "(1, 2)"), (1.5, 1.5)],
)
def test_group_labels_become_plain(label: object, plain: object) -> None:
    assert plain_label(label) == plain
    assert type(plain_label(label)) in (str, int, float)
    assert CellCount(label, 1, 2) == CellCount(plain, 1, 2)


@pytest.mark.parametrize("version", [None, 0, 2, "1"])
def test_another_protocol_version_is_an_error(version: object) -> None:
    written = certificate().to_json()
    assert written["protocol_version"] == PROTOCOL_VERSION == 1
    with pytest.raises(InvalidInput, match=f"protocol version {version!r}"):
        Certificate.from_json({**written, "protocol_version": version})
    del written["protocol_version"]
    with pytest.raises(InvalidInput, match="protocol version None"):
        Certificate.from_json(written)


def test_assumptions_that_hold_for_some_are_named_only_there() -> None:
    assert not any("group becomes known" in line for line in standard_assumptions())
    assert any("group becomes known" in line for line in standard_assumptions(late_groups=True))
    assert "false alarm at most 0.001" in standard_assumptions(drift_false_alarm=1e-3)[0]


class TestCannotCertify:
    def test_it_says_which_count_is_missing_and_how_many_people_that_is(self) -> None:
        error = CannotCertify(
            group="b", denominator="negatives (label -1)", have=50, needed=1050, people=1000
        )
        assert error.missing == 1000
        assert error.more_people == 20_000
        assert (
            "group 'b' has 50 negatives (label -1) among 1,000 people, but 1,050 are needed: "
            "1,000 more" in str(error)
        )
        assert "expected after 20,000 more people" in str(error)

    def test_none_seen_is_not_a_share_of_zero(self) -> None:
        error = CannotCertify(group=1, denominator="negatives", have=0, needed=30, people=1000)
        assert error.more_people == pytest.approx(30 * 1000 / 3)
        assert "after at least 10,000 more people (none was seen so far)" in str(error)

    def test_before_the_first_person_and_when_no_number_is_enough(self) -> None:
        assert (
            CannotCertify(group=1, denominator="negatives", have=0, needed=30, people=0).more_people
            == 30
        )
        error = CannotCertify(group=1, denominator="negatives", have=3, needed=math.inf, people=10)
        assert "infinitely many" in str(error)

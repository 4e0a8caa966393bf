"""Every bound of evenhand keeps the laws, and each law catches who breaks it."""

import pytest

from evenhand.bounds import AuditBinomial, AuditCounts, AuditDkw, AuditHoeffding, AuditKl
from evenhand.bounds.fixed_count import AuditIntervals
from evenhand.testing import BOUND_LAWS, LawBroken, check_bound

OURS = [AuditHoeffding(), AuditKl(), AuditBinomial(), AuditDkw()]


@pytest.mark.parametrize("bound", OURS, ids=lambda bound: bound.name)
def test_ours_keep_the_laws(bound):
    assert check_bound(bound) == tuple(law.__name__ for law in BOUND_LAWS)


class Broken(AuditHoeffding):
    def __init__(self, change):
        object.__setattr__(self, "change", change)

    def intervals(self, counts, **given):
        found = super().intervals(counts, **given)
        return AuditIntervals(*self.change(found.lower, found.upper, counts))


def forgetful(lower, upper, counts):
    kept = AuditCounts.of(counts.least, counts.people, signs=counts.signs)
    found = AuditHoeffding().intervals(kept, failure_probability=0.2, log_size=0.7, columns=1)
    return found.lower, found.upper


CALLS = []
BROKEN = {
    "limits lie in range": lambda lower, upper, _: (2 * lower, upper),
    "exchanging groups mirrors the limits": lambda lower, upper, _: (lower, upper * 0.9),
    "doubtful people widen the limits": forgetful,
    "gaps are covered": lambda lower, upper, _: ((lower + upper) / 2, (lower + upper) / 2),
    "the same counts have the same limits": lambda lower, upper, counts: (
        lower - 1e-13 * (CALLS.append(1) or len(CALLS)),
        upper,
    ),
}


@pytest.mark.parametrize("law", BOUND_LAWS, ids=lambda law: law.__name__)
def test_a_broken_law_is_named(law):
    name = law.__name__.replace("_", " ")
    counts = AuditCounts.of([[[30, 20]], [[4, 9]]], [[40, 50]])
    law(AuditHoeffding(), counts)
    with pytest.raises(LawBroken, match=name):
        law(Broken(BROKEN[name]), counts)

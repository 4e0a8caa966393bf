"""A plan's verdict is not contradicted by a long life of the real class on the whole table.

The plan simulates a table's kinds of people and some of the class's rules; the life plays the
certified learner with all stumps on the table itself, with another seed.

Error rates. "Worth it" and "not worth it" exclude 0 from an interval that holds the saving of one
more life with probability .99 if savings are normal; a contradiction needs a life on the other side
of 0, outside of the interval on one side: at most .005 a table, and far less where the saving is
several intervals from 0, as it is on nearly all of them. Outside of the interval, on either side:
P[Binomial(36, .01) > 6] < 1e-6 for correct code; intervals that hold a life with probability .7
only (those of the middle 80% of 8 lives do) would fail with probability > .9.

Negative control: a plan that looks at 600 rows in 12 bins, as plans did, is contradicted.
"""

import pytest
from tests.planning.launches import random_table, verdicts

from evenhand.tables import read_table

PEOPLE = 20_000
REAL = ("adult", "compas", "german", "taiwan", "loanapp", "recid")


def told(name, found):
    plan, mark = found.plan, "CONTRADICTED" if found.contradicted else ""
    print(f"{name}: {plan.answer}, {plan.saving.describe()}, lived {found.lived:,.0f} {mark}")


@pytest.mark.claims
def test_no_verdict_on_random_tables_is_contradicted():
    found = [verdicts(random_table(seed), 0.1, PEOPLE, lives=8) for seed in range(30)]
    for seed, (mine, before) in enumerate(found):
        told(f"table {seed}", mine)
        told("  600 rows in 12 bins", before)
    assert sum(mine.contradicted for mine, _ in found) == 0
    assert sum(mine.outside for mine, _ in found) <= 6
    assert sum(before.contradicted for _, before in found) >= 1


@pytest.mark.claims_tables
def test_no_verdict_on_real_tables_is_contradicted():
    found = {}
    for name in REAL:
        found[name] = verdicts(read_table(name).encoded().sample, 0.05, PEOPLE, lives=8)[0]
        told(name, found[name])
    assert sum(one.contradicted for one in found.values()) == 0
    assert sum(one.outside for one in found.values()) <= 2

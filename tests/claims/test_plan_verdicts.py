"""A plan's verdict is not contradicted by a long run of the real class on the whole table.

The plan plays eight runs of the class that will be launched on the table itself (or on its kinds
of people, where that would take too long). One more run, with a seed of its own, is what the
launch would show.

What "no contradiction" needs. "Worth it" and "not worth it" exclude 0 from the interval mean -+ t s
sqrt(1 + 1/n), which holds the saving of *one more* run with probability .99 if savings are normal.
A single verdict at its very edge is contradicted with probability .005, 36 such verdicts with .165;
a level of 1 - .05/36 for each would keep that below .05 and make every interval of eight runs 1.4
times as wide, for tables that are nearly all many intervals away from 0. So the level stays, and
the probability is computed: from the mean and the spread of its runs each plan tells with which
probability one more run contradicts it, and the test asserts that these sum to at most .05. That
is its error rate, under normality.

Outside of the interval, on either side: P[Binomial(36, .01) > 6] < 1e-6 for correct code; intervals
that hold a run with probability .7 only (those of the middle 80% of 8 runs do) would fail with
probability > .9.

Negative control: a plan that looks at 600 rows in 12 bins, as plans did, says "worth it" of table
22, where little can be gained, and is contradicted.
"""

import pytest
from tests.planning.launches import random_table, thinned, verdict

from evenhand.tables import read_table

PEOPLE = 20_000
ERROR_RATE = 0.05
REAL = ("adult", "compas", "german", "taiwan", "loanapp", "recid")


def told(name, found):
    plan, mark = found.plan, "CONTRADICTED" if found.contradicted else ""
    mark += " outside" if found.outside else ""
    print(f"{name}: {plan.answer}, {plan.saving.describe()}, lived {found.lived:,.0f} {mark}")
    return found


def summary(claims, tables, found):
    contradicted = sum(one.contradicted for one in found)
    outside, chance = (
        sum(one.outside for one in found),
        sum(one.contradiction_chance for one in found),
    )
    claims.add(
        f"plan's verdict equals what a long run shows ({tables})",
        "0 contradictions",
        f"{contradicted} of {len(found)}; {outside} savings outside of the 99% interval",
        contradicted == 0,
    )
    assert chance <= ERROR_RATE
    assert contradicted == 0
    return outside


@pytest.mark.claims
def test_no_verdict_on_random_tables_is_contradicted(claims):
    tables = [random_table(seed) for seed in range(30)]
    found = [told(f"table {n}", verdict(t, t, 0.1, PEOPLE)) for n, t in enumerate(tables)]
    assert summary(claims, "30 random tables", found) <= 6


@pytest.mark.claims
def test_a_plan_that_looks_at_few_rows_in_bins_is_contradicted():
    table = random_table(22)
    assert told("600 rows in 12 bins", verdict(thinned(table), table, 0.1, PEOPLE)).contradicted


@pytest.mark.claims_tables
def test_no_verdict_on_real_tables_is_contradicted(claims):
    found = []
    for name in REAL:
        sample = read_table(name).encoded().sample
        found.append(told(name, verdict(sample, sample, 0.05, PEOPLE)))
    assert summary(claims, "6 real tables", found) <= 2

"""A table and the options of a command become a problem."""

import numpy as np
import pytest

from evenhand.cli.options import ColumnOptions
from evenhand.cli.problem import held_out, table_problem
from evenhand.errors import InvalidInput

COLUMNS = ColumnOptions(label="repaid", good="yes", group="group")


def test_a_table_and_its_options_become_a_problem(lending):
    task = table_problem(lending, COLUMNS, rates=("fpr", "fnr"))
    assert [rate.symbol for rate in task.rates] == ["FPR", "FNR"]
    assert (task.source, len(task.sample), task.priced) == ("lending.csv", 1200, False)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (COLUMNS, {"score": "income"}, "thresholds"),
        (COLUMNS, {"kind": "thresholds"}, "--score"),
        (
            ColumnOptions(label="repaid", good="yes", group="group", features=("income",)),
            {"kind": "thresholds", "score": "income"},
            "--features",
        ),
    ],
)
def test_a_score_belongs_to_thresholds(lending, columns, options, message):
    with pytest.raises(InvalidInput, match=message):
        table_problem(lending, columns, **options)


def test_prices_are_numbers_or_columns(lending):
    numbers = table_problem(lending, COLUMNS, price_false_accept="3")
    assert numbers.priced
    assert numbers.prices == {"false_accept": "3", "false_reject": "1"}
    by_row = table_problem(lending, COLUMNS, price_false_accept="income", holdout=0.25)
    income = by_row.sample.features[:, by_row.table.names.index("income")]
    bad = by_row.sample.label == -1
    assert by_row.problem.acceptance_cost[bad] == pytest.approx(income[bad])
    assert len(by_row.held) == 300


def test_the_same_share_of_every_group_is_held_out():
    group = np.array(["a"] * 10 + ["b"] * 20)
    chosen = held_out(group, 0.3, seed=1)
    assert chosen[:10].sum() == 3
    assert chosen[10:].sum() == 6
    assert (chosen == held_out(group, 0.3, seed=1)).all()
    with pytest.raises(InvalidInput, match="side"):
        held_out(np.array(["a", "b", "b"]), 0.3, seed=1)

"""The logs from which the loss learns."""

import numpy as np
import pytest
from tests.rounds.made import marked_table, table

from evenhand.algorithms.certified.sample import resolved_rows
from evenhand.rounds import learning


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_sees_the_resolved_alone(seed):
    rounds = marked_table(seed)
    accept = rounds["accept"]
    here = ~rounds["erased"]
    labelled = accept & here & ~rounds["overruled"] & (rounds["label"] != 0)
    log = learning.log(rounds)
    assert log.rejected.sum() == (~accept & here).sum()
    assert log.positive.sum() == (labelled & (rounds["label"] == 1)).sum()
    assert log.negative.sum() == (labelled & (rounds["label"] == -1)).sum()
    assert learning.resolved_before(rounds, 400) == log.rounds
    rejected, chosen, audited = resolved_rows(rounds, 0, 400)
    possible = labelled & ~rounds["label_late"] & (rounds["acceptance"] > 0)
    np.testing.assert_array_equal(np.sort([*chosen, *audited]), np.flatnonzero(possible))
    assert rounds["audit"][audited].all()
    assert not rounds["audit"][chosen].any()
    assert not accept[rejected].any()
    assert here[rejected].all()
    assert (rounds["acceptance"][rejected] > 0).all()


def test_the_log_between_two_rounds_has_one_row_per_round_in_order():
    rounds = table()
    log = learning.log_between(rounds, 10, 30)
    assert len(log) == 20
    assert np.array_equal(log.features, rounds.features_of(slice(10, 30)))
    assert np.array_equal(log.rejected, (~rounds["accept"][10:30]).astype(float))
    assert learning.log_between(rounds, 10, 30, with_group=False).group is None
    assert learning.log_between(rounds, 60, 90) is None
    rounds.returned = 20
    assert len(learning.log_between(rounds, 10, 30)) == 10

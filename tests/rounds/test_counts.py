"""Counts of which somebody is missing cannot be made."""

from dataclasses import replace

import numpy as np
import pytest
from tests.rounds.made import table

from evenhand.errors import InvalidInput, ProtocolError
from evenhand.rounds import counting


@pytest.mark.parametrize("chance", [0.0, 1.0, 1.5, -0.1, float("nan")])
def test_what_cannot_have_happened_has_no_constructor(chance):
    rounds = table(400)
    rounds["acceptance"][:] = chance
    with pytest.raises(InvalidInput):
        counting.count(rounds, 0, 400)


def test_a_selection_made_afterwards_has_no_constructor():
    whole = counting.count(table(400), 0, 400)
    columns = [
        *("acceptance", "rejected", "positive", "negative", "unresolved", "group"),
        *("settled", "settled_audited"),
        *("audited_positive", "audited_negative"),
    ]
    for rows in (np.arange(1, len(whole.features)), np.flatnonzero(whole.positive == 0)):
        kept = {name: getattr(whole, name)[..., rows] for name in columns}
        with pytest.raises(ProtocolError):
            replace(whole, features=whole.features[rows], **kept)

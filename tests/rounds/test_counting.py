"""Counts of cohorts beside a loop over their people."""

from collections import Counter

import pytest
from tests.rounds.made import PEOPLE, marked_table

from evenhand.rounds import counting


class TestCounting:
    @pytest.mark.parametrize("seed", range(5))
    def test_counts_are_those_of_a_loop_over_the_people(self, seed):
        rounds = marked_table(seed)
        found = counting.count(rounds, 0, 400)
        seen = Counter()
        lost = Counter()
        settled = Counter()
        for i in range(400):
            accept = bool(rounds["accept"][i])
            audit = bool(rounds["audit"][i])
            chance = float(rounds["acceptance"][i])
            if rounds["erased"][i]:
                lost[chance, accept] += 1
                continue
            silent = rounds["overruled"][i] or rounds["label_late"][i]
            label = 0 if silent else int(rounds["label"][i])
            kind = {1: "positive", -1: "negative", 0: "unresolved"}[label] if accept else "rejected"
            context = (PEOPLE.features[i, 0], PEOPLE.group[i], chance)
            seen[kind, context] += 1
            if audit:
                seen[f"audited_{kind}", context] += 1
            if accept:
                settled[int(rounds["settled"][i]), context] += 1
        contexts = list(zip(found.features[:, 0], found.group, found.acceptance, strict=True))
        assert len(set(contexts)) == len(contexts)
        for kind in ("rejected", "positive", "negative", "unresolved"):
            column = dict(zip(contexts, getattr(found, kind), strict=True))
            assert all(column[c] == seen[kind, c] for c in contexts), kind
        for kind in ("positive", "negative"):
            column = getattr(found, f"audited_{kind}")
            assert column.tolist() == [seen[f"audited_{kind}", c] for c in contexts]
        for row, label in enumerate((1, -1, 0)):
            assert found.settled[row].tolist() == [settled[label, c] for c in contexts]
        for chance, accepted, rejected in zip(
            found.lost_acceptance, found.lost_accepted, found.lost_rejected, strict=True
        ):
            assert (accepted, rejected) == (lost[chance, True], lost[chance, False])
        assert found.rounds.sum() + found.lost == 400

"""Past decisions without probabilities, from the table to the verdict."""

import json
from math import inf

import numpy as np
import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import InvalidInput
from evenhand.evaluation import Candidate, DecisionHistory, bound_history, gate, read_history
from evenhand.hypotheses import ACCEPT_ALL
from evenhand.hypotheses.linear import LinearRule


def people(rows=3000, seed=0, lean=0.0):
    """Scores decide; group b repays less often among the rejected if `lean` is not 0."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], rows)
    score = rng.normal(size=rows)
    accept = score + 0.3 * rng.normal(size=rows) > -0.5
    good = 1 / (1 + np.exp(-score - 0.8))
    good = np.where(~accept & (group == "b"), good * (1 - lean), good)
    label = np.where(rng.random(rows) < good, 1, -1)
    return score, group, accept, label


def history_of(score, group, accept, label):
    return DecisionHistory.of(score[:, None], accept, np.where(accept, label, 0), group=group)


def cut():
    """Accept scores above 0."""
    return eh.policies.Mixture((LinearRule((1.0,), 0.0),), (1.0,))


def test_the_true_gap_lies_in_the_range_that_assumes_nothing():
    score, group, accept, label = people(lean=0.5)
    found = bound_history(history_of(score, group, accept, label), cut(), limit=0.05)
    takes = cut().acceptance(score[:, None]) == 1
    rate = [takes[(group == g) & (label == -1)].mean() for g in ("a", "b")]
    (widest,) = [gap for gap in found.gaps if gap.gamma == inf]
    assert widest.lower <= rate[0] - rate[1] <= widest.upper
    for narrow, wide in zip(found.gaps, found.gaps[1:], strict=False):
        assert wide.lower <= narrow.lower < narrow.upper <= wide.upper


def test_a_policy_that_treats_all_alike_is_within_whatever_happened():
    found = bound_history(
        history_of(*people(500)), eh.policies.Mixture((ACCEPT_ALL,), (1.0,)), limit=0.3
    )
    assert found.flips_at == inf
    assert gate(found, 0.3).status == "within"
    assert "whatever the outcomes" in found.sentence
    assert found.to_json()["within_up_to_gamma"] == "infinite"


def test_the_factor_at_which_the_verdict_changes_lies_between_its_neighbours():
    found = bound_history(history_of(*people(6000)), cut(), limit=0.2, gammas=(1, 8))
    assert found.verdict(1.0) == "within"
    assert found.verdict(8.0) == "not shown"
    assert 1 <= found.flips_at < 8
    assert found.lottery > 0
    assert f"at most {found.flips_at:.2f}" in found.describe()
    assert found.to_frame()["status"].tolist() == ["within", "not shown"]
    assert found.plot().lines


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"gammas": (0.5,)}, "gammas"),
        ({"gammas": ()}, "gammas"),
        ({"rates": "selection"}, "rates"),
        ({"strata": [1, 2]}, "strata"),
        ({"strata": list(range(300))}, "strata"),
        ({"groups": ["a", "z"]}, "groups"),
        ({"groups": ["a"]}, "groups"),
        ({"limit": 2.0}, "limit"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_bad_settings_are_named(settings, argument):
    with pytest.raises(InvalidInput) as caught:
        bound_history(history_of(*people(300)), cut(), **settings)
    assert caught.value.argument == argument


def written(path, score, group, accept, label):
    rows = ["x,group,accept,label"]
    for x, g, d, y in zip(score, group, accept, label, strict=True):
        rows.append(f"{x},{g},{int(d)},{y if d else ''}")
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_the_command_reads_a_table_and_gates(tmp_path):
    where = written(tmp_path / "log.csv", *people(400))
    assert len(read_history(where)) == 400
    words = ["evaluate", where, "--policy", "accept-all", "--without-propensities", "--gamma", "2"]
    done = CliRunner().invoke(main, [*words, "--limit", "0.3", "--gate", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["gaps"][0]["gamma"] == 2
    done = CliRunner().invoke(main, [*words, "--limit", "0.0001", "--gate"])
    assert done.exit_code == 3
    refused = CliRunner().invoke(main, ["evaluate", where, "--policy", "accept-all"])
    assert refused.exit_code == 2
    assert "without_propensities" in refused.output or "--without-propensities" in refused.output


def test_a_constant_candidate_is_read_by_name():
    assert Candidate.read("accept-all").acceptance(history_of(*people(20))).tolist() == [1.0] * 20

"""The figures of docs/paper/deviations.md: each is computed here, or read from what `make claims`
printed last, and looked for in its entry of the page.
"""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from evenhand import theory
from evenhand.algorithms.exploration import next_size
from evenhand.algorithms.two_phase import FIRST_EPOCH
from evenhand.bandit import feasibility
from evenhand.environments import Discrete, LowerBound, lending, random_population
from evenhand.environments.population import cheapest_mixture
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture

DOCS = Path(__file__).parents[1] / "docs"
GAMMA = 0.02
WORLDS = {
    "lending": lending,
    "random": lambda: random_population(0),
    "D1": lambda: LowerBound(1, 1 / 16),
}


def entry(number: int) -> str:
    """The text of one entry, in one line."""
    text = (DOCS / "paper" / "deviations.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {number}\. .*?(?=^##|\Z)", text, flags=re.M | re.S)
    assert found is not None
    return " ".join(found[0].split())


def test_the_entries_are_numbered_from_one_on() -> None:
    text = (DOCS / "paper" / "deviations.md").read_text(encoding="utf-8")
    numbers = [int(one) for one in re.findall(r"^### (\d+)\. ", text, flags=re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 30


def section(title: str) -> str:
    """The text below a title of the page, as it is written."""
    text = (DOCS / "paper" / "deviations.md").read_text(encoding="utf-8")
    return re.split(r"^## ", text.split(f"## {title}\n")[1], flags=re.M)[0]


def part(number: int, start: str) -> str:
    """The item of an entry that begins with these words in bold."""
    found = re.search(rf"- \*\*{start}\*\*(.*?)(?= - \*\*|\Z)", entry(number))
    assert found is not None
    return found[1]


def kept(*starts: str) -> list[dict[str, str]]:
    """The rows of the last whole run of `make claims` that begin so; at least one for each."""
    rows = json.loads((DOCS / "measured" / "claims.json").read_text(encoding="utf-8"))["rows"]
    found = [[row for row in rows if row["row"].startswith(start)] for start in starts]
    assert all(found)
    return [row for of_one in found for row in of_one]


def claim(start: str) -> str:
    """The figure that `make claims` printed last for the claim that begins so."""
    (row,) = kept(start)
    return row["figure"]


def numbers(text: str) -> list[str]:
    """The numbers in a text, as they are written. A hyphen between two numbers is no sign."""
    return re.findall(r"(?<![\w.\d])-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e\+?\d+)?(?![\w])", text)


def value(number: str) -> float:
    return float(number.replace(",", ""))


def decimals(number: str) -> int:
    return len(number.split(".")[1]) if "." in number else 0


def not_kept(text: str, rows: list[dict[str, str]]) -> list[str]:
    """The numbers of a text that are no number of these rows, rounded as in the text."""
    printed = [value(n) for row in rows for n in numbers(" ".join(map(str, row.values())))]
    return [
        one
        for one in numbers(text)
        if not any(round(other, decimals(one)) == value(one) for other in printed)
    ]


def test_8_independent_rules_miss_the_printed_slack_with_both_constants_one() -> None:
    horizon, log_size, delta = 1e6, math.log(204), 0.05
    n = theory.paper_exploration_rounds(horizon, log_size, delta) // 4
    slack = theory.paper_slack(horizon, log_size, delta)
    first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    chance = binom.pmf(first, n, 0.5) * binom.pmf(second, n, 0.5)
    one = float(chance[np.abs(first - second) > slack * n].sum())
    assert f"in {1 - (1 - one) ** 204:.0%} for 204 independent rules" in entry(8)
    order = math.log(204 / delta) ** 0.75
    explored = theory.paper_exploration_rounds(horizon, log_size, delta)
    assert slack == pytest.approx(order / math.sqrt(explored), rel=1e-3)


def test_9_preset_sizes_cost_a_twentieth_at_most() -> None:
    size, worst = 64, 0.0
    while size < 10**6:
        if size >= 1280:
            worst = max(worst, next_size(size) / size - 1)
        else:
            assert next_size(size) == size + 64
        size = next_size(size)
    assert f"at most {worst:.0%} of T_0 (64 rounds where T_0 is below 1,280)" in entry(9)


def test_18_two_caps() -> None:
    floor = 0.01
    cap, ours = theory.iteration_cap(floor), feasibility.iteration_cap(floor, 2)
    assert f"{cap:,} where the code stops at {ours:,.0f} (mu = .01, K = 2)" in entry(18)
    proved = 4 * math.log(1 / (2 * floor)) / floor
    assert proved - ours == pytest.approx(4 * (1 - 2 * floor) / floor)
    largest = re.search(r"largest (\d+)", claim("Algorithm 1 at halt"))
    assert largest is not None
    assert f"more than {largest[1]}." in entry(18)


def explored_more(horizon: int) -> float:
    """The sum of mu over the rounds with epochs that double, over that with a new mu in each."""
    played, total = FIRST_EPOCH, 0.0
    while played < horizon:
        length = min(played, horizon - played)
        total += length / math.sqrt(played)
        played += length
    return total / float((1 / np.sqrt(np.arange(FIRST_EPOCH + 1, horizon + 1))).sum())


def test_22_what_epochs_that_double_explore() -> None:
    assert f"{explored_more(10**6):.2f} times as much in all (T = 1e6)" in entry(22)


def coin_cost(world: Discrete) -> float:
    coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))
    return FIRST_EPOCH * (world.loss(coin) - world.optimum(GAMMA)[0])


def test_23_what_the_coin_costs() -> None:
    costs = {name: coin_cost(make()) for name, make in WORLDS.items()}
    others = ", ".join(f"{costs[name]:.0f} on {name}" for name in ("random", "D1"))
    assert f"{costs['lending']:.0f} errors on lending, {others}." in entry(23)


def hindsight_excess(world: Discrete, rounds: int, samples: int) -> float:
    """How much worse on D, in errors over all rounds, the gamma-fair policy is that was best on the
    sequence of people.
    """
    accepts = world.accepts.astype(float)
    negative = world.probability * (1 - world.positive_rate)
    positive = world.probability * world.positive_rate
    loss = accepts @ negative + (1 - accepts) @ positive
    of_group = [world.group == g for g in sorted(set(world.group.tolist()))]
    rates = [accepts[:, at] @ negative[at] / negative[at].sum() for at in of_group]
    gaps = (rates[1] - rates[0])[np.newaxis]
    best = world.optimum(GAMMA)[0]
    generator = np.random.default_rng(0)
    found = []
    for _ in range(samples):
        counts = world.draw_counts(rounds, np.ones(len(world)), generator)
        cost = accepts @ counts.accepted_negative + (1 - accepts) @ counts.accepted_positive
        weights = cheapest_mixture(cost / rounds, gaps, GAMMA)
        found.append(rounds * float(weights @ loss - best))
    return float(np.mean(found))


def test_24_the_comparator_in_hindsight() -> None:
    """40 sequences of a million people have a standard error of 13 errors on lending and 6 on
    random: more than four of them off the printed figure is a false alarm with 1e-4.
    """
    printed = re.search(
        r"by (\d+) \+- 2 errors .* lending, (\d+) \+- 1 on random, none on D1", entry(24)
    )
    assert printed is not None
    for name, of_page, error in (("lending", printed[1], 13), ("random", printed[2], 6)):
        found = hindsight_excess(WORLDS[name](), 10**6, 40)
        assert 0 < found == pytest.approx(float(of_page), abs=4 * error)
    assert hindsight_excess(WORLDS["D1"](), 10**6, 20) == pytest.approx(0.0, abs=1e-6)


MEASURED = {
    "what its constants mean": (
        lambda: "".join(re.findall(r"^\|.*", section("As printed"), flags=re.M)),
        ("what the constants of", "as printed, exact oracle, doubling epochs, alpha = 0.250"),
    ),
    "where the order shows": (
        lambda: section("As printed").split("The order shows later")[1],
        ("as printed, exact oracle, doubling epochs: T0 + regret in the set over theorem 3.1",),
    ),
    "1": (lambda: part(1, "What it costs\\."), ("group classifiers in H, online",)),
    "7": (
        lambda: part(7, r"Only notation, under O\(\.\)\.").split("for beta in both places")[1],
        ("negative control: the paper's gamma + beta",),
    ),
    "8": (
        lambda: (
            part(8, "Why a constant is needed\\.").split("That was missed")[1].split("of rate")[0]
        ),
        ("the paper's beta and T0 as printed",),
    ),
    "12": (
        lambda: part(12, "evenhand").split("estimate is ")[1],
        ("two-sided / one-sided regret",),
    ),
    "22": (
        lambda: part(22, "What was measured\\?*").split("the same coin")[1],
        (
            "as printed with the exact oracle, every round",
            "the same with mu_t = .1/sqrt(t): T = 2,000",
        ),
    ),
    "25": (
        lambda: part(25, "What was measured\\."),
        ("slope of log regret", "two-sided / one-sided regret", "literal constants: regret"),
    ),
    "28": (
        lambda: part(28, "What it brings\\.").split("in every round and")[1],
        ("the same with mu_t = .1/sqrt(t), T = 500", "Lambda_t in a run"),
    ),
}
"""What the page says of runs of `make claims`: the words, and the rows that they are from."""


@pytest.mark.parametrize("name", MEASURED)
def test_measured_figures_are_those_of_the_last_whole_run(name: str) -> None:
    """Negative control: the same words with every number one tenth larger are not found."""
    text, starts = MEASURED[name]
    rows = kept(*starts)
    assert numbers(text())
    assert not_kept(text(), rows) == []
    wrong = " ".join(f"{value(one) * 1.1:.4f}" for one in numbers(text()))
    assert len(not_kept(wrong, rows)) >= len(numbers(wrong)) / 2


def test_20_the_rounds_that_are_a_coin() -> None:
    coin = theory.uniform_rounds(1e6, math.log(204), 1e-3)
    assert f"{coin:,} for 204 rules, T = 1e6 and delta = .001" in entry(20)


def variances(policy: np.ndarray, propensity: np.ndarray) -> tuple[float, float]:
    """V in both readings, for acceptances on equally likely rows: the average of the inverse, and
    the inverse of the average.
    """
    both = np.stack([policy, 1 - policy])
    chances = np.stack([propensity, 1 - propensity])
    inverted = float((both / chances).sum(axis=0).mean())
    return inverted, float((1 / (both * chances).sum(axis=0)).mean())


def test_26_claim_3_7_holds_in_both_readings() -> None:
    """Random pairs, weights within eta, and propensities at and between the floors; the worst case
    is at the floors. Negative control: half of the bound is exceeded.
    """
    generator = np.random.default_rng(0)
    worst = [0.0, 0.0]
    for _ in range(3000):
        floor, eta = np.exp(generator.uniform(np.log([1e-3, 1e-3]), np.log([0.5, 1.0])))
        first, second = generator.integers(0, 2, (2, 5))
        weight = generator.uniform(0, 1)
        other = np.clip(weight + eta * generator.choice([-1, 1]), 0, 1)
        between = generator.uniform(floor, 1 - floor)
        propensity = generator.choice([floor, 1 - floor, 0.5, between], 5)
        policies = [w * first + (1 - w) * second for w in (weight, other)]
        here, there = (variances(policy, propensity) for policy in policies)
        bound = eta / (floor * (floor + eta))
        for reading in (0, 1):
            worst[reading] = max(worst[reading], abs(here[reading] - there[reading]) / bound)
    assert 0.5 < max(worst) <= 1 + 1e-12


def fair_interval(gaps: tuple[float, float], limit: float) -> tuple[float, float]:
    """The weights w of the first of two rules with |w gap_1 + (1 - w) gap_2| <= limit."""
    ends = sorted((side * limit - gaps[1]) / (gaps[0] - gaps[1]) for side in (-1, 1))
    return max(ends[0], 0.0), min(ends[1], 1.0)


def test_27_middles_of_the_interval_of_fair_weights_are_a_cover_and_a_grid_is_not() -> None:
    """Gaps of .9 and -.85 under a limit of .01: no point of a grid of .1 is fair. The middles of
    equal parts of the interval are fair, cover it, and are no more than ceil(1/(2 eta)), so that
    |H|^2/eta stands.
    """
    low, high = fair_interval((0.9, -0.85), 0.01)
    assert f"leave [{low:.3f}, {high:.3f}]".replace("0.", ".") in entry(27)
    assert not any(low <= point <= high for point in np.arange(11) / 10)
    for gaps, limit, eta in (((0.9, -0.85), 0.01, 0.1), ((0.3, -0.1), 0.05, 0.02)):
        low, high = fair_interval(gaps, limit)
        parts = math.ceil((high - low) / (2 * eta))
        middles = low + (high - low) * (np.arange(parts) + 0.5) / parts
        assert parts <= math.ceil(1 / (2 * eta))
        assert all(abs(w * gaps[0] + (1 - w) * gaps[1]) <= limit for w in middles)
        assert max(np.abs(middles - w).min() for w in np.linspace(low, high, 501)) <= eta + 1e-12

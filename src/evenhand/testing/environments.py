"""The laws of environments (contract: Environment), for ours and yours.

from evenhand.testing import check_environment
check_environment(MyPopulation())
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.contracts import Environment, Hypothesis, Policy
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.testing.laws import require, same, through_text
from evenhand.testing.playing import nothing_fails
from evenhand.words import FloatArray, LabelledSample, Prices

LIMITS = (0.0, 0.02, 0.1, 1.0)
ERRORS, FPR = Prices(), FalsePositiveRate()
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class EnvironmentCase:
    """A population, how many people are drawn from it, and the seed of the draw."""

    environment: Environment
    rows: int = 4000
    seed: int = 0

    @cached_property
    def people(self) -> LabelledSample:
        """Drawn people; of a stream at most as many as it has."""
        fresh = self.environment.fresh()
        remaining = getattr(fresh, "remaining", None)
        return fresh.draw(
            self.rows if remaining is None else min(self.rows, remaining), self.generator()
        )

    def generator(self) -> np.random.Generator:
        """The generator of the draw, at its beginning."""
        return np.random.default_rng(self.seed)

    def rules(self) -> Iterator[Hypothesis]:
        """The constants, and what the class answers to the drawn people's labels and to chance."""
        yield from (ACCEPT_ALL, REJECT_ALL)
        if self.environment.hypotheses is None or self.environment.hypotheses.uses_group:
            return
        oracle = self.environment.hypotheses.bind(self.people.features, None)
        yield oracle.best(-self.people.label.astype(np.float64))
        draw = np.random.default_rng(self.seed + 1)
        for _ in range(3):
            yield oracle.best(draw.normal(size=len(self.people)) - 0.3 * self.people.label)

    @cached_property
    def mixtures(self) -> tuple[Mixture, ...]:
        """Each rule alone, and one mixture of all."""
        rules = tuple(self.rules())
        share = np.random.default_rng(self.seed + 2).dirichlet(np.ones(len(rules)))
        return (
            *(Mixture((rule,), (1.0,)) for rule in rules),
            Mixture(rules, tuple(share.tolist())),
        )

    def loss(self, policy: Policy) -> float:
        """The share of mistakes: both errors cost 1."""
        return self.environment.loss(policy, ERRORS)

    def gaps(self, policy: Policy) -> FloatArray:
        """The gaps of the false positive rate."""
        return np.asarray(self.environment.gaps(policy, FPR))

    def optimum(self, limit: float) -> tuple[float, Policy]:
        """The best policy by that loss with those gaps."""
        return self.environment.optimum(limit, FPR, ERRORS)


Law = Callable[[EnvironmentCase], None]


def draws_depend_on_the_generator_alone(case: EnvironmentCase) -> None:
    """The same generator at the same beginning gives the same people; as many as were asked for,
    each with a label and a group.
    """
    law, people = "draws_depend_on_the_generator_alone", case.people
    again = case.environment.fresh().draw(len(people), case.generator())
    for name in ("features", "group", "label"):
        require(
            same(getattr(people, name), getattr(again, name)),
            law,
            f"{name} differs between two equal draws",
        )
    part = case.environment.fresh().draw(7, case.generator())
    require(len(part) == 7, law, f"7 people were asked for, {len(part)} came")


def loss_is_a_share_of_mistakes(case: EnvironmentCase) -> None:
    """loss(accept all) = P[y = -1], loss(reject all) = P[y = +1]: they sum to one, and every loss
    lies in [0, 1].
    """
    accept, reject = (case.loss(policy) for policy in case.mixtures[:2])
    require(
        abs(accept + reject - 1) <= ROUNDING,
        "loss_is_a_share_of_mistakes",
        f"{accept!r} + {reject!r} is not 1",
    )
    for policy in case.mixtures:
        loss = case.loss(policy)
        require(
            -ROUNDING <= loss <= 1 + ROUNDING, "loss_is_a_share_of_mistakes", f"a loss is {loss!r}"
        )


def truth_is_that_of_the_draws(case: EnvironmentCase) -> None:
    """The mistakes of each policy among the drawn people are within Hoeffding's bound (at 1e-9) of
    its loss.
    """
    people = case.people
    width = math.sqrt(math.log(2 * len(case.mixtures) / 1e-9) / (2 * len(people)))
    for policy in case.mixtures:
        acceptance = policy.acceptance(people.features, people.group)
        seen = float(np.mean(np.where(people.label == 1, 1 - acceptance, acceptance)))
        loss = case.loss(policy)
        figures = f"{policy.describe()!r} has loss {loss:.4f}, but {seen:.4f} among {len(people)} people (+-{width:.4f})"
        require(abs(seen - loss) <= width, "truth_is_that_of_the_draws", figures)


def truth_is_linear_in_mixtures(case: EnvironmentCase) -> None:
    """loss and gaps of a mixture are the averages of those of its rules."""
    *alone, mixed = case.mixtures
    weights = np.array(mixed.weights)
    loss = float(weights @ np.array([case.loss(policy) for policy in alone]))
    gaps = weights @ np.array([case.gaps(policy) for policy in alone])
    off = max(abs(case.loss(mixed) - loss), float(np.abs(case.gaps(mixed) - gaps).max()))
    require(off <= ROUNDING, "truth_is_linear_in_mixtures", f"a mixture is off by {off:.3g}")


def prices_weigh_the_errors(case: EnvironmentCase) -> None:
    """With prices (a, b) the loss is a times the share of false accepts plus b times that of false
    rejects.
    """
    law = "prices_weigh_the_errors"
    for policy in case.mixtures:
        shares = (
            case.environment.loss(policy, Prices(1.0, 0.0)),
            case.environment.loss(policy, Prices(0.0, 1.0)),
        )
        require(
            abs(sum(shares) - case.loss(policy)) <= ROUNDING,
            law,
            f"{shares} do not sum to {case.loss(policy)!r}",
        )
        priced = case.environment.loss(policy, Prices(3.0, 0.5))
        expected = 3.0 * shares[0] + 0.5 * shares[1]
        require(
            abs(priced - expected) <= ROUNDING,
            law,
            f"the loss at prices 3 and .5 is {priced!r}, not {expected!r}",
        )


def every_rate_has_its_gaps(case: EnvironmentCase) -> None:
    """Rates may be asked for alone or together: the gaps are the same, one for each rate and pair
    of groups.
    """
    law, policy = "every_rate_has_its_gaps", case.mixtures[-1]
    rates = (FPR, FalseNegativeRate(), SelectionRate())
    alone = [np.asarray(case.environment.gaps(policy, rate)) for rate in rates]
    together = np.asarray(case.environment.gaps(policy, rates))
    groups = len(case.people.groups)
    require(
        all(len(gaps) >= groups * (groups - 1) // 2 for gaps in alone),
        law,
        f"{[len(gaps) for gaps in alone]} gaps",
    )
    apart = np.concatenate(alone)
    figures = f"{apart.tolist()} alone, {together.tolist()} together"
    require(
        apart.shape == together.shape and bool((np.abs(apart - together) <= ROUNDING).all()),
        law,
        figures,
    )


def constants_are_fair(case: EnvironmentCase) -> None:
    """Accepting everybody, or nobody, has no gap."""
    for policy in case.mixtures[:2]:
        worst = float(np.abs(case.gaps(policy)).max())
        require(
            worst <= ROUNDING, "constants_are_fair", f"{policy.describe()!r} has a gap of {worst!r}"
        )


def drawing_changes_no_truth(case: EnvironmentCase) -> None:
    """loss, gaps and optimum after a draw are those before it."""
    world = case.environment.fresh()
    policy = case.mixtures[-1]
    before = world.loss(policy, ERRORS), case.gaps(policy).tolist()
    best = world.optimum(0.1, FPR, ERRORS)[0] if world.hypotheses is not None else None
    world.draw(min(len(case.people), 50), case.generator())
    after = world.loss(policy, ERRORS), np.asarray(world.gaps(policy, FPR)).tolist()
    require(before == after, "drawing_changes_no_truth", f"{before} became {after}")
    require(
        best is None or world.optimum(0.1, FPR, ERRORS)[0] == best,
        "drawing_changes_no_truth",
        "the optimum changed",
    )


def optimum_is_fair_and_best(case: EnvironmentCase) -> None:
    """The optimum keeps its limit, has the loss that is told, falls as the limit rises, and no fair
    rule or constant is better.
    """
    if case.environment.hypotheses is None:
        return
    law, before = "optimum_is_fair_and_best", math.inf
    exact = case.environment.hypotheses.exact
    for limit in LIMITS:
        told, policy = case.optimum(limit)
        gap, loss = float(np.abs(case.gaps(policy)).max()), case.loss(policy)
        require(gap <= limit + ROUNDING, law, f"the optimum at {limit} has a gap of {gap!r}")
        require(
            abs(loss - told) <= ROUNDING,
            law,
            f"the optimum at {limit} is said to lose {told!r} and loses {loss!r}",
        )
        require(
            not exact or told <= before + ROUNDING,
            law,
            f"the optimum at {limit} loses {told!r}, more than {before!r}",
        )
        before = told
        for rule in case.mixtures if exact else case.mixtures[:2]:
            fair = float(np.abs(case.gaps(rule)).max()) <= limit
            theirs = case.loss(rule)
            tolerance = ROUNDING if _enumerated(case) else 1e-3
            require(
                not fair or told <= theirs + tolerance,
                law,
                f"{rule.describe()!r} loses {theirs!r}, the optimum {told!r}",
            )


def environment_describes_itself(case: EnvironmentCase) -> None:
    """params is plain JSON with an "environment"."""
    params = dict(case.environment.params)
    try:
        plain = through_text(params) == params
    except (TypeError, ValueError):
        plain = False
    require(
        plain and bool(params.get("environment")),
        "environment_describes_itself",
        f"{params} are not plain values",
    )


ENVIRONMENT_LAWS: tuple[Law, ...] = (
    draws_depend_on_the_generator_alone,
    loss_is_a_share_of_mistakes,
    truth_is_that_of_the_draws,
    truth_is_linear_in_mixtures,
    prices_weigh_the_errors,
    every_rate_has_its_gaps,
    constants_are_fair,
    drawing_changes_no_truth,
    optimum_is_fair_and_best,
    environment_describes_itself,
)


def check_environment(
    environment: Environment, *, rows: int = 4000, seed: int = 0
) -> tuple[str, ...]:
    """Run every law of environments; the names of the laws, or LawBroken at the first that does not
    hold.
    """
    case = EnvironmentCase(environment, rows, seed)
    for law in ENVIRONMENT_LAWS:
        with nothing_fails(law.__name__, "the law"):
            law(case)
    return tuple(law.__name__ for law in ENVIRONMENT_LAWS)


def _enumerated(case: EnvironmentCase) -> bool:
    """Whether the optimum is over the whole class; a continuous population chooses among a grid of
    thresholds.
    """
    return hasattr(case.environment, "population_sample")

"""The requirements of environments (contract: Environment)."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.contracts import Environment, Hypothesis, Policy
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.testing import RequirementBroken, is_plain_with, require, requirement, same
from evenhand.words import FloatArray, LabelledSample, Prices

LIMITS = (0.0, 0.02, 0.1, 1.0)
ERRORS = Prices()
FPR = FalsePositiveRate()
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class EnvironmentCase:
    """A population, and the people who are drawn from it."""

    environment: Environment
    rows: int = 4000
    seed: int = 0

    @cached_property
    def people(self) -> LabelledSample:
        """Drawn people; of a stream at most as many as it has."""
        fresh = self.environment.fresh()
        remaining = getattr(fresh, "remaining", None)
        rows = self.rows if remaining is None else min(self.rows, remaining)
        return fresh.draw(rows, self.generator())

    def generator(self) -> np.random.Generator:
        """Return the generator of the draw, at its beginning."""
        return np.random.default_rng(self.seed)

    def rules(self) -> Iterator[Hypothesis]:
        """Return the constants, and what the class answers to labels and to chance."""
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
        """Return the share of mistakes of a policy."""
        return self.environment.loss(policy, ERRORS)

    def gaps(self, policy: Policy) -> FloatArray:
        """Return the gaps of the false positive rate of a policy."""
        return np.asarray(self.environment.gaps(policy, FPR))

    def optimum(self, limit: float) -> tuple[float, Policy]:
        """Return the best policy by that loss with those gaps."""
        return self.environment.optimum(limit, FPR, ERRORS)


EnvironmentRequirement = Callable[[EnvironmentCase], None]


@requirement
def draws_depend_on_the_generator_alone(case: EnvironmentCase) -> None:
    """The same generator at the same beginning gives the same people.

    There are as many people as were asked for, one in each row, with a label and a group.
    """
    people = case.people
    again = case.environment.fresh().draw(len(people), case.generator())
    for name in ("features", "group", "label"):
        equal = same(getattr(people, name), getattr(again, name))
        require(equal, f"{name} differs between two equal draws")
    part = case.environment.fresh().draw(7, case.generator())
    require(len(part) == 7, f"7 people were asked for, {len(part)} came")
    # whoever runs a learner decides once for each row, so a count would be passed over
    require(bool((part.weight == 1).all()), f"a drawn row stands for {part.weight.max():g} people")


@requirement
def loss_is_a_share_of_mistakes(case: EnvironmentCase) -> None:
    """The losses of the two constants sum to one, and every loss lies in [0, 1].

    loss(accept all) = P[y = -1], loss(reject all) = P[y = +1]: they sum to one, and every loss
    lies in [0, 1].
    """
    accept, reject = (case.loss(policy) for policy in case.mixtures[:2])
    require(abs(accept + reject - 1) <= ROUNDING, f"{accept!r} + {reject!r} is not 1")
    for policy in case.mixtures:
        loss = case.loss(policy)
        require(-ROUNDING <= loss <= 1 + ROUNDING, f"a loss is {loss!r}")


@requirement
def truth_is_that_of_the_draws(case: EnvironmentCase) -> None:
    """The loss of a policy is the share of its mistakes among drawn people.

    The mistakes of each policy among the drawn people are within Hoeffding's bound (at 1e-9) of
    its loss.
    """
    people = case.people
    width = math.sqrt(math.log(2 * len(case.mixtures) / 1e-9) / (2 * len(people)))
    for policy in case.mixtures:
        acceptance = policy.acceptance(people.features, people.group)
        seen = float(np.mean(np.where(people.label == 1, 1 - acceptance, acceptance)))
        loss = case.loss(policy)
        figures = f"{policy.describe()!r} has loss {loss:.4f}, but {seen:.4f} among "
        figures += f"{len(people)} people (+-{width:.4f})"
        require(abs(seen - loss) <= width, figures)


@requirement
def truth_is_linear_in_mixtures(case: EnvironmentCase) -> None:
    """loss and gaps of a mixture are the averages of those of its rules."""
    *alone, mixed = case.mixtures
    weights = np.array(mixed.weights)
    loss = float(weights @ np.array([case.loss(policy) for policy in alone]))
    gaps = weights @ np.array([case.gaps(policy) for policy in alone])
    off = max(abs(case.loss(mixed) - loss), float(np.abs(case.gaps(mixed) - gaps).max()))
    require(off <= ROUNDING, f"a mixture is off by {off:.3g}")


@requirement
def prices_weigh_the_errors(case: EnvironmentCase) -> None:
    """Prices multiply the shares of the two kinds of errors.

    With prices (a, b) the loss is a times the share of false accepts plus b times that of false
    rejects.
    """
    for policy in case.mixtures:
        prices = (Prices(1.0, 0.0), Prices(0.0, 1.0), Prices(3.0, 0.5))
        accepts, rejects, priced = (case.environment.loss(policy, one) for one in prices)
        whole = case.loss(policy)
        expected = 3.0 * accepts + 0.5 * rejects
        figures = f"{(accepts, rejects)} do not sum to {whole!r}"
        require(abs(accepts + rejects - whole) <= ROUNDING, figures)
        figures = f"the loss at prices 3 and .5 is {priced!r}, not {expected!r}"
        require(abs(priced - expected) <= ROUNDING, figures)


@requirement
def every_rate_has_its_gaps(case: EnvironmentCase) -> None:
    """Rates that are asked for alone or together have the same gaps.

    Rates may be asked for alone or together: the gaps are the same, one for each rate and pair of
    groups.
    """
    policy = case.mixtures[-1]
    rates = (FPR, FalseNegativeRate(), SelectionRate())
    alone = [np.asarray(case.environment.gaps(policy, rate)) for rate in rates]
    together = np.asarray(case.environment.gaps(policy, rates))
    groups = len(case.people.groups)
    sizes = [len(gaps) for gaps in alone]
    require(min(sizes) >= groups * (groups - 1) // 2, f"{sizes} gaps")
    apart = np.concatenate(alone)
    figures = f"{apart.tolist()} alone, {together.tolist()} together"
    equal = apart.shape == together.shape and np.allclose(apart, together, rtol=0, atol=ROUNDING)
    require(equal, figures)


@requirement
def constants_are_fair(case: EnvironmentCase) -> None:
    """Accepting all applicants, or nobody, has no gap."""
    for policy in case.mixtures[:2]:
        worst = float(np.abs(case.gaps(policy)).max())
        require(worst <= ROUNDING, f"{policy.describe()!r} has a gap of {worst!r}")


@requirement
def drawing_changes_no_truth(case: EnvironmentCase) -> None:
    """loss, gaps and optimum after a draw are those before it."""
    world = case.environment.fresh()
    policy = case.mixtures[-1]
    before = world.loss(policy, ERRORS), case.gaps(policy).tolist()
    best = world.optimum(0.1, FPR, ERRORS)[0] if world.hypotheses is not None else None
    world.draw(min(len(case.people), 50), case.generator())
    after = world.loss(policy, ERRORS), np.asarray(world.gaps(policy, FPR)).tolist()
    require(before == after, f"{before} became {after}")
    require(best is None or world.optimum(0.1, FPR, ERRORS)[0] == best, "the optimum changed")


@requirement
def optimum_is_fair_and_best(case: EnvironmentCase) -> None:
    """The optimum keeps its limit, and no fair rule or constant is better.

    The optimum keeps its limit, has the loss that is reported, falls as the limit rises, and no
    fair rule or constant is better.
    """
    if case.environment.hypotheses is None:
        return
    before = math.inf
    exact = case.environment.hypotheses.exact
    for limit in LIMITS:
        claimed, policy = case.optimum(limit)
        gap = float(np.abs(case.gaps(policy)).max())
        loss = case.loss(policy)
        name = f"the optimum at {limit}"
        require(gap <= limit + ROUNDING, f"{name} has a gap of {gap!r}")
        figures = f"{name} is said to lose {claimed!r} and loses {loss!r}"
        require(abs(loss - claimed) <= ROUNDING, figures)
        more = f"{name} loses {claimed!r}, more than {before!r}"
        require(not exact or claimed <= before + ROUNDING, more)
        before = claimed
        for rule in case.mixtures if exact else case.mixtures[:2]:
            fair = float(np.abs(case.gaps(rule)).max()) <= limit
            theirs = case.loss(rule)
            # a continuous population chooses among a grid of thresholds
            over_the_class = hasattr(case.environment, "population_sample")
            tolerance = ROUNDING if over_the_class else 1e-3
            figures = f"{rule.describe()!r} loses {theirs!r}, the optimum {claimed!r}"
            require(not fair or claimed <= theirs + tolerance, figures)


@requirement
def environment_describes_itself(case: EnvironmentCase) -> None:
    """params is plain JSON with an "environment"."""
    params = dict(case.environment.params)
    require(is_plain_with(params, "environment"), f"{params} are not plain values")


ENVIRONMENT_REQUIREMENTS: tuple[EnvironmentRequirement, ...] = (
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
    """Check every requirement of environments."""
    case = EnvironmentCase(environment, rows, seed)
    for check in ENVIRONMENT_REQUIREMENTS:
        try:
            check(case)
        except RequirementBroken:
            raise
        except Exception as error:
            figures = f"the requirement failed with {type(error).__name__}: {error}"
            raise RequirementBroken(check.__name__, figures) from error
    return tuple(check.__name__ for check in ENVIRONMENT_REQUIREMENTS)

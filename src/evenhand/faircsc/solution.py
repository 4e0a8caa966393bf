"""What FairCSC returns: the policy with its figures (for the next step) and a report of the
iterations (for a human).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from evenhand.policies import Mixture
from evenhand.words import FloatArray


@dataclass(frozen=True)
class Iteration:
    """One call of the CSC oracle: the multipliers it was priced with, the (normalised) cost and
    gaps of its answer, and the best bounds on the optimum known after it."""

    multipliers: tuple[float, ...]
    cost: float
    gaps: tuple[float, ...]
    upper_bound: float
    lower_bound: float | None


@dataclass(frozen=True)
class SolveReport:
    """How a solution was found.

    `converged` is False when the call budget ran out before optimality was proved.
    """

    method: str
    converged: bool
    cost_scale: float
    constraint_names: tuple[str, ...]
    iterations: tuple[Iteration, ...]


@dataclass(frozen=True, eq=False)
class FairSolution:
    """A fair mixture. cost = sum over the problem's rows of c^{pi(x)}; gaps: one per rate and pair
    of groups, as measured on the sample; lower_bound: no fair mixture of the class costs less (None
    where the oracle is heuristic)."""

    policy: Mixture
    cost: float
    gaps: FloatArray
    lower_bound: float | None
    oracle_calls: int
    report: SolveReport
    evaluate: Callable[[], FloatArray] = field(repr=False)

    @cached_property
    def acceptance(self) -> FloatArray:
        """P[pi(x) = +1] on the problem's rows."""
        return self.evaluate()

    @property
    def support_size(self) -> int:
        """How many hypotheses the mixture has."""
        return len(self.policy.weights)

"""How much to explore, and how much estimated regret to tolerate (section 3, step 3): mu_t and psi
as explicit objects.

No floor exceeds 1/2. Two-sided that is the most there is (both decisions get mu); one-sided V <=
1/mu meets the variance constraint 2 + b at mu = 1/2 whatever Q is, so more would buy nothing.
Fairness does not depend on these constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import e, inf, isfinite, log, sqrt
from typing import Protocol

from evenhand.errors import InvalidInput
from evenhand.shares import require_delta

LARGEST_FLOOR = 0.5


class Schedule(Protocol):
    """How much to explore in each round, and how much estimated regret to tolerate.

    Notes
    -----
    Requirements: 0 < exploration_floor(t) <= 1/2, never rising in t; regret_scale > 0.

    Examples
    --------
    >>> schedule: Schedule = PracticalSchedule()
    >>> schedule.exploration_floor(400), schedule.regret_scale
    (0.005, 1.0)
    """

    @property
    def regret_scale(self) -> float:
        """psi in b(pi) = Reg(pi) / (psi mu)."""
        ...

    @property
    def params(self) -> Mapping[str, object]:
        """The constants as plain values."""
        ...

    def exploration_floor(self, round: int) -> float:
        """The smallest probability of an explored decision.

        Parameters
        ----------
        round : int
            t = 1, 2, ...

        Returns
        -------
        float
            mu_t.
        """
        ...


@dataclass(frozen=True)
class PracticalSchedule:
    """The default: mu_t = min(1/2, c / sqrt(t)) and a constant psi.

    Only c * psi matters much, and between .03 and .3 it is best.

    Parameters
    ----------
    scale : float, default 0.1
        c.
    regret_scale : float, default 1.0
        psi.

    Examples
    --------
    >>> PracticalSchedule().exploration_floor(100)
    0.01
    """

    scale: float = 0.1
    regret_scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "regret_scale"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise InvalidInput(f"{name} is {value}; it must be a finite number above 0.")

    @property
    def params(self) -> Mapping[str, object]:
        """c and psi."""
        return {"schedule": "practical", "scale": self.scale, "regret_scale": self.regret_scale}

    def exploration_floor(self, round: int) -> float:
        """min(1/2, c / sqrt(t)).

        Parameters
        ----------
        round : int
            t = 1, 2, ...

        Returns
        -------
        float
            mu_t.
        """
        return _clipped(self.scale, round)


@dataclass(frozen=True)
class TheorySchedule:
    """The paper's literal constants; see `uniform_until` for how long they do nothing.

    Parameters
    ----------
    horizon : int
        T.
    delta : float
        delta.
    log_size : float
        ln|H|.

    Notes
    -----
    mu_t = min(1/2, 3.2 ln(|Pi_eta| T / delta) / sqrt(t)), psi = 4 (e - 2) ln T. |Pi_eta| = |H|^2 /
    eta is a cover of the mixtures of two hypotheses, eta = 1/T^2.

    Examples
    --------
    >>> schedule = TheorySchedule(horizon=10**6, delta=1e-3, log_size=5.3)
    >>> schedule.exploration_floor(1000), round(schedule.uniform_until, -3)
    (0.5, 142000.0)
    """

    horizon: int
    delta: float
    log_size: float

    def __post_init__(self) -> None:
        if self.horizon < 2:
            raise InvalidInput(
                f"horizon is {self.horizon}; the paper's constants need ln T > 0, so T of at "
                "least 2."
            )
        require_delta(self.delta)
        if not 0 <= self.log_size < inf:
            raise InvalidInput(
                f"log_size is {self.log_size}; the paper's constants need ln|H| of a finite class.",
                hint='use the "practical" schedule for an infinite class.',
            )

    @property
    def log_cover(self) -> float:
        """ln(|Pi_eta| T / delta) = 2 ln|H| + 3 ln T - ln delta."""
        return 2 * self.log_size + 3 * log(self.horizon) - log(self.delta)

    @property
    def regret_scale(self) -> float:
        """psi = 4 (e - 2) ln T."""
        return 4 * (e - 2) * log(self.horizon)

    @property
    def params(self) -> Mapping[str, object]:
        """T, delta and ln|H|."""
        return {
            "schedule": "theory",
            "horizon": self.horizon,
            "delta": self.delta,
            "log_size": self.log_size,
        }

    def exploration_floor(self, round: int) -> float:
        """min(1/2, 3.2 ln(|Pi_eta| T / delta) / sqrt(t)).

        Parameters
        ----------
        round : int
            t = 1, 2, ...

        Returns
        -------
        float
            mu_t.
        """
        return _clipped(3.2 * self.log_cover, round)

    @property
    def uniform_until(self) -> float:
        """The t up to which mu_t = 1/2: two-sided, every decision is a fair coin until then."""
        return (3.2 * self.log_cover / LARGEST_FLOOR) ** 2


def _clipped(scale: float, round: int) -> float:
    if round < 1:
        raise InvalidInput(f"round is {round}; rounds count from 1.")
    return min(LARGEST_FLOOR, scale / sqrt(round))

"""The two distributions of section 4: alike to the eye for 1/gap^2 rounds, and only one of h1, h2
is fair on each.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.environments.discrete import Discrete
from evenhand.errors import InvalidInput
from evenhand.theory import LARGEST_LOWER_BOUND_GAP


class LowerBound(Discrete):
    """The two populations of section 4: alike for a long time, and one of two rules is fair on each.

    D1 or D2: 4 contexts x 2 groups of 1/8 each; H = {reject all, accept all, h1, h2}, gap =
    gamma <= 1/16.

        P[y = +1]     x1            x2            x3  x4        accepts      x1  x2  x3  x4
        a = -1        1/2 + 4 gamma 1/2 - 4 gamma 1   0         h1           yes no  yes no
        a = +1, D1    1/2 - 4 gamma 1/2 + 4 gamma 1   0         h2, a = -1   yes no  yes no
        a = +1, D2    1/2 + 4 gamma 1/2 - 4 gamma 1   0         h2, a = +1   no  yes yes no

    On D1: loss(h2) = 1/4 - 2 gamma, gap(h2) = 0, loss(h1) = 1/4, gap(h1) = 4 gamma; on D2 with h1
    and h2 exchanged. The class must stay these four: with the group classifiers added, the gap of
    h1 could be cancelled.
    """

    def __init__(self, which: int, gap: float) -> None:
        if which not in (1, 2):
            raise InvalidInput(f"which is {which!r}; section 4 has two distributions, 1 and 2.")
        if not 0 < gap <= LARGEST_LOWER_BOUND_GAP:
            raise InvalidInput(
                f"the gap of the lower-bound instance is {gap}; it must lie in (0, 1/16], or P[y = +1] leaves [1/4, 3/4].",
                hint="with gap = T^(-alpha) this means T >= 16^(1/alpha): 65,536 for alpha = 1/4, 4,096 for alpha = 1/3.",
            )
        self.which, self.rate_gap = which, float(gap)
        up, down = 0.5 + 4 * gap, 0.5 - 4 * gap
        minus, plus = (
            [up, down, 1.0, 0.0],
            [down, up, 1.0, 0.0] if which == 1 else [up, down, 1.0, 0.0],
        )
        first, second = [True, False, True, False], [False, True, True, False]
        accepts = [[False] * 8, [True] * 8, first + first, first + second]
        super().__init__(
            np.full(8, 1 / 8), minus + plus, np.repeat([-1, 1], 4), accepts, name="lower bound"
        )

    @property
    def params(self) -> Mapping[str, Any]:
        """Which distribution, and its gap."""
        return {"environment": self.name, "which": self.which, "gap": self.rate_gap}

"""A mixture pi of hypotheses (section 1.1): draw h with probability pi(h), then do as h says."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike

from evenhand.contracts import GroupUse, Hypothesis, Json
from evenhand.errors import InvalidInput
from evenhand.policies.compiled import Compiled
from evenhand.words import FloatArray, GroupArray, as_features, as_group


@dataclass(frozen=True)
class Mixture:
    """pi(h_k) = weights[k]. With group_use="certify_only" the group is never shown to a hypothesis."""

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    group_use: GroupUse = "certify_only"

    def __post_init__(self) -> None:
        if len(self.hypotheses) != len(self.weights) or not self.weights:
            raise InvalidInput(
                f"a mixture of {len(self.hypotheses)} hypotheses has {len(self.weights)} weights; it needs one each."
            )
        if min(self.weights) < 0 or abs(sum(self.weights) - 1.0) > 1e-9:
            raise InvalidInput(
                f"the weights {self.weights} are not a probability distribution; they must be >= 0 and sum to 1."
            )

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """P[pi(x) = +1] = sum_h pi(h) 1[h(x) = +1] for each row; the same bits for a person alone
        and among others.
        """
        rows = as_features(features)
        seen = (
            as_group(group, len(rows)) if group is not None and self.group_use == "decide" else None
        )
        return self._compiled.acceptance(rows, seen)

    def acceptance_of_checked(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The same for arrays that `as_features` and `as_group` have already let pass."""
        return self._compiled.acceptance(features, group if self.group_use == "decide" else None)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for one such row, (1, columns), as a number."""
        if type(self).acceptance_of_checked is not Mixture.acceptance_of_checked:
            return float(self.acceptance_of_checked(person, group)[0])
        return self._compiled.acceptance_of_one(
            person, group if self.group_use == "decide" else None
        )

    @cached_property
    def _compiled(self) -> Compiled:
        return Compiled.of(self.hypotheses, self.weights)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """One line per hypothesis: "with probability 0.73: accept if score >= 612"."""
        if len(self.weights) == 1:
            return f"always: {self.hypotheses[0].describe(names)}"
        parts = sorted(zip(self.weights, self.hypotheses, strict=True), key=lambda part: -part[0])
        return "\n".join(
            f"with probability {weight:.4g}: {hypothesis.describe(names)}"
            for weight, hypothesis in parts
        )

    def to_json(self) -> Json:
        """Plain JSON; `evenhand.policy_from_json` reads it back, bit for bit."""
        return {
            "kind": "mixture",
            "group_use": self.group_use,
            "parts": [
                {"weight": w, "hypothesis": h.to_json()}
                for w, h in zip(self.weights, self.hypotheses, strict=True)
            ],
        }

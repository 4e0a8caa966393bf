"""Vowpal Wabbit's contextual bandits as a learner: accept and reject are two actions with costs,
exploration is VW's own.

VW learns one person at a time; here it learns the people of an epoch, in their order, when the
epoch closes. A deployed policy is a stored model, so its acceptance on any table can be asked
later, when the truth is measured.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.estimation import RoundLog
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.policies import Mixture
from evenhand.words import FloatArray, GroupArray, Prices, as_features

FIRST_ROUNDS = 128
GROWTH = 0.5
Exploration = Literal["epsilon-greedy", "squarecb"]


class VwBandit(EpochLearner):
    """`exploration`: "epsilon-greedy" (with `epsilon`) or "squarecb"."""

    needs_group = False
    _not_stored = EpochLearner._not_stored | {"_workspace"}

    def __init__(
        self,
        rate: Rate | Sequence[Rate],
        *,
        exploration: Exploration = "epsilon-greedy",
        epsilon: float = 0.05,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        settings = {
            name: value for name, value in locals().items() if name not in ("self", "__class__")
        }
        if exploration not in ("epsilon-greedy", "squarecb"):
            raise InvalidInput(
                f'exploration is {exploration!r}; it is "epsilon-greedy" or "squarecb".'
            )
        self.rates = as_rates(rate)
        explore = f"--epsilon {epsilon}" if exploration == "epsilon-greedy" else "--squarecb"
        self.arguments = f"--cb_explore_adf {explore} --cb_type mtr -q sa --quiet --random_seed 1"
        self._workspace: Any = None
        super().__init__(
            prices=Prices() if prices is None else prices,
            group_use="certify_only",
            seed=seed,
            settings=settings,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Always NotSerialisable: the state is VW's own."""
        raise NotSerialisable(
            "a VW learner keeps its state in VW.", hint="save the model with VW's own tools."
        )

    def _plan(self, number: int, round: int) -> Epoch:
        length = max(FIRST_ROUNDS, int(GROWTH * round))
        if round == 0:
            return Epoch(
                number, "bandit", round, length, Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))
            )
        return Epoch(number, "bandit", round, length, VwPolicy.of(self.arguments, self._model()))

    def _collect(self) -> bool:
        found = self.state.book.harvest()
        for _, log in found:
            self._learn(log)
        return bool(found)

    def _learn(self, log: RoundLog) -> None:
        vw = self._vw
        priced = self.loss.priced(log.prices)
        wrong, reject = (
            np.broadcast_to(v, (len(log),)) for v in (priced.of_false_accept, priced.of_reject)
        )
        for i, shared in enumerate(as_examples(log.features)):
            for times, action, cost, chance in (
                (log.rejected[i], 1, reject[i], 1.0 - log.acceptance[i]),
                (log.positive[i], 0, 0.0, log.acceptance[i]),
                (log.negative[i], 0, wrong[i], log.acceptance[i]),
            ):
                for _ in range(int(times)):
                    told = f"0:{cost:g}:{max(chance, 1e-6):g} "
                    vw.learn(
                        [
                            shared,
                            (told if action == 0 else "") + "|a yes",
                            (told if action == 1 else "") + "|a no",
                        ]
                    )

    @property
    def _vw(self) -> Any:
        if self._workspace is None:
            self._workspace = workspace(self.arguments)
        return self._workspace

    def _model(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self._vw.save(str(path))
            return path.read_bytes()


def workspace(arguments: str) -> Any:
    """A VW workspace; InvalidInput where VW is not installed."""
    try:
        from vowpalwabbit import Workspace  # type: ignore[import-untyped]  # optional, and without types
    except ImportError:
        raise InvalidInput(
            "Vowpal Wabbit is not installed.", hint="pip install 'evenhand[vw]'."
        ) from None
    return Workspace(arguments)


def as_examples(features: FloatArray) -> list[str]:
    """One shared line per row; zeros are left out, as VW does."""
    return [
        "shared |s " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row) if value)
        for row in features.tolist()
    ]


@dataclass(frozen=True)
class VwPolicy(Mixture):
    """What a stored VW model does."""

    arguments: str = ""
    model: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, arguments: str, model: bytes) -> "VwPolicy":
        """The policy of a model; as a mixture it is opaque."""
        return cls((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5), "certify_only", arguments, model)

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """The probability that VW gives to accepting."""
        return self.acceptance_of_checked(as_features(features), None)

    def acceptance_of_checked(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The same for arrays that have been checked."""
        predict = self._ready.predict
        found = [predict([shared, "|a yes", "|a no"])[0] for shared in as_examples(features)]
        return np.clip(np.array(found, dtype=np.float64), 0.0, 1.0)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for one such row."""
        return float(self.acceptance_of_checked(person, None)[0])

    @cached_property
    def _ready(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(self.model)
            return workspace(f"-i {path} -t --quiet")

    def describe(self, names: Sequence[str] | None = None) -> str:
        """In words."""
        return "what the Vowpal Wabbit model of this epoch says"

    def to_json(self) -> dict[str, Any]:
        """Always NotSerialisable."""
        raise NotSerialisable(
            "a VW model has no plain JSON form.", hint="save it with VW's own tools."
        )

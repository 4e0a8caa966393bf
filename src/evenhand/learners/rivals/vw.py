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
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Json
from evenhand.errors import InvalidInput, NotSerialisable, install_hint
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.policies import DeployedPolicy, Mixture
from evenhand.words import FloatArray, Prices, as_features

FIRST_ROUNDS = 128
GROWTH = 0.5
Exploration = Literal["epsilon-greedy", "squarecb"]


class VwWorkspace(Protocol):
    """What is asked of VW's own workspace."""

    def learn(self, example: list[str]) -> None:
        """Learn from one person: the shared line, and one line for each action."""

    def predict(self, example: list[str]) -> list[float]:
        """The probability of each action."""
        ...

    def save(self, filename: str) -> None:
        """Store the model."""


class VwBandit(EpochLearner):
    """A contextual bandit of Vowpal Wabbit.

    Parameters
    ----------
    rate : Rate or sequence of Rate
        Whose gaps it is judged by.
    exploration : "epsilon-greedy" or "squarecb", default "epsilon-greedy"
        How VW explores.
    epsilon : float, default 0.05
        The share of exploration of "epsilon-greedy".
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    seed : int, optional
        The seed of its coins.

    Raises
    ------
    InvalidInput
        If there is no such exploration, or VW is not installed when it is first needed.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> learner = VwBandit(FalsePositiveRate(), exploration="squarecb", seed=1)
    >>> learner.policy.describe()
    'with probability 0.5: accept everybody\\nwith probability 0.5: reject everybody'
    """

    needs_group = False
    _not_stored = EpochLearner._not_stored | {"_workspace"}

    compares_numbers = True

    def __init__(
        self,
        rate: Rate | Sequence[Rate],
        *,
        exploration: Exploration = "epsilon-greedy",
        epsilon: float = 0.05,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        if exploration not in ("epsilon-greedy", "squarecb"):
            raise InvalidInput(
                f'exploration is {exploration!r}; it is "epsilon-greedy" or "squarecb".'
            )
        self.rates = as_rates(rate)
        explore = f"--epsilon {epsilon}" if exploration == "epsilon-greedy" else "--squarecb"
        self.arguments = f"--cb_explore_adf {explore} --cb_type mtr -q sa --quiet --random_seed 1"
        self._workspace: VwWorkspace | None = None
        settings = {"rate": rate, "exploration": exploration, "epsilon": epsilon}
        own = {**settings, "prices": prices, "seed": seed}
        super().__init__(prices=prices, seed=seed, settings=own)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refuse: the state of the learner is VW's own.

        Parameters
        ----------
        path : str or path
            Not used.

        Raises
        ------
        NotSerialisable
            Always.
        """
        raise NotSerialisable(
            "a VW learner keeps its state in VW.", hint="save the model with VW's own tools."
        )

    def _plan(self, number: int, round: int) -> Epoch:
        length = max(FIRST_ROUNDS, int(GROWTH * round))
        if round == 0:
            coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))
            return Epoch(number, "bandit", round, length, coin)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self._vw.save(str(path))
            policy = VwPolicy(self.arguments, path.read_bytes())
        return Epoch(number, "bandit", round, length, policy)

    def _collect(self) -> bool:
        harvest = self.state.book.harvest()
        for _, log in harvest:
            p, (wrong, reject) = log.acceptance, self.loss.per_row(log.prices, len(log))
            for i, shared in enumerate(as_examples(log.features)):
                for times, accepted, cost, chance in (
                    (log.rejected[i], False, reject[i], 1.0 - p[i]),
                    (log.positive[i], True, 0.0, p[i]),
                    (log.negative[i], True, wrong[i], p[i]),
                ):
                    seen = f"0:{cost:g}:{max(chance, 1e-6):g} "
                    yes, no = (seen, "") if accepted else ("", seen)
                    for _ in range(int(times)):
                        self._vw.learn([shared, f"{yes}|a yes", f"{no}|a no"])
        return bool(harvest)

    @property
    def _vw(self) -> VwWorkspace:
        if self._workspace is None:
            self._workspace = workspace(self.arguments)
        return self._workspace


def workspace(arguments: str) -> VwWorkspace:
    """A VW workspace; InvalidInput where VW is not installed."""
    try:
        from vowpalwabbit import Workspace  # type: ignore[import-untyped]  # it is optional
    except ImportError:
        raise InvalidInput("Vowpal Wabbit is not installed.", hint=install_hint("vw")) from None
    made: VwWorkspace = Workspace(arguments)
    return made


def as_examples(features: FloatArray) -> list[str]:
    """One shared line per row; zeros are left out, as VW does."""
    return [
        "shared |s " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row) if value)
        for row in features.tolist()
    ]


@dataclass(frozen=True)
class VwPolicy(DeployedPolicy):
    """What a stored VW model does; it is no mixture of hypotheses.

    Parameters
    ----------
    arguments : str
        The options that the model was trained with.
    model : bytes
        The model, as VW saves it.

    Examples
    --------
    >>> VwPolicy("--cb_explore_adf --epsilon 0.05").describe()
    'what the Vowpal Wabbit model of this epoch says'
    """

    arguments: str
    model: bytes = field(default=b"", repr=False)

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """The probability that VW gives to accepting each person.

        Parameters
        ----------
        features : array_like, shape (rows, columns)
            One person per row.
        group : array_like, optional
            Not looked at.

        Returns
        -------
        array, shape (rows,)
            The probabilities.
        """
        predict = self._workspace.predict
        rows = as_examples(as_features(features))
        chances = [predict([shared, "|a yes", "|a no"])[0] for shared in rows]
        return np.clip(np.array(chances, dtype=np.float64), 0.0, 1.0)

    @cached_property
    def _workspace(self) -> VwWorkspace:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(self.model)
            return workspace(f"-i {path} -t --quiet")

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The policy in words.

        Parameters
        ----------
        names : sequence of str, optional
            Not used.

        Returns
        -------
        str
            That a model of VW decides.
        """
        return "what the Vowpal Wabbit model of this epoch says"

    def to_json(self) -> Json:
        """Refuse: a VW model has no plain JSON form.

        Raises
        ------
        NotSerialisable
            Always.
        """
        raise NotSerialisable(
            "a VW model has no plain JSON form.", hint="save it with VW's own tools."
        )

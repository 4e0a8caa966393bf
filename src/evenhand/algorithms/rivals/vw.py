"""Vowpal Wabbit's contextual bandits as a learner: accept and reject are two actions with costs,
exploration is VW's own.

VW learns one person at a time; here it learns the people of an epoch, in their order, when the
epoch closes. A deployed policy is a stored model, so its acceptance on any table can be asked
later, when the truth is measured.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand.algorithms.base import GroupNeeded
from evenhand.contracts import GroupUse, HypothesisClass, Json
from evenhand.errors import InvalidInput, NotSerialisable, install_hint
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import DeployedPolicy, Mixture
from evenhand.rounds import Epoch, Rounds
from evenhand.schema import Schema
from evenhand.words import BoolArray, FloatArray, Prices, as_features

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


@dataclass(eq=False)
class VwState:
    """VW's own model, and which rounds it has learned. VW learns in place, so this state is not
    frozen, and it cannot be stored.
    """

    workspace: VwWorkspace | None = None
    learned: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    chunks: int = 0


@dataclass(frozen=True, eq=False)
class Vw:
    """A contextual bandit of Vowpal Wabbit: accept and reject are two actions with costs."""

    rates: tuple[Rate, ...]
    prices: Prices
    arguments: str
    hypotheses: HypothesisClass | None = None
    group_use: GroupUse = "certify_only"
    needs_group: GroupNeeded = "never"
    maturity: float | None = None

    @cached_property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return TransformedLoss.of_prices(self.prices)

    def reading(self, schema: Schema) -> "Vw":
        """It compares numbers: InvalidInput if a column is none."""
        schema.require_plain("VwBandit")
        return self

    def init(self, seed: int) -> tuple[VwState, Epoch]:
        """A fair coin at first."""
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))
        return VwState(), Epoch(1, "bandit", 0, FIRST_ROUNDS, coin)

    def step(
        self, state: VwState, rounds: Rounds, now: float | None
    ) -> tuple[VwState, Epoch | None]:
        """Show VW the people whose outcome has become known, in their order."""
        logs, state = self._unseen(state, rounds)
        if not logs:
            return state, None
        model = state.workspace or workspace(self.arguments)
        for log in logs:
            self._learn(model, log)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            model.save(str(path))
            policy = VwPolicy(self.arguments, path.read_bytes())
        length = max(FIRST_ROUNDS, int(GROWTH * rounds.decided))
        epoch = Epoch(rounds.epoch.number + 1, "bandit", rounds.decided, length, policy)
        return VwState(model, state.learned, state.chunks), epoch

    def _unseen(self, state: VwState, rounds: Rounds) -> tuple[list[RoundLog], VwState]:
        learned = np.zeros(len(rounds), dtype=bool)
        learned[: len(state.learned)] = state.learned
        new = rounds.resolved & ~learned & (rounds["round"] < rounds.returned)
        logs = [chunk.log for chunk in rounds.counted[state.chunks :]]
        if new.any():
            logs.append(rounds.log_of(new))
        return logs, VwState(state.workspace, learned | new, len(rounds.counted))

    def _learn(self, model: VwWorkspace, log: RoundLog) -> None:
        p = log.acceptance
        wrong, reject = self.loss.per_row(log.prices, len(log))
        for i, shared in enumerate(as_examples(log.features)):
            for times, accepted, cost, chance in (
                (log.rejected[i], False, reject[i], 1.0 - p[i]),
                (log.positive[i], True, 0.0, p[i]),
                (log.negative[i], True, wrong[i], p[i]),
            ):
                seen = f"0:{cost:g}:{max(chance, 1e-6):g} "
                yes, no = (seen, "") if accepted else ("", seen)
                for _ in range(int(times)):
                    model.learn([shared, f"{yes}|a yes", f"{no}|a no"])


def vw_arguments(exploration: Exploration, epsilon: float) -> str:
    """The options of VW."""
    if exploration not in ("epsilon-greedy", "squarecb"):
        raise InvalidInput(
            f'exploration is {exploration!r}; it is "epsilon-greedy" or "squarecb".',
            argument="exploration",
        )
    explore = f"--epsilon {epsilon}" if exploration == "epsilon-greedy" else "--squarecb"
    return f"--cb_explore_adf {explore} --cb_type mtr -q sa --quiet --random_seed 1"


def workspace(arguments: str) -> VwWorkspace:
    """A VW workspace; InvalidInput where VW is not installed."""
    try:
        from vowpalwabbit import Workspace  # it is optional
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

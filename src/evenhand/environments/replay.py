"""A labelled table as a population: its rows are drawn again and again, or streamed once; its truth
is its own rates.
"""

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass, Policy
from evenhand.environments.truth import TablePopulation, require_rows
from evenhand.errors import InvalidInput
from evenhand.faircsc import solve_fair
from evenhand.fairness import Rate
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.tables import Table
from evenhand.words import CostSensitiveProblem, FloatArray, IntArray, LabelledSample, Prices


class Replay(TablePopulation):
    """People of `sample`, drawn with replacement (by `count`), or each once if `streamed` (in table
    order, or shuffled by `seed`).

    Loss and gaps of a policy are those on the whole table. `optimum` needs `hypotheses`; it is
    exact for an exact class.
    """

    def __init__(
        self,
        sample: LabelledSample,
        *,
        streamed: bool = False,
        hypotheses: HypothesisClass | None = None,
        group_use: GroupUse = "certify_only",
        seed: int | None = None,
        name: str = "replay",
    ) -> None:
        super().__init__()
        sample.require_two_groups()
        if streamed and not (sample.weight == 1).all():
            raise InvalidInput(
                "a table with counts cannot be streamed once.",
                hint="repeat the rows, or use streamed=False.",
            )
        if seed is not None and not streamed:
            raise InvalidInput(
                f"seed is {seed}, but only a stream has an order to shuffle.",
                hint="pass streamed=True, or no seed.",
            )
        self.name, self.streamed, self.seed = name, streamed, seed
        self.hypotheses, self.group_use = hypotheses, group_use
        self._table = sample
        self._population = LabelledSample(
            sample.features, sample.group, sample.label, sample.weight / sample.weight.sum()
        )
        self._order: IntArray = (
            np.arange(len(sample))
            if seed is None
            else stream(seed, "replay").permutation(len(sample))
        )
        self._position = 0

    @classmethod
    def of_table(
        cls,
        table: Table,
        hypotheses: HypothesisClass | None = None,
        group_use: GroupUse = "certify_only",
    ) -> Self:
        """Take a table for a population: rows are drawn with replacement, so its own rates are the
        exact truth.

        Parameters
        ----------
        table : Table
            What `evenhand.tables.read_table(...).encoded()` returns.
        hypotheses : HypothesisClass, optional
            The class whose best policy is the optimum.
        group_use : {"certify_only", "decide"}
            Whether the group may influence decisions.

        Returns
        -------
        Replay
            The population.

        Examples
        --------
        >>> from evenhand.tables import read_table
        >>> len(Replay.of_table(read_table("lending").encoded()))
        1200
        """
        return cls(table.sample, hypotheses=hypotheses, group_use=group_use, name=table.name)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def params(self) -> Mapping[str, Any]:
        """Name, size, groups, and how rows are drawn."""
        return {
            "environment": self.name,
            "rows": len(self),
            "columns": self._table.features.shape[1],
            "groups": list(self._table.groups),
            "streamed": self.streamed,
            "seed": self.seed,
        }

    @property
    def remaining(self) -> int | None:
        """How many rows of a stream are left; None for a table that is drawn with replacement."""
        return len(self) - self._position if self.streamed else None

    def fresh(self) -> Self:
        """The same table; a stream starts again at its first row."""
        again = copy.copy(self)
        again._position = 0
        return again

    def sample(self, rows: int, generator: np.random.Generator) -> LabelledSample:
        """`rows` independent people of the table, whether or not it is streamed."""
        return self._rows(
            generator.choice(len(self), size=require_rows(rows), p=self._population.weight)
        )

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """The next people; InvalidInput when a stream has too few left."""
        if not self.streamed:
            return self.sample(rounds, generator)
        left = len(self) - self._position
        if require_rows(rounds) > left:
            raise InvalidInput(
                f"{rounds} people were asked for, but {left} of the {len(self)} rows of the stream are left.",
                hint="use at most as many rounds as there are rows, or streamed=False to draw with replacement.",
            )
        self._position += rounds
        return self._rows(self._order[self._position - rounds : self._position])

    def _rows(self, where: IntArray) -> LabelledSample:
        return LabelledSample(
            self._table.features[where], self._table.group[where], self._table.label[where]
        )

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        return self._population, policy.acceptance(
            self._population.features, self._population.group
        )

    def _best(
        self, allowed_gap: float, rates: tuple[Rate, ...], prices: Prices
    ) -> tuple[float, Mixture]:
        if self.hypotheses is None:
            raise InvalidInput(
                "this table has no hypothesis class, so there is no best policy.",
                hint="pass hypotheses=...",
            )
        table = self._population
        plain = self._row_prices(prices, table).problem(table.features, table.group, table.label)
        problem = CostSensitiveProblem(
            table.features,
            table.group,
            plain.cost_if_rejected * table.weight,
            plain.cost_if_accepted * table.weight,
        )
        found = solve_fair(
            problem, self.hypotheses, rates, table, allowed_gap, group_use=self.group_use
        )
        return found.cost, found.policy

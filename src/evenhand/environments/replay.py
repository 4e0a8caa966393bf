"""A labelled table as a population: its rows are drawn again and again, or streamed once; its
truth is its own rates.
"""

import copy
from typing import Self

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass, Params, Policy
from evenhand.environments.population import TablePopulation, require_rows
from evenhand.errors import InvalidInput
from evenhand.faircsc import solve_fair
from evenhand.fairness import Rate
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.tables import Table
from evenhand.words import CostSensitiveProblem, FloatArray, IntArray, LabelledSample, Prices


class Replay(TablePopulation):
    """A table of people as a population: its rows are drawn with replacement, or each once.

    Loss and gaps of a policy are those on the whole table.

    Parameters
    ----------
    sample : LabelledSample
        The table; rows are drawn in proportion to their counts.
    streamed : bool
        Whether each row comes once, in the order of the table, instead of with replacement.
    hypotheses : HypothesisClass, optional
        The class of rules; `optimum` needs it, and is exact for an exact class.
    group_use : {"certify_only", "decide"}
        Whether the rules of the optimum may look at the group.
    seed : int, optional
        Shuffles the order of a stream.
    name : str
        What the population is called in reports.

    Raises
    ------
    InvalidInput
        If there is one group only, a table with counts is streamed, or a seed has nothing to
        shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.environments import Replay
    >>> from evenhand.words import LabelledSample
    >>> table = LabelledSample([[1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "b"], [-1, 1, -1, 1])
    >>> world = Replay(table, streamed=True)
    >>> world.draw(3, np.random.default_rng(0)).label.tolist(), world.remaining
    ([-1, 1, -1], 1)
    >>> world.fresh().remaining
    4
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
        """Take a table for a population.

        Rows are drawn with replacement, so its own rates are the exact truth.

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
    def params(self) -> Params:
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
        """Return the same table at its beginning.

        Returns
        -------
        Replay
            A stream starts again at its first row.
        """
        again = copy.copy(self)
        again._position = 0
        return again

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """Draw the next people.

        Parameters
        ----------
        rounds : int
            How many people.
        generator : numpy.random.Generator
            The source of chance; a stream needs none.

        Returns
        -------
        LabelledSample
            The people with their labels.

        Raises
        ------
        InvalidInput
            If a stream has too few rows left.
        """
        require_rows(rounds)
        table, left = self._table, len(self) - self._position
        if not self.streamed:
            rows = generator.choice(len(self), size=rounds, p=self._population.weight)
        elif rounds <= left:
            rows = self._order[self._position : self._position + rounds]
            self._position += rounds
        else:
            raise InvalidInput(
                f"{rounds} people were asked for, "
                f"but {left} of the {len(self)} rows of the stream are left.",
                hint="use at most as many rounds as there are rows, "
                "or streamed=False to draw with replacement.",
            )
        return LabelledSample(table.features[rows], table.group[rows], table.label[rows])

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        table = self._population
        return table, policy.acceptance(table.features, table.group)

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
        best = solve_fair(
            problem, self.hypotheses, rates, table, allowed_gap, group_use=self.group_use
        )
        return best.cost, best.policy

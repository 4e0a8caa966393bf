"""Impact ratios per group and intersection, in the form of New York City's Local Law 144 tables.

The selection rate of a category is the share of its people who were selected; with scores, the
share who score above a cut-off (the median of all people, where none is named). Its impact ratio is
that rate divided by the largest rate of the grouping. Beside each ratio stands an exact interval
for the population's ratio

    p_j / max_k p_k = min over k of p_j / p_k,

from the exact intervals of all ratios p_j / p_k (`evenhand.bounds.proportions`), which hold at
once: which category has the largest rate is itself uncertain, and the interval knows it. With a
reference group that is named beforehand the ratio is p_j / p_reference, and there are fewer of
them.

People of unknown category are counted and left out. A category with less than 2% of a grouping's
people is shown and takes no part in the ratios (the law allows that; `smallest_share=0` keeps
all). Four-fifths is `least_ratio`: below it only if the whole interval is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, inf, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bounds.proportions import Interval, ratio_interval
from evenhand.errors import InvalidInput
from evenhand.evaluation.impacted import impacted
from evenhand.findings import Finding, Status
from evenhand.media import Told
from evenhand.people import (
    GroupColumn,
    as_decisions,
    as_finite,
    columns_of_groups,
    groupings_of,
    number_of_people,
    require_same_order,
)
from evenhand.result import Result
from evenhand.shares import require_delta, require_least_ratio, require_share
from evenhand.shown import Brief
from evenhand.words import BoolArray, Group, GroupArray

FOUR_FIFTHS = 0.8
SMALLEST_SHARE = 0.02


@dataclass(frozen=True)
class ImpactRow:
    """One category of one grouping.

    Parameters
    ----------
    grouping : str
        The grouping, "sex" or "sex x race".
    group : str
        The category.
    people, selected : int
        How many there are, and how many were selected (or score above the cut-off).
    rate : float
        The selection rate (or scoring rate).
    ratio : float or None
        The impact ratio; None if the category is too small, or nobody at all was selected.
    ratio_interval : tuple of float or None
        The exact interval of the population's ratio.
    standard_deviations : float or None
        The difference from the compared rate, in standard deviations of the pooled rate.
    more_selections : int
        How many more selections in this category would bring the ratio to what is allowed, all else
        being equal.
    excluded : bool
        Whether the category is too small to take part.
    status : {"within", "above", "not shown"} or None
        Whether the ratio is shown to be allowed, shown to be below what is allowed ("above"), or
        neither.
    """

    grouping: str
    group: str
    people: int
    selected: int
    rate: float
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    standard_deviations: float | None
    more_selections: int
    excluded: bool
    status: Status | None


@dataclass(frozen=True, repr=False)
class ImpactTable(Told, Brief):
    """Selection rates and impact ratios.

    Parameters
    ----------
    rows : tuple of ImpactRow
        The categories, grouping by grouping.
    people, selected : int
        How many there are in all, and how many were selected.
    unknown : dict
        How many people of each grouping have no known category.
    least_ratio : float
        The smallest ratio that is allowed: four fifths.
    delta : float
        All intervals hold at once with probability 1 minus this.
    cutoff : float or None
        The score above which people count as selected; None for selections.
    notes : tuple of str
        What the intervals take for granted.

    Examples
    --------
    >>> table = impact([1] * 48 + [0] * 32 + [1] * 12 + [0] * 28, ["m"] * 80 + ["f"] * 40)
    >>> row = table.rows[0]
    >>> row.group, row.rate, row.ratio, row.more_selections, row.status
    ('f', 0.3, 0.5, 8, 'above')
    """

    rows: tuple[ImpactRow, ...]
    people: int
    selected: int
    unknown: Mapping[str, int]
    least_ratio: float
    delta: float
    cutoff: float | None = None
    notes: tuple[str, ...] = ()

    ALSO: ClassVar = ("meaning",)

    def findings(
        self, limit: float | None = None, least_ratio: float | None = None
    ) -> tuple[Finding, ...]:
        """Every ratio beside what is allowed: what `evenhand.evaluation.gates` judges.

        Parameters
        ----------
        limit : float, optional
            Differences are not measured here.
        least_ratio : float, optional
            The smallest ratio that is allowed; that of the table by default.

        Returns
        -------
        tuple of Finding
            One for each category that takes part.

        Raises
        ------
        InvalidInput
            If a difference is limited.
        """
        if limit is not None:
            raise InvalidInput(
                "an impact table has ratios and no differences.",
                hint="use least_ratio=0.8, or evenhand measure.",
                argument="limit",
            )
        allowed = self.least_ratio if least_ratio is None else least_ratio
        return tuple(
            Finding(f"ratio {one.grouping} {one.group}".strip(), low, high, allowed, at_least=True)
            for one in self.rows
            if one.ratio_interval is not None
            for low, high in [one.ratio_interval]
        )

    def result(self) -> Result:
        """What is said of the table.

        Returns
        -------
        Result
            With the verdict on the least ratio; the table "categories".
        """
        return impacted(self)

    @property
    def meaning(self) -> str:
        """What the intervals mean, and whom they are about."""
        of_whom = (
            " Everybody here was selected: the figures speak of selected people only, and equal "
            "rates say nothing about who was."
            if self.selected == self.people
            else ""
        )
        return (
            f"All intervals hold at once with probability {1 - self.delta:g} for the population "
            "that these people were drawn from independently, whichever category has its largest "
            f"rate.{of_whom}"
        )


def impact(
    selected: ArrayLike,
    group: GroupColumn | Mapping[str, GroupColumn],
    *,
    scores: bool = False,
    cutoff: float | None = None,
    reference: Group = None,
    unknown: Sequence[Group] = (None, ""),
    smallest_share: float = SMALLEST_SHARE,
    crossings: bool = True,
    least_ratio: float = FOUR_FIFTHS,
    delta: float = 0.05,
) -> ImpactTable:
    """Selection rates and impact ratios per group and intersection, with exact intervals.

    Parameters
    ----------
    selected : array_like
        Who was selected: True and False, 1 and 0, or +1 and -1; with `scores`, the scores.
    group : array_like, or mapping from a name to an array_like
        Each person's category; several groupings by name, {"sex": ..., "race": ...}.
    scores : bool
        Whether `selected` holds scores; rates are then shares above the cut-off.
    cutoff : float, optional
        The score above which a person counts; the median of all people by default.
    reference : object, optional
        The category that ratios are relative to; by default the one with the largest rate.
    unknown : sequence
        How an unknown category is written; such people are counted and left out.
    smallest_share : float, default 0.02
        Categories with a smaller share of a grouping's people take no part in ratios.
    crossings : bool
        With several groupings, whether all of them are crossed, too.
    least_ratio : float, default 0.8
        The smallest ratio that is allowed.
    delta : float, default 0.05
        All intervals hold at once with probability 1 minus this.

    Returns
    -------
    ImpactTable
        With `describe`, `to_frame`, `plot`, `save` and `to_json`.

    Raises
    ------
    InvalidInput
        If a column can be read in two ways or none, a selection is missing, the lengths differ,
        columns of pandas have different indexes, or a setting is impossible.

    Examples
    --------
    >>> table = impact([1, 1, 0, 1, 0, 0], {"sex": list("mmmfff"), "race": list("xyxyxy")})
    >>> sorted({row.grouping for row in table.rows})
    ['race', 'sex', 'sex x race']
    """
    require_least_ratio(least_ratio)
    require_delta(delta)
    require_share("smallest_share", smallest_share, "[0, 1)")
    rows_in_all = number_of_people(selected, "selected")
    require_same_order({"selected": selected, **columns_of_groups(group)})
    notes: list[str] = []
    if scores:
        values = as_finite(selected, rows_in_all, "selected")
        if cutoff is None:
            cutoff = float(np.median(values))
            notes.append(
                f"The cut-off {cutoff:g} is the median of these people; the intervals take it as "
                "fixed."
            )
        chosen = np.asarray(values > cutoff)
    else:
        cutoff = None
        chosen = as_decisions(selected, rows_in_all, "selected")
    groupings = _categories(group, rows_in_all, unknown, crossings)

    # Who takes part is fixed by the numbers of people alone, so all ratios are asked for before
    # any is looked at.
    counted = {name: _cells(chosen, belongs) for name, belongs in groupings.items()}
    taking_part = {}
    pairs = 0
    for name, cells in counted.items():
        total = sum(people for _, people in cells.values())
        part = [one for one, (_, people) in cells.items() if people >= smallest_share * total]
        if not part:
            of = f" of {name!r}" if name else ""
            raise InvalidInput(
                f"no category{of} takes part: {total:,} people have a known one, and none has "
                f"{smallest_share:g} of them.",
                hint="leave the grouping out, or lower smallest_share.",
                argument="smallest_share" if total else "group",
            )
        taking_part[name] = part
        inside = reference is not None and reference in part
        pairs += len(part) - 1 if inside else len(part) * (len(part) - 1) // 2
    if reference is not None and not any(reference in part for part in taking_part.values()):
        raise InvalidInput(
            f"the reference {reference!r} is no category that takes part.",
            hint="name one with enough people, or leave it out.",
            argument="reference",
        )
    alpha = delta / (2 * max(pairs, 1))
    rows: list[ImpactRow] = []
    for name, cells in counted.items():
        rows += _rows(name, cells, taking_part[name], reference, least_ratio, alpha)
    return ImpactTable(
        rows=tuple(rows),
        people=rows_in_all,
        selected=int(chosen.sum()),
        unknown={
            name: int(sum(one is None for one in belongs)) for name, belongs in groupings.items()
        },
        least_ratio=least_ratio,
        delta=delta,
        cutoff=cutoff,
        notes=tuple(notes),
    )


def _categories(
    group: GroupColumn | Mapping[str, GroupColumn],
    people: int,
    unknown: Sequence[Group],
    crossings: bool,
) -> dict[str, GroupArray]:
    """Each person's category in every grouping; None where it is unknown."""
    found = {}
    for name, belongs in groupings_of(group, people, unknown=True).items():
        array = np.empty(people, dtype=object)
        array[:] = [None if one in unknown else one for one in belongs.tolist()]
        found[name] = array
    if len(found) > 1 and crossings:
        crossed = np.empty(people, dtype=object)
        crossed[:] = [
            None if None in one else ", ".join(map(str, one))
            for one in zip(*found.values(), strict=True)
        ]
        found[" x ".join(found)] = crossed
    return found


def _cells(chosen: BoolArray, belongs: GroupArray) -> dict[Group, tuple[int, int]]:
    """How many of how many were selected in each category."""
    known = sorted({one for one in belongs.tolist() if one is not None}, key=str)
    cells = {}
    for name in known:
        here = np.asarray(belongs == name)
        cells[name] = int(chosen[here].sum()), int(here.sum())
    return cells


def _rows(
    grouping: str,
    cells: Mapping[Group, tuple[int, int]],
    part: Sequence[Group],
    reference: Group,
    least_ratio: float,
    alpha: float,
) -> list[ImpactRow]:
    """The rows of one grouping."""
    rates = {name: Fraction(x, n) for name, (x, n) in cells.items()}
    compared = reference if reference in part else max(part, key=lambda one: rates[one])
    intervals: dict[Group, Interval] = dict.fromkeys(part, Interval(1.0, 1.0))
    if reference in part:
        for name in part:
            if name != reference:
                intervals[name] = ratio_interval(*cells[name], *cells[reference], alpha)
    else:
        # min over k of p_j / p_k: each pair gives an end to both of its categories.
        for first, second in combinations(part, 2):
            low, high = ratio_interval(*cells[first], *cells[second], alpha)
            back = Interval(1 / high if high > 0 else inf, 1 / low if low > 0 else inf)
            for name, one in ((first, Interval(low, high)), (second, back)):
                least = intervals[name]
                intervals[name] = Interval(min(least.lower, one.lower), min(least.upper, one.upper))
    rows = []
    for name, (x, n) in cells.items():
        inside = name in part and rates[compared] > 0
        ratio = rates[name] / rates[compared] if inside else None
        ends = intervals[name] if inside else None
        status = None
        if ends is not None:
            status = Finding("", *ends, least_ratio, at_least=True).status
        rows.append(
            ImpactRow(
                grouping=grouping,
                group=str(name),
                people=n,
                selected=x,
                rate=x / n,
                ratio=None if ratio is None else float(ratio),
                ratio_interval=None if ends is None else (ends.lower, ends.upper),
                standard_deviations=_deviations(cells[name], cells[compared])
                if inside and name != compared
                else None,
                more_selections=_missing_selections(cells[name], rates[compared], least_ratio)
                if inside
                else 0,
                excluded=name not in part,
                status=status,
            )
        )
    return rows


def _deviations(cell: tuple[int, int], other: tuple[int, int]) -> float | None:
    """(p - q) / sqrt(pooled (1 - pooled) (1/n + 1/m)): the courts' two standard deviations."""
    x, n = cell
    y, m = other
    pooled = (x + y) / (n + m)
    spread = sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return (x / n - y / m) / spread if spread > 0 else None


def _missing_selections(cell: tuple[int, int], best: Fraction, least_ratio: float) -> int:
    """The fewest k with ((x + k) / n) / best >= least_ratio, in whole numbers."""
    x, n = cell
    needed = Fraction(str(least_ratio)) * best * n
    return max(0, ceil(needed) - x)

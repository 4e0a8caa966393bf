"""Group rates as signed weights on a labelled sample (section 1.1): what must be equal across
groups.

Every rate is linear in acceptance. For group j, with n_j the people of the sample in the rate's
denominator,

    rate_j(pi) = offset + sum_i w_ji P[pi(x_i) = +1]
    FPR_j: offset 0, w_ji = +1[a_i = j, y_i = -1] / n_j
    FNR_j: offset 1, w_ji = -1[a_i = j, y_i = +1] / n_j
    selection rate_j: offset 0, w_ji = +1[a_i = j] / n_j
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from reprlib import repr as short
from typing import Any, ClassVar

import numpy as np

from evenhand.contracts import Rate
from evenhand.errors import InvalidInput
from evenhand.registry import Registry, did_you_mean
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, IntArray, LabelledSample

__all__ = [
    "RATES",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "GapConstraints",
    "Rate",
    "RateLike",
    "SelectionRate",
    "as_rates",
    "rate_names",
    "rates_in_words",
    "require_certifiable",
]


class _LabelRate(Rate):
    """A rate of the people with certain labels."""

    labels: ClassVar[tuple[int, ...]]

    @classmethod
    def in_denominator(cls, label: IntArray) -> BoolArray:
        """The people with one of the rate's labels count.

        Parameters
        ----------
        label : array, shape (rows,)
            Labels -1 and +1.

        Returns
        -------
        array of bool, shape (rows,)
            True where a person counts.
        """
        return np.asarray(reduce(np.logical_or, [label == value for value in cls.labels]))


@dataclass(frozen=True)
class FalsePositiveRate(_LabelRate):
    """P(accepted | group, y = -1): the paper's constraint (gamma-EFP, section 1.1).

    Examples
    --------
    >>> FalsePositiveRate().in_denominator(np.array([-1, 1]))
    array([ True, False])
    """

    name = "false positive rate"
    symbol = "FPR"
    denominator_name = "negatives (label -1)"
    labels = (-1,)


@dataclass(frozen=True)
class FalseNegativeRate(_LabelRate):
    """P(rejected | group, y = +1): "equal opportunity" for those who would succeed (gamma-EFN).

    Examples
    --------
    >>> FalseNegativeRate().in_denominator(np.array([-1, 1]))
    array([False,  True])
    """

    name = "false negative rate"
    symbol = "FNR"
    denominator_name = "positives (label +1)"
    labels = (1,)
    sign = -1
    offset = 1.0


@dataclass(frozen=True)
class SelectionRate(_LabelRate):
    """P(accepted | group): statistical parity.

    Examples
    --------
    >>> SelectionRate().in_denominator(np.array([-1, 1]))
    array([ True,  True])
    """

    name = "selection rate"
    symbol = "SR"
    denominator_name = "people"
    labels = (-1, 1)


RATES: Registry[Rate] = Registry(
    "rate",
    {"fpr": FalsePositiveRate(), "fnr": FalseNegativeRate(), "selection": SelectionRate()},
)
"""Rates by name."""

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    # Shares of good outcomes: TPR = 1 - FNR and TNR = 1 - FPR, so their gaps are the same.
    "tpr": ("fnr",),
    "true-positive-rate": ("fnr",),
    "true-positive-rate-parity": ("fnr",),
    "equal-opportunity": ("fnr",),
    "false-negative-rate": ("fnr",),
    "false-negative-rate-parity": ("fnr",),
    "tnr": ("fpr",),
    "true-negative-rate": ("fpr",),
    "true-negative-rate-parity": ("fpr",),
    "false-positive-rate": ("fpr",),
    "false-positive-rate-parity": ("fpr",),
    "predictive-equality": ("fpr",),
    "selection-rate": ("selection",),
    "demographic-parity": ("selection",),
    "statistical-parity": ("selection",),
    "equalised-odds": ("fpr", "fnr"),
    "equalized-odds": ("fpr", "fnr"),
}
"""What the field calls the rates whose gaps are limited; "_" and blanks count as "-"."""


def rate_names(name: str) -> tuple[str, ...]:
    """Return the registered rates behind a name: the one place where names of rates are resolved.

    Parameters
    ----------
    name : str
        A name of `RATES`, or one that the field has for such rates: "demographic_parity".

    Returns
    -------
    tuple of str
        Names of `RATES`, one or several.

    Raises
    ------
    InvalidInput
        If the name stands for no rate.

    Examples
    --------
    >>> rate_names("demographic_parity"), rate_names("Equalized Odds"), rate_names("fpr")
    (('selection',), ('fpr', 'fnr'), ('fpr',))
    >>> rate_names("equalized_ods")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: there is no rate 'equalized_ods'. Hint: known are fpr,
    fnr, selection, and names of the field such as tpr, demographic_parity and equalized_odds. Did
    you mean 'equalized-odds'?
    """
    if name in RATES:
        return (name,)
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    if plain in RATES:
        return (plain,)
    if plain in OTHER_NAMES:
        return OTHER_NAMES[plain]
    meant = did_you_mean(plain, [*RATES, *OTHER_NAMES])
    raise InvalidInput(
        f"there is no rate {name!r}.",
        hint=f"known are {', '.join(RATES)}, and names of the field such as tpr, "
        f"demographic_parity and equalized_odds.{meant}",
        argument="rate",
    )


RateLike = str | Rate | Sequence[str | Rate]
"""A rate, its name, or several of them."""


def as_rates(rate: RateLike) -> tuple[Rate, ...]:
    """The rates that somebody asked for, at least one and each once.

    Parameters
    ----------
    rate : str, Rate or sequence of them
        A rate, its name, or several; the names of the field are understood: "tpr",
        "demographic_parity", and "equalized_odds", which means "fpr" and "fnr".

    Returns
    -------
    tuple of Rate
        The rates.

    Raises
    ------
    InvalidInput
        If there is no such rate, none at all, or one twice.

    Examples
    --------
    >>> [one.symbol for one in as_rates(["fpr", SelectionRate()])]
    ['FPR', 'SR']
    """
    rates: tuple[Any, ...] = ()
    for one in rate if isinstance(rate, list | tuple) else (rate,):
        rates += tuple(RATES[name] for name in rate_names(one)) if isinstance(one, str) else (one,)
    for one in rates:
        if isinstance(one, type) or not isinstance(one, Rate):  # a class has all that a rate has
            raise InvalidInput(
                f"rate is {short(rate)}; it is a rate, the name of one, or a list of them.",
                hint=f"use evenhand.FalsePositiveRate(), or a name: {', '.join(RATES)}, "
                "equalised-odds.",
                argument="rate",
            )
    if not rates:
        raise InvalidInput(
            "rate is an empty list; at least one rate is limited.",
            hint="name a rate.",
            argument="rate",
        )
    if len(set(rates)) < len(rates):
        named = ", ".join(one.symbol for one in rates)
        raise InvalidInput(
            f"rate is [{named}], in which a rate occurs twice.",
            hint="name each rate once.",
            argument="rate",
        )
    return rates


def rates_in_words(rate: RateLike) -> str:
    """Return the names of rates for a sentence.

    Parameters
    ----------
    rate : str, Rate or sequence of them
        See `as_rates`.

    Returns
    -------
    str
        The names with "and" between them.

    Examples
    --------
    >>> rates_in_words("equalized_odds")
    'false positive rate and false negative rate'
    """
    return " and ".join(one.name for one in as_rates(rate))


def require_certifiable(rates: Sequence[Rate]) -> None:
    """Raise an error for a rate that no certificate covers.

    A rate is certifiable if it is P(accepted | group, label in S) for a set S of labels, or one
    minus that. The proofs use the form twice: accepting all applicants has the rate 1 in every
    group and rejecting all applicants the rate 0, so constants have no gap and need no interval;
    and one person counts fully or not at all, so a bet on the rate is a bet on people. The form is
    read off how the rate is declared; nothing is measured, since a gap that is 0 on one sample
    proves nothing.

    Parameters
    ----------
    rates : sequence of Rate
        The rates, as `as_rates` returns them.

    Raises
    ------
    InvalidInput
        If a rate has weights of its own, another sign or offset, or a denominator that is not a
        set of labels.

    Examples
    --------
    >>> require_certifiable(as_rates("equalised-odds"))
    >>> class ErrorRate(SelectionRate):
    ...     name = "error rate"
    ...     def group_weights(self, sample):
    ...         return -sample.label * super().group_weights(sample)
    >>> require_certifiable([ErrorRate()])
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: the rate 'error rate' has a group_weights of its own; ...
    """
    for rate in rates:
        departure = _departure(rate)
        if departure is not None:
            raise InvalidInput(
                f"the rate {rate.name!r} {departure}; a rate that is certified, or measured with "
                "exact intervals, is P(accepted | group, label in S) or one minus it.",
                hint="subclass Rate and declare in_denominator (the labels in S), with sign 1 and "
                "offset 0, or sign -1 and offset 1; solve_fair and FairClassifier accept other "
                "rates and limit them on a table, without a certificate.",
            )


def _departure(rate: Rate) -> str | None:
    """How a rate differs from the form of `require_certifiable`, or None."""
    # Weights of one's own can give the constants a gap: with +1/n_j for bad and -1/n_j for good
    # outcomes accept-all has the difference of base rates, whatever in_denominator says.
    if getattr(rate.group_weights, "__func__", None) is not Rate.group_weights:
        return "has a group_weights of its own"
    if (rate.sign, rate.offset) not in ((1, 0.0), (-1, 1.0)):
        return f"has sign {rate.sign} and offset {rate.offset:g}"
    both = np.array([-1, 1])
    counted = np.asarray(rate.in_denominator(both))
    if counted.dtype != np.bool_ or counted.shape != (2,) or not counted.any():
        return f"has the denominator {counted.tolist()} for the labels [-1, 1]"
    # a denominator may depend on a person's own label alone, not on who else is in the table
    mixed = np.array([1, -1, -1, 1, 1])
    if not np.array_equal(rate.in_denominator(mixed), np.where(mixed == 1, counted[1], counted[0])):
        return "has a denominator that depends on more than the label of each person"
    return None


@dataclass(frozen=True, eq=False, repr=False)
class GapConstraints(Brief):
    """The gaps between all pairs of groups for all rates, on one sample.

    Parameters
    ----------
    channels : array, shape (rates * groups, rows)
        W: the weights of each rate and group.
    pairs : array, shape (gaps, rates * groups)
        B: entries -1, 0, +1.
    names : tuple of str
        The names of the gaps, "FPR b minus a".
    rates : tuple of Rate
        The rates.
    groups : tuple
        The groups of the sample.

    Notes
    -----
    gaps(pi) = B W P[pi(x) = +1], each the rate of the later group minus that of the earlier one.

    Examples
    --------
    >>> sample = LabelledSample([[0.0]] * 4, ["a", "a", "b", "b"], [-1, -1, -1, 1])
    >>> constraints = GapConstraints.on("fpr", sample)
    >>> constraints.names, constraints.gaps(np.array([1.0, 0.0, 0.0, 1.0]))
    (('FPR b minus a',), array([-0.5]))
    """

    channels: FloatArray
    pairs: FloatArray
    names: tuple[str, ...]
    rates: tuple[Rate, ...]
    groups: tuple[Hashable, ...]

    @classmethod
    def on(cls, rates: RateLike, sample: LabelledSample) -> "GapConstraints":
        """The gaps of rates on a sample.

        Parameters
        ----------
        rates : str, Rate or sequence of them
            See `as_rates`.
        sample : LabelledSample
            People with groups and labels.

        Returns
        -------
        GapConstraints
            One gap for each rate and pair of groups.

        Raises
        ------
        CannotEstimateRate
            If there is one group only, or nobody of a group counts for a rate.
        """
        chosen = as_rates(rates)
        channels = np.concatenate([rate.group_weights(sample) for rate in chosen])
        groups = sample.groups
        rows = []
        names = []
        for r, rate in enumerate(chosen):
            for j, k in combinations(range(len(groups)), 2):
                row = np.zeros(len(channels))
                row[r * len(groups) + k] = 1.0
                row[r * len(groups) + j] = -1.0
                rows.append(row)
                names.append(f"{rate.symbol} {groups[k]} minus {groups[j]}")
        return cls(channels, np.array(rows), tuple(names), chosen, groups)

    def gaps(self, acceptance: FloatArray) -> FloatArray:
        """The signed gap of each rate and pair of groups.

        Parameters
        ----------
        acceptance : array, shape (rows,)
            The probability of accepting each row of the sample.

        Returns
        -------
        array, shape (gaps,)
            In the order of `names`.
        """
        return np.asarray(self.pairs @ (self.channels @ acceptance))

    def group_rates(self, acceptance: FloatArray) -> dict[str, dict[Hashable, float]]:
        """The rates of the groups.

        Parameters
        ----------
        acceptance : array, shape (rows,)
            The probability of accepting each row of the sample.

        Returns
        -------
        dict
            {rate symbol: {group: rate}}.
        """
        values = (self.channels @ acceptance).reshape(len(self.rates), len(self.groups))
        return {
            rate.symbol: {
                group: rate.offset + float(v) for group, v in zip(self.groups, row, strict=True)
            }
            for rate, row in zip(self.rates, values, strict=True)
        }

"""Two checks for tests of your own: whether a class of rules keeps the requirements of its contract
(`evenhand.contracts`: Hypothesis, RowOracle, Partitioning, Enumeration, HypothesisClass), and
whether what was measured is within a limit.

A requirement is a named function: it says nothing while it holds, and raises `RequirementBroken`
with figures when it does not.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import ParamSpec

import numpy as np

from evenhand.contracts import (
    Enumeration,
    Hypothesis,
    HypothesisClass,
    Json,
    Params,
    Partitioning,
    RowOracle,
)
from evenhand.errors import EvenhandError, InvalidInput, NotSerialisable
from evenhand.evaluation.gates import Gated, gate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.serialise import rule_from_json
from evenhand.result import Verdict
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray

__all__ = ["RequirementBroken", "assert_within", "check_hypothesis_class"]

EQUAL = 1e-12
"""Costs that differ by at most EQUAL * sum|cost| are equal."""
SCALES = (1e-12, 0.3, 7.0, 1e12)
Arguments = ParamSpec("Arguments")


def assert_within(
    record: Gated,
    limit: float | None = None,
    least_ratio: float | None = None,
    *,
    not_shown: bool = False,
) -> Verdict:
    """Fail a test unless everything is shown to be within what is allowed.

    Parameters
    ----------
    record : Measurement, Evaluation, ImpactTable or TableCertification
        What was measured.
    limit : float, optional
        The largest gap that is allowed.
    least_ratio : float, optional
        The smallest ratio that is allowed.
    not_shown : bool
        Whether "not shown" passes: then only what is shown to be above fails.

    Returns
    -------
    Verdict
        The verdict.

    Raises
    ------
    AssertionError
        With the finding that decides it.

    Examples
    --------
    >>> import numpy as np, evenhand as eh
    >>> accepted = np.array([True, False] * 400)
    >>> assert_within(eh.measure(accepted, ["a", "a", "b", "b"] * 200), limit=0.2).status
    'within'
    """
    result = gate(record, limit, least_ratio)
    allowed = ("within", "not shown") if not_shown else ("within",)
    if result.status not in allowed:
        raise AssertionError(result.headline)
    return result


# what requirements have in common


class RequirementBroken(AssertionError):
    """A requirement of a contract does not hold.

    Parameters
    ----------
    requirement : str
        The name of the requirement.
    figures : str
        What was seen instead.

    Examples
    --------
    >>> error = RequirementBroken("constants_are_fair", "a gap of 0.2")
    >>> print(error)
    the requirement "constants are fair" is broken: a gap of 0.2
    >>> error.requirement
    'constants_are_fair'
    """

    def __init__(self, requirement: str, figures: str) -> None:
        super().__init__(f'the requirement "{requirement.replace("_", " ")}" is broken: {figures}')
        self.requirement = requirement


class Broken(AssertionError):
    """Raised inside a requirement with the figures; `requirement` adds the requirement's name."""


def requirement(check: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Make a function a requirement: what breaks it is raised as RequirementBroken with its
    name.
    """

    @wraps(check)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            check(*args, **kwargs)
        except Broken as broken:
            raise RequirementBroken(check.__name__, str(broken)) from broken.__cause__

    return checked


def require(holds: bool, figures: str) -> None:
    """The requirement is broken unless this holds."""
    if not holds:
        raise Broken(figures)


def check_each(requirements: Iterable[Callable[..., None]], *case: object) -> tuple[str, ...]:
    """Apply the requirements one after the other; their names."""
    names = []
    for one in requirements:
        one(*case)
        names.append(one.__name__)
    return tuple(names)


def same(left: object, right: object) -> bool:
    """Equal arrays, entry for entry."""
    return np.array_equal(np.asarray(left), np.asarray(right))


def through_text(data: Json) -> Json:
    """What is left of `data` after being written as strict JSON and read again."""
    left: Json = json.loads(json.dumps(data, allow_nan=False))
    return left


def is_plain_with(params: Params, name: str) -> bool:
    """Whether parameters are plain JSON and have a name."""
    try:
        return through_text(dict(params)) == params and bool(params.get(name))
    except (TypeError, ValueError):
        return False


# classes of rules


@dataclass(frozen=True, eq=False, repr=False)
class ClassCase(Brief):
    """A class, and what it is asked about."""

    hypotheses: HypothesisClass
    features: FloatArray
    group: GroupArray
    seed: int = 0

    @cached_property
    def oracle(self) -> RowOracle:
        """The class, bound to the rows."""
        return self.hypotheses.bind(self.features, self.shown)

    @property
    def shown(self) -> GroupArray | None:
        """The group, for classes that look at it."""
        return self.group if self.hypotheses.uses_group else None

    def costs(self) -> Iterator[FloatArray]:
        """Return vectors of acceptance costs."""
        draw = np.random.default_rng(self.seed)
        rows = len(self.features)
        tilt = self.features[:, -1] - np.median(self.features[:, -1])
        yield draw.normal(size=rows)
        yield draw.normal(size=rows) - tilt
        yield draw.choice([-1.0, 1.0], size=rows)
        yield draw.normal(size=rows) * (draw.random(rows) < 0.3)
        yield -draw.random(rows)
        yield draw.random(rows)
        yield np.zeros(rows)

    def answers(self) -> Iterator[tuple[FloatArray, Hypothesis]]:
        """Ask the class for its best member at each vector of costs."""
        return ((cost, self.oracle.best(cost.copy())) for cost in self.costs())

    def cost_of(self, hypothesis: Hypothesis, cost: FloatArray) -> float:
        """Return what a hypothesis costs."""
        return math.fsum(cost[hypothesis.accepts(self.features, self.shown)])


ClassRequirement = Callable[[ClassCase], None]


@requirement
def one_bool_per_row(case: ClassCase) -> None:
    """h.accepts has shape (rows,) and dtype bool, also for one row and for none."""
    for _, answer in case.answers():
        for rows in (len(case.features), 1, 0):
            shown = None if case.shown is None else case.shown[:rows]
            accepted = np.asarray(answer.accepts(case.features[:rows], shown))
            figures = f"{answer.describe()!r} gave {accepted.dtype} of shape {accepted.shape}"
            figures += f" for {rows} rows"
            require(accepted.dtype == bool and accepted.shape == (rows,), figures)


@requirement
def each_row_alone(case: ClassCase) -> None:
    """The answer for a row does not depend on the other rows.

    Nor does it depend on where the row stands, nor on what was asked before.
    """
    draw = np.random.default_rng(case.seed)
    pick = draw.permutation(len(case.features))[: max(1, len(case.features) // 3)]
    shown = None if case.shown is None else case.shown[pick]
    for _, answer in case.answers():
        whole = answer.accepts(case.features, case.shown)
        part = answer.accepts(case.features[pick], shown)
        changed = int(np.sum(whole[pick] != part))
        require(
            changed == 0, f"{answer.describe()!r} changed {changed} answers on {len(pick)} rows"
        )
        again = answer.accepts(case.features, case.shown)
        require(same(whole, again), f"{answer.describe()!r} answered otherwise when asked twice")


@requirement
def never_worse_than_a_constant(case: ClassCase) -> None:
    """An exact class answers with nothing that costs more than accepting or rejecting everybody."""
    for cost, answer in case.answers():
        mine = case.cost_of(answer, cost)
        for constant in (ACCEPT_ALL, REJECT_ALL):
            theirs = case.cost_of(constant, cost)
            figures = f"{answer.describe()!r} costs {mine!r}, {constant.describe()!r} {theirs!r}"
            require(mine <= theirs + EQUAL * np.abs(cost).sum(), figures)


@requirement
def row_order_is_irrelevant(case: ClassCase) -> None:
    """Permuting rows changes nothing: the answer costs the same to 1e-12 of sum|cost|."""
    order = np.random.default_rng(case.seed + 1).permutation(len(case.features))
    shown = None if case.shown is None else case.shown[order]
    permuted = case.hypotheses.bind(case.features[order], shown)
    for cost, answer in case.answers():
        _require_equal_cost(case, cost, answer, permuted.best(cost[order]), "after a permutation")


@requirement
def scale_of_costs_is_irrelevant(case: ClassCase) -> None:
    """Multiplying all costs by a positive number changes nothing, from 1e-12 to 1e12."""
    for cost, answer in case.answers():
        for scale in SCALES:
            scaled = case.oracle.best(cost * scale)
            _require_equal_cost(case, cost, answer, scaled, f"with costs times {scale:g}")


@requirement
def same_question_same_answer(case: ClassCase) -> None:
    """An answer depends on the costs alone, and leaves the costs as they were.

    What was asked before changes nothing.
    """
    questions = list(case.costs())
    first = [case.oracle.best(cost).accepts(case.features, case.shown) for cost in questions]
    fresh = case.hypotheses.bind(case.features, case.shown)
    for cost, expected in reversed(list(zip(questions, first, strict=True))):
        changed = int(np.sum(fresh.best(cost).accepts(case.features, case.shown) != expected))
        require(changed == 0, f"{changed} rows changed with the order of questions")
    untouched = all(same(a, b) for a, b in zip(questions, case.costs(), strict=True))
    require(untouched, "best() wrote into the costs it was given")


@requirement
def survives_json(case: ClassCase) -> None:
    """h -> JSON -> h is the identity, or to_json raises NotSerialisable."""
    for _, answer in case.answers():
        try:
            data = answer.to_json()
        except NotSerialisable:
            continue
        try:
            read = rule_from_json(through_text(data), case.hypotheses)
        except (EvenhandError, ValueError, TypeError) as error:
            raise Broken(f"{answer.describe()!r} cannot be read back: {error}") from error
        require(read.to_json() == data, f"{data} came back as {read.to_json()}")
        equal = same(
            read.accepts(case.features, case.shown), answer.accepts(case.features, case.shown)
        )
        require(equal, f"{answer.describe()!r} decides otherwise after a round trip")
        columns = (answer.columns_used, read.columns_used)
        figures = f"{answer.describe()!r} uses the columns {columns[0]}, read back {columns[1]}"
        require(columns[0] == columns[1], figures)


@requirement
def unused_columns_change_nothing(case: ClassCase) -> None:
    """A column that is not in columns_used never changes an answer.

    columns_used holds numbers of columns in ascending order, or is None where it is not known.
    """
    draw = np.random.default_rng(case.seed)
    width = case.features.shape[1]
    for _, answer in case.answers():
        used = getattr(answer, "columns_used", "missing")
        if used is None:
            continue
        known = isinstance(used, tuple) and set(used) <= set(range(width))
        require(
            known and list(used) == sorted(set(used)),
            f"{answer.describe()!r} has columns_used {used!r}; they are numbers below {width} in "
            "ascending order, or None",
        )
        unused = [column for column in range(width) if column not in used]
        before = answer.accepts(case.features, case.shown)
        for _ in range(5):
            # Rows exchange their values in all unused columns at once: what belongs together, such
            # as the parts of a text, stays together.
            changed = case.features.copy()
            order = draw.permutation(len(changed))
            changed[:, unused] = changed[order][:, unused]
            off = int(np.sum(answer.accepts(changed, case.shown) != before))
            require(off == 0, f"{answer.describe()!r} changed {off} answers with columns {unused}")


@requirement
def describes_itself(case: ClassCase) -> None:
    """params is plain JSON with a "class", and describe() is a line of text.

    describe() takes the names of the columns.
    """
    params = dict(case.hypotheses.params)
    require(is_plain_with(params, "class"), f'{params} are not plain values with a "class"')
    names = [f"name{j}" for j in range(case.features.shape[1])]
    for _, answer in case.answers():
        described = bool(answer.describe().strip()) and bool(answer.describe(names).strip())
        require(described, f"{type(answer).__name__}.describe() is empty")


@requirement
def group_is_used_as_declared(case: ClassCase) -> None:
    """A class looks at the group if and only if it says so.

    uses_group=False: the group changes not one answer. uses_group=True: binding without a group is
    refused.
    """
    if case.hypotheses.uses_group:
        try:
            case.hypotheses.bind(case.features, None)
        except InvalidInput:
            return
        raise Broken("a class with uses_group=True was bound without a group")
    seeing = case.hypotheses.bind(case.features, case.group)
    for cost, answer in case.answers():
        blind = answer.accepts(case.features, None)
        other = seeing.best(cost)
        equal = same(blind, other.accepts(case.features, None)) and same(
            blind, other.accepts(case.features, case.group)
        )
        require(equal, f"{other.describe()!r} changed when it was shown the group")


@requirement
def totals_equal_brute_force(case: ClassCase) -> None:
    """totals[c, h] = sum_i channels[c, i] 1[member h accepts i], for every member."""
    oracle = _enumeration(case)
    channels = np.array(list(case.costs())[:3])
    totals = oracle.totals(channels)
    for member in range(totals.shape[1]):
        rule = oracle.hypothesis(member)
        accepted = rule.accepts(case.features, case.shown)
        for channel, total in zip(channels, totals[:, member], strict=True):
            off = abs(math.fsum(channel[accepted]) - total)
            name = rule.describe()
            figures = f"member {member} ({name!r}) is off by {off:.3g}"
            require(off <= EQUAL * np.abs(channel).sum(), figures)


@requirement
def best_is_least_total(case: ClassCase) -> None:
    """best(cost) costs min_h totals[h]."""
    oracle = _enumeration(case)
    for cost, answer in case.answers():
        least = float(oracle.totals(cost[np.newaxis]).min())
        mine = case.cost_of(answer, cost)
        figures = f"{answer.describe()!r} costs {mine!r}, the least total is {least!r}"
        require(abs(mine - least) <= EQUAL * np.abs(cost).sum(), figures)


@requirement
def growth_covers_behaviours(case: ClassCase) -> None:
    """log_growth and log_size cover the number of distinct behaviours on the rows.

    log_growth(rows, columns) >= ln(number of distinct behaviours on the rows); log_size as well.
    """
    behaviours = {accepted.tobytes() for accepted in _members(case, _enumeration(case))}
    seen = math.log(len(behaviours))
    for name, bound in (
        ("log_growth", case.hypotheses.log_growth(*case.features.shape)),
        ("log_size", case.hypotheses.log_size),
    ):
        there = f"there are exp({seen:.6g}) = {len(behaviours)} behaviours"
        require(bound >= seen - 1e-9, f"{name} is {bound:.6g} but {there}")


@requirement
def partitions_hold_what_they_offer(case: ClassCase) -> None:
    """Each member of a partition accepts the rows of its cells and no others.

    best(cost) accepts whole cells.
    """
    draw = np.random.default_rng(case.seed)
    for cost, answer in case.answers():
        partition = case.oracle.partition(cost) if isinstance(case.oracle, Partitioning) else None
        if partition is None:
            continue
        whole = np.zeros(partition.cells, dtype=bool)
        whole[partition.cell] = answer.accepts(case.features, case.shown)
        figures = f"{answer.describe()!r} divides a cell"
        require(same(whole[partition.cell], answer.accepts(case.features, case.shown)), figures)
        # Where the cells are ordered, each chain of them has a cut-off of its own.
        length = partition.cells // partition.chains
        choices = [
            np.concatenate(
                [np.arange(length) >= draw.integers(0, length + 1) for _ in range(partition.chains)]
            )
            for _ in range(3)
        ]
        if not partition.ordered:
            choices += [draw.random(partition.cells) < 0.5 for _ in range(3)]
        for chosen in choices:
            member = partition.hypothesis(chosen)
            off = int(np.sum(member.accepts(case.features, case.shown) != chosen[partition.cell]))
            require(
                off == 0, f"{member.describe()!r} decides {off} rows otherwise than its cells say"
            )


EVERY_CLASS: tuple[ClassRequirement, ...] = (
    one_bool_per_row,
    each_row_alone,
    row_order_is_irrelevant,
    scale_of_costs_is_irrelevant,
    same_question_same_answer,
    unused_columns_change_nothing,
    survives_json,
    describes_itself,
    group_is_used_as_declared,
)
EXACT_CLASSES: tuple[ClassRequirement, ...] = (never_worse_than_a_constant,)
PARTITIONING_CLASSES: tuple[ClassRequirement, ...] = (partitions_hold_what_they_offer,)
ENUMERABLE_CLASSES: tuple[ClassRequirement, ...] = (
    totals_equal_brute_force,
    best_is_least_total,
    growth_covers_behaviours,
)


def hypothesis_class_requirements(case: ClassCase) -> Iterator[tuple[str, ClassRequirement]]:
    """Return the requirements that apply to a class.

    The constants need not be members of a finite class; then the requirement about them does not
    apply.
    """
    requirements = EVERY_CLASS
    oracle = case.oracle
    guaranteed = case.hypotheses.exact
    if guaranteed and isinstance(oracle, Enumeration) and math.isfinite(case.hypotheses.log_size):
        accepted = {int(member.sum()) for member in _members(case, oracle)}
        guaranteed = {0, len(case.features)} <= accepted
    if guaranteed:
        requirements += EXACT_CLASSES
    if isinstance(oracle, Partitioning):
        requirements += PARTITIONING_CLASSES
    if isinstance(oracle, Enumeration):
        requirements += ENUMERABLE_CLASSES
    return ((one.__name__, one) for one in requirements)


def check_hypothesis_class(
    hypotheses: HypothesisClass,
    *,
    features: FloatArray | None = None,
    group: GroupArray | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Check every requirement that applies to a class of rules.

    Parameters
    ----------
    hypotheses : HypothesisClass
        The class.
    features : array of float, optional
        The rows that it is asked about; by default 60 drawn rows of 4 columns, of which the first
        holds the integers 0 to 3.
    group : array, optional
        The groups of the rows; drawn by default.
    seed : int
        The seed of everything that is drawn.

    Returns
    -------
    tuple of str
        The names of the requirements that hold.

    Raises
    ------
    RequirementBroken
        At the first requirement that does not hold.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.testing import check_hypothesis_class
    >>> "survives_json" in check_hypothesis_class(eh.ScoreThresholds())
    True
    """
    rows = draw_features(seed) if features is None else features
    drawn = np.random.default_rng(seed).choice(["a", "b"], size=len(rows))
    known = drawn if group is None else group
    case = ClassCase(hypotheses, rows, known, seed)
    return check_each((check for _, check in hypothesis_class_requirements(case)), case)


def draw_features(seed: int, rows: int = 60) -> FloatArray:
    """Integers 0 .. 3, a real column, a column with ties, a real column."""
    draw = np.random.default_rng(seed)
    real = draw.normal(size=(rows, 3))
    real[:, 1] = np.round(real[:, 1])
    return np.column_stack([draw.integers(0, 4, rows), real])


def _members(case: ClassCase, oracle: Enumeration) -> Iterator[BoolArray]:
    """The rows that each member of the class accepts."""
    for member in range(oracle.totals(np.zeros((1, len(case.features)))).shape[1]):
        yield oracle.hypothesis(member).accepts(case.features, case.shown)


def _enumeration(case: ClassCase) -> Enumeration:
    if not isinstance(case.oracle, Enumeration):
        raise TypeError(
            f"{type(case.oracle).__name__} has no totals; this requirement is for enumerable "
            "classes."
        )
    return case.oracle


def _require_equal_cost(
    case: ClassCase, cost: FloatArray, one: Hypothesis, two: Hypothesis, when: str
) -> None:
    before = case.cost_of(one, cost)
    after = case.cost_of(two, cost)
    figures = f"{one.describe()!r} costs {before!r}, {when} {two.describe()!r} costs {after!r}"
    require(abs(before - after) <= EQUAL * np.abs(cost).sum(), figures)

"""The laws of hypothesis classes (contracts: Hypothesis, RowOracle, Partitioning, Enumeration,
HypothesisClass), for ours and yours.

from evenhand.testing import check_hypothesis_class
check_hypothesis_class(MyClass())
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.contracts import Enumeration, Hypothesis, HypothesisClass, Partitioning, RowOracle
from evenhand.errors import EvenhandError, InvalidInput, NotSerialisable
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.serialise import hypothesis_from_json
from evenhand.testing.laws import EQUAL, LawBroken, require, same, through_text
from evenhand.words import FloatArray, GroupArray

SCALES = (1e-12, 0.3, 7.0, 1e12)


@dataclass(frozen=True, eq=False)
class ClassCase:
    """A class, rows to bind it to, and the seed of the costs it is asked about."""

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
        """Acceptance costs: real, 0-1 loss, sparse, all good, all bad, none at all."""
        draw, rows = np.random.default_rng(self.seed), len(self.features)
        tilt = self.features[:, -1] - np.median(self.features[:, -1])
        yield draw.normal(size=rows)
        yield draw.normal(size=rows) - tilt
        yield draw.choice([-1.0, 1.0], size=rows)
        yield draw.normal(size=rows) * (draw.random(rows) < 0.3)
        yield -draw.random(rows)
        yield draw.random(rows)
        yield np.zeros(rows)

    def answers(self) -> Iterator[tuple[FloatArray, Hypothesis]]:
        """Each cost vector with the oracle's answer."""
        return ((cost, self.oracle.best(cost.copy())) for cost in self.costs())

    def cost_of(self, hypothesis: Hypothesis, cost: FloatArray) -> float:
        """sum_i cost_i 1[h accepts i]."""
        return math.fsum(cost[hypothesis.accepts(self.features, self.shown)])


Law = Callable[[ClassCase], None]


def one_bool_per_row(case: ClassCase) -> None:
    """h.accepts has shape (rows,) and dtype bool, also for one row and for none."""
    for _, answer in case.answers():
        for rows in (len(case.features), 1, 0):
            shown = None if case.shown is None else case.shown[:rows]
            accepted = np.asarray(answer.accepts(case.features[:rows], shown))
            figures = f"{answer.describe()!r} gave {accepted.dtype} of shape {accepted.shape} for {rows} rows"
            require(
                accepted.dtype == bool and accepted.shape == (rows,), "one_bool_per_row", figures
            )


def each_row_alone(case: ClassCase) -> None:
    """The answer for a row does not depend on the other rows, nor on where it stands, nor on being
    asked before.
    """
    draw = np.random.default_rng(case.seed)
    pick = draw.permutation(len(case.features))[: max(1, len(case.features) // 3)]
    shown = None if case.shown is None else case.shown[pick]
    for _, answer in case.answers():
        whole = answer.accepts(case.features, case.shown)
        part = answer.accepts(case.features[pick], shown)
        changed = int(np.sum(whole[pick] != part))
        require(
            changed == 0,
            "each_row_alone",
            f"{answer.describe()!r} changed {changed} answers on {len(pick)} rows",
        )
        again = answer.accepts(case.features, case.shown)
        require(
            same(whole, again),
            "each_row_alone",
            f"{answer.describe()!r} answered otherwise when asked twice",
        )


def never_worse_than_a_constant(case: ClassCase) -> None:
    """On an exact class the answer costs at most as much as accepting or rejecting everybody."""
    for cost, answer in case.answers():
        mine = case.cost_of(answer, cost)
        for constant in (ACCEPT_ALL, REJECT_ALL):
            theirs = case.cost_of(constant, cost)
            figures = f"{answer.describe()!r} costs {mine!r}, {constant.describe()!r} {theirs!r}"
            require(
                mine <= theirs + EQUAL * np.abs(cost).sum(), "never_worse_than_a_constant", figures
            )


def row_order_is_irrelevant(case: ClassCase) -> None:
    """Permuting rows changes nothing: the answer costs the same to 1e-12 of sum|cost|."""
    order = np.random.default_rng(case.seed + 1).permutation(len(case.features))
    shown = None if case.shown is None else case.shown[order]
    permuted = case.hypotheses.bind(case.features[order], shown)
    for cost, answer in case.answers():
        _require_equal_cost(
            case,
            cost,
            answer,
            permuted.best(cost[order]),
            "row_order_is_irrelevant",
            "after a permutation",
        )


def scale_of_costs_is_irrelevant(case: ClassCase) -> None:
    """Multiplying all costs by a positive number changes nothing, from 1e-12 to 1e12."""
    for cost, answer in case.answers():
        for scale in SCALES:
            scaled = case.oracle.best(cost * scale)
            _require_equal_cost(
                case,
                cost,
                answer,
                scaled,
                "scale_of_costs_is_irrelevant",
                f"with costs times {scale:g}",
            )


def same_question_same_answer(case: ClassCase) -> None:
    """An answer depends on the costs alone, not on what was asked before, and leaves the costs as
    they were.
    """
    questions = list(case.costs())
    first = [case.oracle.best(cost).accepts(case.features, case.shown) for cost in questions]
    fresh = case.hypotheses.bind(case.features, case.shown)
    for cost, expected in reversed(list(zip(questions, first, strict=True))):
        changed = int(np.sum(fresh.best(cost).accepts(case.features, case.shown) != expected))
        require(
            changed == 0,
            "same_question_same_answer",
            f"{changed} rows changed with the order of questions",
        )
    untouched = all(same(a, b) for a, b in zip(questions, case.costs(), strict=True))
    require(untouched, "same_question_same_answer", "best() wrote into the costs it was given")


def survives_json(case: ClassCase) -> None:
    """h -> JSON -> h is the identity, or to_json raises NotSerialisable."""
    for _, answer in case.answers():
        try:
            data = answer.to_json()
        except NotSerialisable:
            continue
        try:
            read = hypothesis_from_json(through_text(data))
        except (EvenhandError, ValueError, TypeError) as error:
            raise LawBroken(
                "survives_json", f"{answer.describe()!r} cannot be read back: {error}"
            ) from error
        require(read.to_json() == data, "survives_json", f"{data} came back as {read.to_json()}")
        equal = same(
            read.accepts(case.features, case.shown), answer.accepts(case.features, case.shown)
        )
        require(
            equal, "survives_json", f"{answer.describe()!r} decides otherwise after a round trip"
        )


def describes_itself(case: ClassCase) -> None:
    """params is plain JSON with a "class"; describe() is a line of text that takes names of
    columns.
    """
    params = dict(case.hypotheses.params)
    try:
        plain = through_text(params) == params
    except (TypeError, ValueError):
        plain = False
    require(
        plain and bool(params.get("class")),
        "describes_itself",
        f'{params} are not plain values with a "class"',
    )
    names = [f"name{j}" for j in range(case.features.shape[1])]
    for _, answer in case.answers():
        told = bool(answer.describe().strip()) and bool(answer.describe(names).strip())
        require(told, "describes_itself", f"{type(answer).__name__}.describe() is empty")


def group_is_used_as_declared(case: ClassCase) -> None:
    """uses_group=False: the group changes not one answer. uses_group=True: binding without a group
    is refused.
    """
    if case.hypotheses.uses_group:
        try:
            case.hypotheses.bind(case.features, None)
        except InvalidInput:
            return
        raise LawBroken(
            "group_is_used_as_declared", "a class with uses_group=True was bound without a group"
        )
    seeing = case.hypotheses.bind(case.features, case.group)
    for cost, answer in case.answers():
        blind = answer.accepts(case.features, None)
        other = seeing.best(cost)
        equal = same(blind, other.accepts(case.features, None)) and same(
            blind, other.accepts(case.features, case.group)
        )
        require(
            equal,
            "group_is_used_as_declared",
            f"{other.describe()!r} changed when it was shown the group",
        )


def totals_equal_brute_force(case: ClassCase) -> None:
    """totals[c, h] = sum_i channels[c, i] 1[member h accepts i], for every member."""
    oracle = _enumeration(case)
    channels = np.array(list(case.costs())[:3])
    totals = oracle.totals(channels)
    for member in range(totals.shape[1]):
        accepted = oracle.hypothesis(member).accepts(case.features, case.shown)
        for channel, total in zip(channels, totals[:, member], strict=True):
            off = abs(math.fsum(channel[accepted]) - total)
            figures = (
                f"member {member} ({oracle.hypothesis(member).describe()!r}) is off by {off:.3g}"
            )
            require(off <= EQUAL * np.abs(channel).sum(), "totals_equal_brute_force", figures)


def best_is_least_total(case: ClassCase) -> None:
    """best(cost) costs min_h totals[h]."""
    oracle = _enumeration(case)
    for cost, answer in case.answers():
        least, mine = float(oracle.totals(cost[np.newaxis]).min()), case.cost_of(answer, cost)
        figures = f"{answer.describe()!r} costs {mine!r}, the least total is {least!r}"
        require(abs(mine - least) <= EQUAL * np.abs(cost).sum(), "best_is_least_total", figures)


def growth_covers_behaviours(case: ClassCase) -> None:
    """log_growth(rows, columns) >= ln(number of distinct behaviours on the rows); log_size as well."""
    oracle = _enumeration(case)
    members = oracle.totals(np.zeros((1, len(case.features)))).shape[1]
    behaviours = {
        oracle.hypothesis(h).accepts(case.features, case.shown).tobytes() for h in range(members)
    }
    seen = math.log(len(behaviours))
    for name, bound in (
        ("log_growth", case.hypotheses.log_growth(*case.features.shape)),
        ("log_size", case.hypotheses.log_size),
    ):
        figures = (
            f"{name} is {bound:.6g} but there are exp({seen:.6g}) = {len(behaviours)} behaviours"
        )
        require(bound >= seen - 1e-9, "growth_covers_behaviours", figures)


def partitions_hold_what_they_offer(case: ClassCase) -> None:
    """Each member of partition(cost) accepts the rows of its cells and no others; best(cost)
    accepts whole cells.
    """
    law, draw = "partitions_hold_what_they_offer", np.random.default_rng(case.seed)
    for cost, answer in case.answers():
        found = case.oracle.partition(cost) if isinstance(case.oracle, Partitioning) else None
        if found is None:
            continue
        whole = np.zeros(found.cells, dtype=bool)
        whole[found.cell] = answer.accepts(case.features, case.shown)
        figures = f"{answer.describe()!r} divides a cell"
        require(same(whole[found.cell], answer.accepts(case.features, case.shown)), law, figures)
        choices = [np.arange(found.cells) >= draw.integers(0, found.cells + 1) for _ in range(3)]
        if not found.ordered:
            choices += [draw.random(found.cells) < 0.5 for _ in range(3)]
        for chosen in choices:
            member = found.hypothesis(chosen)
            off = int(np.sum(member.accepts(case.features, case.shown) != chosen[found.cell]))
            require(
                off == 0,
                law,
                f"{member.describe()!r} decides {off} rows otherwise than its cells say",
            )


EVERY_CLASS: tuple[Law, ...] = (
    one_bool_per_row,
    each_row_alone,
    row_order_is_irrelevant,
    scale_of_costs_is_irrelevant,
    same_question_same_answer,
    survives_json,
    describes_itself,
    group_is_used_as_declared,
)
EXACT_CLASSES: tuple[Law, ...] = (never_worse_than_a_constant,)
PARTITIONING_CLASSES: tuple[Law, ...] = (partitions_hold_what_they_offer,)
ENUMERABLE_CLASSES: tuple[Law, ...] = (
    totals_equal_brute_force,
    best_is_least_total,
    growth_covers_behaviours,
)


def hypothesis_class_laws(case: ClassCase) -> Iterator[tuple[str, Law]]:
    """The laws that apply to the class, by name.

    The constants need not be members of a finite class; then the law about them does not apply.
    """
    laws = EVERY_CLASS
    if case.hypotheses.exact and _contains_constants(case):
        laws += EXACT_CLASSES
    if isinstance(case.oracle, Partitioning):
        laws += PARTITIONING_CLASSES
    if isinstance(case.oracle, Enumeration):
        laws += ENUMERABLE_CLASSES
    return ((law.__name__, law) for law in laws)


def check_hypothesis_class(
    hypotheses: HypothesisClass,
    *,
    features: FloatArray | None = None,
    group: GroupArray | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Run every law that applies; the names of the laws that hold, or LawBroken at the first that
    does not.

    Without `features` it draws 60 rows of 4 columns; the first column holds the integers 0 .. 3.
    """
    rows = draw_features(seed) if features is None else features
    known = (
        np.random.default_rng(seed).choice(["a", "b"], size=len(rows)) if group is None else group
    )
    case = ClassCase(hypotheses, rows, known, seed)
    names = []
    for name, law in hypothesis_class_laws(case):
        law(case)
        names.append(name)
    return tuple(names)


def draw_features(seed: int, rows: int = 60) -> FloatArray:
    """Integers 0 .. 3, a real column, a column with ties, a real column."""
    draw = np.random.default_rng(seed)
    real = draw.normal(size=(rows, 3))
    real[:, 1] = np.round(real[:, 1])
    return np.column_stack([draw.integers(0, 4, rows), real])


def _contains_constants(case: ClassCase) -> bool:
    """A finite list without accept-all or reject-all makes no promise about them; every other exact
    class does.
    """
    oracle = case.oracle
    if math.isinf(case.hypotheses.log_size) or not isinstance(oracle, Enumeration):
        return True
    members = oracle.totals(np.zeros((1, len(case.features)))).shape[1]
    seen = {
        int(oracle.hypothesis(h).accepts(case.features, case.shown).sum()) for h in range(members)
    }
    return {0, len(case.features)} <= seen


def _enumeration(case: ClassCase) -> Enumeration:
    if not isinstance(case.oracle, Enumeration):
        raise TypeError(
            f"{type(case.oracle).__name__} has no totals; this law is for enumerable classes."
        )
    return case.oracle


def _require_equal_cost(
    case: ClassCase, cost: FloatArray, one: Hypothesis, two: Hypothesis, law: str, when: str
) -> None:
    before, after = case.cost_of(one, cost), case.cost_of(two, cost)
    figures = f"{one.describe()!r} costs {before!r}, {when} {two.describe()!r} costs {after!r}"
    require(abs(before - after) <= EQUAL * np.abs(cost).sum(), law, figures)

"""Off-policy evaluation: loss and rate gaps of a policy that was not the one that made the log,
valid after every block of it.

The log is read once, in its order, in blocks that grow by GROWTH. Before a block is looked at,
everything that bets on it is fixed from earlier blocks: the regression m and the bets. After it,
intervals are narrowed and never widened, so each of them holds for the whole log at once (a
confidence sequence), and stopping to log when the interval pleases does no harm.

For that, evaluations of a growing log must be looks at one process: where a block ends depends on
the number of the row alone, never on how long the log is. A log may end inside a block. Its rows
then count with the bets of that block, as they would in a longer log, because the products of
factors are martingales row by row and Ville's inequality holds at every row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from evenhand.bounds import BettingBound
from evenhand.computing import one_blas_thread
from evenhand.contracts import Policy
from evenhand.errors import InvalidInput, MissingColumn
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import OutcomeRegression, fit_outcomes
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.evaluation.evaluated import evaluated
from evenhand.evaluation.log_betting import LoggedGaps, LossBound, LossRows, cohort_of
from evenhand.evaluation.policy_files import HINT, PolicyFile, read_document
from evenhand.fairness import FalsePositiveRate
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.fairness.rates import Rate, require_certifiable
from evenhand.findings import Finding, judge, size_of
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, policy_from_json
from evenhand.media import Told
from evenhand.policies import Mixture
from evenhand.result import Result
from evenhand.shares import require_delta, require_limit
from evenhand.shown import Brief, counted
from evenhand.words import BoolArray, FloatArray, IntArray, Prices

Verdict = Literal["within", "above", "not shown", "contradiction", "no groups"]
THIN = 0.05
"""An acceptance probability below this is little support."""
MUCH = 0.1
"""From this share on, thin support or one person's weight is worth a warning."""
FEW = 30
"""Effective people below this are worth a warning."""
CONTRADICTION = (
    "Nothing is claimed: no value is consistent with the log, so an assumption below is broken "
    "(a population that changed, propensities that are not those of the draws)."
)
CONSTANTS = {"accept-all": ACCEPT_ALL, "reject-all": REJECT_ALL}
FIRST_BLOCK = 100
GROWTH = 1.25
LOSS_PART = 0.2
"""Of delta goes to the loss; the rest to the gaps."""
MOST_LEARNT_FROM = 20_000
"""The regression is fitted on at most so many rows before the block."""
RELEARN = 1.5
"""It is fitted again when the log has grown by this factor."""
MOST_GROUPS = 30
ORDER_SHOWN = {
    (): "nothing in the log shows it",
    ("round",): "its round numbers ascend",
    ("time",): "its times never go back",
    ("round", "time"): "its round numbers ascend and its times never go back",
}
"""What a log shows of its order, by the columns it has."""
ASSUMPTIONS = (
    "the rows stand in the order in which the decisions were drawn ({order})",
    "the people of the log arrived independently from the population that the candidate will meet",
    "each was accepted by a coin of its own with the recorded probability, which depends on the "
    "person and on earlier rows alone",
    "the candidate was chosen without looking at these rows",
    "the label of a person does not depend on the decisions about others; {open:,.0f} accepted "
    "people without a label count as the worst case",
    "whether the group is known does not depend on the decision",
)
"""What an evaluation rests on; the last one where groups are compared."""
GROUPS_FOUND = (
    "the groups are those of this log; whoever looks again at a longer log names them beforehand, "
    "because each further group shares delta anew"
)
"""Where nobody named the groups."""
FPR = FalsePositiveRate()


# what an evaluation says


@dataclass(frozen=True)
class Estimate:
    """A doubly robust estimate and the interval that contains the truth.

    Parameters
    ----------
    value : float or None
        None where nothing can be estimated.
    lower, upper : float
        The ends of the interval.

    Examples
    --------
    >>> Estimate(0.031, 0.002, 0.06).describe("+")
    '+0.031 [+0.002, +0.060]'
    """

    value: float | None
    lower: float
    upper: float

    @classmethod
    def of(cls, value: float, lower: float, upper: float) -> "Estimate":
        """The estimate, brought inside its interval, where the truth is; NaN is no estimate."""
        inside = None if np.isnan(value) else float(np.clip(value, lower, upper))
        return cls(inside, float(lower), float(upper))

    def describe(self, sign: str = "") -> str:
        """The estimate and its interval in one line; "+" as `sign` shows the sign always."""
        shown = "unknown" if self.value is None else f"{self.value:{sign}z.3f}"
        return f"{shown} [{self.lower:{sign}z.3f}, {self.upper:{sign}z.3f}]"


@dataclass(frozen=True)
class GroupRate:
    """One group's rate under the candidate: `labelled` people of its denominator, worth `effective`
    equal ones.
    """

    rate: str
    group: str
    estimate: Estimate
    labelled: float
    effective: float


@dataclass(frozen=True)
class Gap:
    """rate[group] - rate[reference] under the candidate."""

    rate: str
    group: str
    reference: str
    estimate: Estimate

    @property
    def name(self) -> str:
        """ "FPR south minus north"."""
        return f"{self.rate} {self.group} minus {self.reference}"

    @property
    def reach(self) -> float:
        """The largest absolute value in its interval."""
        return max(self.estimate.upper, -self.estimate.lower)

    def stands(self, limit: float) -> Verdict:
        """Where its interval lies: within the limit, wholly above it, or neither."""
        return self.finding(limit).status

    def finding(self, limit: float) -> Finding:
        """The gap beside its limit."""
        return Finding(
            f"gap {self.name}", *size_of(self.estimate.lower, self.estimate.upper), limit
        )


@dataclass(frozen=True, eq=False, repr=False)
class EstimateCourse(Brief):
    """Estimates and intervals along the log: rows (T,); gaps (T, gaps, 3) and loss (T, 3) as
    estimate, lower end, upper end.
    """

    rows: FloatArray
    gaps: FloatArray
    loss: FloatArray


@dataclass(frozen=True)
class Support:
    """The log's knowledge of the candidate.

    least_acceptance: the smallest p; thin_share: sum pi 1[p < THIN] / sum pi, the part of the
    candidate's accepts that the log hardly saw; effective_accepts: (sum w)^2 / sum w^2 with w = A
    pi / p.
    """

    least_acceptance: float
    thin_share: float
    effective_accepts: float

    @classmethod
    def of(cls, log: DecisionLog, policy: FloatArray) -> "Support":
        """How well the log covers a candidate with acceptance pi."""
        mass = log.count * policy
        thin = float(mass[log.acceptance < THIN].sum() / mass.sum()) if mass.sum() > 0 else 0.0
        weights = np.where(log.accept, policy / log.acceptance, 0.0)
        return cls(float(log.acceptance.min()), thin, effective(weights, log.count))

    def warnings(self) -> list[str]:
        """In words, where there is something to warn of."""
        return [
            f"{self.thin_share:.0%} of the people whom the candidate accepts were accepted with a "
            f"probability below {THIN:g} when the log was made: little is known about them"
        ] * (self.thin_share > MUCH)


def effective(weight: FloatArray, count: FloatArray) -> float:
    """How many equal people weighted ones are worth: (sum w)^2 / sum w^2."""
    squares = float(count @ weight**2)
    return float(count @ weight) ** 2 / squares if squares > 0 else 0.0


def heaviest(weight: FloatArray, count: FloatArray) -> float:
    """The largest share that one person has in the sum of weights."""
    total = float(count @ weight)
    return float(weight.max(initial=0.0)) / total if total > 0 else 0.0


def denominator_warnings(
    name: str, group: str, weight: FloatArray, count: FloatArray, used: BoolArray
) -> list[str]:
    """For one rate and group: nobody, few effective people, or one person who decides."""
    here = np.where(used, weight, 0.0)
    people = effective(here, count)
    most = heaviest(here, count)
    if people == 0:
        return [f"group {group} has no labelled {name}: its rate is unknown, not zero"]
    if most > MUCH:
        return [
            f"one person carries {most:.0%} of the weight of the {name} of group {group}: "
            "its rate hangs on that person"
        ]
    worth = counted(round(people))
    return [f"the {name} of group {group} are worth {worth} only"] * (people < FEW)


@dataclass(frozen=True, eq=False)
class Evaluation(Told):
    """What a log says about a candidate policy, with probability 1 - delta over all rows and
    figures at once.

    Parameters
    ----------
    candidate : str
        The policy that was asked about.
    limit : float
        The limit of the gap.
    loss : Estimate
        Its cost per person.
    rates : tuple of GroupRate
        Each rate of each group.
    gaps : tuple of Gap
        Each rate's difference for each pair of groups.
    contradiction : bool
        Whether no value is consistent with the log.
    groups : tuple of str
        The groups that are compared: what is said of gaps is said of these.
    people, accepted, open, outside : float
        Decisions in all, accepted ones, accepted ones without an outcome, people of no group that
        is compared.
    outside_groups : mapping of str to float
        The people of each group that is not compared; the rest of `outside` has no known group.
    support : Support
        How well the log knows the people whom the candidate would accept.
    ledger : DeltaLedger
        How the failure probability was spent.
    assumptions, warnings : tuple of str
        What it rests on, and what to beware of.
    course : EstimateCourse
        Estimates and intervals along the log.

    Examples
    --------
    >>> from evenhand.evaluation import Candidate, DecisionLog, evaluate
    >>> log = DecisionLog.of([[1.0]] * 200, [True, False] * 100, [0.5] * 200, [1, 0] * 100)
    >>> result = evaluate(log, Candidate.read("accept-all"))
    >>> result.verdict, result.people, result.loss.value
    ('no groups', 200.0, 0.0)
    """

    candidate: str
    limit: float
    loss: Estimate
    rates: tuple[GroupRate, ...]
    gaps: tuple[Gap, ...]
    contradiction: bool
    groups: tuple[str, ...]
    people: float
    accepted: float
    open: float
    outside: float
    outside_groups: Mapping[str, float]
    support: Support
    ledger: DeltaLedger
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    course: EstimateCourse

    ALSO: ClassVar = ("verdict", "sentence", "delta")

    def __repr__(self) -> str:
        return f"<Evaluation of {self.candidate}: {self.sentence}>"

    @property
    def delta(self) -> float:
        """delta, for everything that is said."""
        return self.ledger.delta

    @property
    def verdict(self) -> Verdict:
        """within: every gap; above: at least one gap; contradiction: no value fits the log, an
        assumption is broken.
        """
        if self.contradiction:
            return "contradiction"
        return judge(self.findings()) if self.gaps else "no groups"

    def findings(
        self, limit: float | None = None, least_ratio: float | None = None
    ) -> tuple[Finding, ...]:
        """Every gap beside its limit: what `evenhand.evaluation.gates` judges.

        Parameters
        ----------
        limit : float, optional
            The largest gap that is allowed; that of the evaluation by default.
        least_ratio : float, optional
            Ratios are not evaluated.

        Returns
        -------
        tuple of Finding
            One for each gap; a contradiction shows nothing, whatever the intervals say.

        Raises
        ------
        InvalidInput
            If a ratio is asked for.
        """
        if least_ratio is not None:
            raise InvalidInput(
                "an evaluation has no ratios.", hint="limit the gap.", argument="least_ratio"
            )
        allowed = self.limit if limit is None else limit
        if self.contradiction:
            return (Finding("gaps of a log that contradicts itself", 0.0, 1.0, allowed),)
        return tuple(gap.finding(allowed) for gap in self.gaps)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        sure = f"with probability {1 - self.delta:.6g} under the assumptions below"
        match self.verdict:
            case "within":
                rates = " and ".join(dict.fromkeys(gap.rate for gap in self.gaps))
                return (
                    f"Certified {sure}: the candidate's gap in {rates} between {self._covered} is "
                    f"at most {self.limit:g}.{self._not_covered}"
                )
            case "above":
                shown = "; ".join(
                    f"{gap.name} lies between {gap.estimate.lower:+z.3f} and "
                    f"{gap.estimate.upper:+z.3f}"
                    for gap in self.gaps
                    if gap.stands(self.limit) == "above"
                )
                return f"Above the limit of {self.limit:g}, shown {sure}: {shown}."
            case "not shown":
                worst = max(self.gaps, key=lambda gap: gap.reach)
                found = (
                    f"Not shown: the log does not decide whether every gap is within "
                    f"{self.limit:g}; {worst.name} may reach {worst.reach:.3f}."
                )
                value = worst.estimate.value
                if value is None or abs(value) >= self.limit:
                    return found
                more = ((worst.reach - abs(value)) / (self.limit - abs(value))) ** 2
                return (
                    f"{found} If the estimate is right, a log of roughly "
                    f"{self.people * more:,.0f} people would show it."
                )
            case "contradiction":
                return CONTRADICTION
            case "no groups":
                return (
                    f"The cost holds {sure}; nothing is said about gaps, "
                    "for which two groups are needed."
                )

    @property
    def _covered(self) -> str:
        """The groups, in words."""
        if len(self.groups) == 2:
            return f"the groups {self.groups[0]} and {self.groups[1]}"
        return f"any two of the groups {', '.join(self.groups)}"

    @property
    def _not_covered(self) -> str:
        """Of whom nothing is said, as a sentence; empty if of nobody."""
        parts = [f"{count:,.0f} of group {group}" for group, count in self.outside_groups.items()]
        unknown = self.outside - sum(self.outside_groups.values())
        if unknown > 0:
            parts.append(f"{unknown:,.0f} whose group is not known")
        return f" Not covered are {' and '.join(parts)}." if parts else ""

    def result(self) -> Result:
        """What is said of the evaluation.

        Returns
        -------
        Result
            How the gaps stand to the limit; the tables "gaps", "rates" and "cost".
        """
        return evaluated(self)


# how it is found


@dataclass(frozen=True, eq=False)
class Candidate:
    """The policy that is asked about.

    Parameters
    ----------
    policy : Policy
        The policy.
    columns : tuple of str, optional
        The features it expects, by name; by default all features of the log in their order.
    name : str
        What it is called.
    file : PolicyFile, optional
        Where it is from, if that says how it reads a table.

    Examples
    --------
    >>> Candidate.read("accept-all").spread
    (1.0, 0.0)
    """

    policy: Policy
    columns: tuple[str, ...] | None = None
    name: str = "the candidate"
    file: PolicyFile | None = None

    @classmethod
    def read(cls, where: str) -> "Candidate":
        """Read a policy.

        Parameters
        ----------
        where : str
            "accept-all", "reject-all", or a file: a policy as JSON, alone or as `evenhand solve
            --out` writes it.

        Returns
        -------
        Candidate
            The policy with the columns it expects.

        Raises
        ------
        InvalidInput
            If there is no such file, or if it holds no policy.
        """
        if where in CONSTANTS:
            return cls(Mixture((CONSTANTS[where],), (1.0,)), None, where)
        path = Path(where)
        if not path.is_file():
            raise InvalidInput(
                f"the policy {where!r} is neither accept-all nor reject-all nor a file.",
                hint=HINT,
            )
        document = read_document(path)
        if "policy" not in document:
            return cls(policy_from_json(document), None, path.name)
        columns = tuple(document["columns"]) if "columns" in document else None
        if columns is not None and "schema" in document:
            file = PolicyFile.read(path)
            return cls(file.policy, columns, path.name, file)
        return cls(policy_from_json(document["policy"]), columns, path.name)

    @property
    def is_constant(self) -> bool:
        """Whether it decides alike about all, and so needs no feature."""
        return self.spread[1] == 0.0

    @property
    def spread(self) -> tuple[float, float]:
        """(base, scale): pi = base + scale pi', where base is the weight of accept-all and pi' has
        no constants; scale 0: no rule is left.

        A constant accepts all groups alike, so the gap of pi is scale times that of pi', and the
        bound need not pay for it.
        """
        if type(self.policy) is not Mixture:
            return 0.0, 1.0
        base, never = (self.policy.weight_of(constant) for constant in (ACCEPT_ALL, REJECT_ALL))
        parts = zip(self.policy.hypotheses, self.policy.weights, strict=True)
        rules = [h for h, w in parts if h not in (ACCEPT_ALL, REJECT_ALL) and w > 0]
        return (base, max(1.0 - base - never, 0.0)) if rules else (base, 0.0)

    def acceptance(self, log: DecisionLog) -> FloatArray:
        """Ask the policy about every row of a log.

        Parameters
        ----------
        log : DecisionLog
            The people.

        Returns
        -------
        array of float
            pi(x), the probability with which it would accept each of them.

        Raises
        ------
        MissingColumn
            If the log lacks a feature by which it decides.
        InvalidInput
            If it decides by the group, and the log lacks it for somebody.
        """
        features = log.features
        if self.columns is not None and self.columns != log.names and not self.is_constant:
            absent = [name for name in self.columns if name not in log.names]
            if absent:
                raise MissingColumn(
                    f"{self.name} decides by {', '.join(map(repr, absent))}, which {log.source} "
                    f"does not hold; its features are: {', '.join(log.names)}.",
                    hint="log what the policy looks at, under the same names; of a file with "
                    "texts, read_log(path, candidate=...) makes the numbers that it sees.",
                )
            places = [log.names.index(name) for name in self.columns]
            features = np.ascontiguousarray(features[:, places])
        if getattr(self.policy, "group_use", "certify_only") != "decide":
            return np.asarray(self.policy.acceptance(features), dtype=np.float64)
        groups = log.group.tolist()
        unknown = groups.count(None)
        if unknown:
            raise InvalidInput(
                f"{log.source}: row {groups.index(None) + 1} has no group ({unknown:,} such rows), "
                "but the candidate decides by it.",
                hint="give the groups, or evaluate a policy that does not look at them.",
            )
        return self.policy.acceptance(features, np.array(groups))


def evaluate(
    log: DecisionLog,
    policy: Candidate | Policy,
    *,
    rates: Sequence[Rate] = (FPR,),
    limit: float = 0.05,
    delta: float = 0.05,
    prices: Prices | None = None,
    groups: Sequence[str] | None = None,
) -> Evaluation:
    """Estimate from a log what another policy would cost, and how far its rates would be apart.

    Parameters
    ----------
    log : DecisionLog
        Decisions with their propensities. The policy must not have been chosen with the help of
        these rows (`log.without_first` leaves out those that were used).
    policy : Candidate or Policy
        The policy that is asked about.
    rates : sequence of Rate
        The rates whose gaps are evaluated.
    limit : float
        The limit of the gap.
    delta : float
        How likely any interval may be wrong, at any row; shared by the loss and all gaps.
    prices : Prices, optional
        What errors cost; two numbers.
    groups : sequence of str, optional
        The groups to compare, others are outside; by default all that occur. Name them where the
        log will grow and be evaluated again. With one group or none, only the loss is evaluated.

    Returns
    -------
    Evaluation
        Loss, rates and gaps on the population that the log is from, with intervals that hold at
        every row at once.

    Raises
    ------
    InvalidInput
        If somebody had no chance of being accepted, if the propensities do not fit the decisions,
        if round numbers or times show another order of the rows, or if a rate cannot be certified.

    Examples
    --------
    >>> log = DecisionLog.of(
    ...     [[1.0]] * 400, [True, False] * 200, [0.5] * 400, [1, 0] * 200, group=["a", "b"] * 200
    ... )
    >>> evaluate(log, Candidate.read("accept-all"), limit=0.1).verdict
    'within'
    """
    require_limit(limit)
    require_delta(delta)
    require_certifiable(rates)
    log.require_order()
    log.require_support()
    log.require_honest()
    compared = log.groups if groups is None else tuple(dict.fromkeys(str(g) for g in groups))
    strange = [group for group in compared if group not in log.groups]
    if strange:
        raise InvalidInput(
            f"group {strange[0]!r} does not occur in {log.source}; "
            f"its groups are {', '.join(log.groups) or 'not given'}."
        )
    if len(compared) > MOST_GROUPS:
        raise InvalidInput(
            f"{log.source} has {len(compared)} groups; at most {MOST_GROUPS} are compared.",
            hint="name those to compare.",
        )
    return LogEvaluator(
        log,
        policy if isinstance(policy, Candidate) else Candidate(policy),
        tuple(dict.fromkeys(rates)) if len(compared) > 1 else (),
        compared,
        prices or Prices(),
        delta,
        named=groups is not None,
    ).evaluation(limit)


def blocks(rows: int) -> Iterator[slice]:
    """0:100, then each block a quarter of what came before, at least 100 rows. Where a block ends
    depends on its first row alone; only the log may end earlier.

    >>> list(blocks(250))
    [slice(0, 100, None), slice(100, 200, None), slice(200, 250, None)]
    """
    start = 0
    while start < rows:
        end = start + max(FIRST_BLOCK, int((GROWTH - 1) * start))
        yield slice(start, min(end, rows))
        start = end


@dataclass(frozen=True)
class Denominator:
    """Who is seen of one group in the denominator of one rate: the first row that shows somebody
    (infinity if there is none), how many people there are, how many equal ones they are worth, and
    what to beware of.
    """

    first: float
    labelled: float
    effective: float
    warnings: list[str]


@dataclass(frozen=True, eq=False)
class LogEvaluator:
    """One evaluation of a log whose propensities were checked before."""

    log: DecisionLog
    candidate: Candidate
    rates: tuple[Rate, ...]
    groups: tuple[str, ...]
    prices: Prices
    delta: float
    named: bool
    """Whether the groups were named, and not taken from the log."""

    @cached_property
    def ledger(self) -> DeltaLedger:
        """How delta is spent: a part on the loss, the rest on the gaps."""
        ledger = DeltaLedger(self.delta)
        delta = self.delta
        if not self.rates:
            return ledger.book("betting on the loss", delta, at=0)
        names = " and ".join(rate.symbol for rate in self.rates)
        first = ledger.book("betting on the loss", LOSS_PART * delta, at=0)
        return first.book(f"betting cell by cell on the gaps of {names}", first.left, at=0)

    @cached_property
    def gap_bound(self) -> BettingBound:
        """The bound on the gaps of one policy."""
        return BettingBound(self.groups, self.rates, 1, self.ledger.entries[1].share)

    @cached_property
    def code(self) -> IntArray:
        """(n,): the place of each row's group among those that are compared, -1 outside."""
        place = {group: code for code, group in enumerate(self.groups)}
        return np.array([place.get(value, -1) for value in self.log.group.tolist()], dtype=np.int64)

    def evaluation(self, limit: float) -> Evaluation:
        """The whole evaluation."""
        log = self.log
        counted = self.log.count
        with one_blas_thread():
            pi = self.candidate.acceptance(log)
            seen = [
                [self.denominator(rate, j) for j in range(len(self.groups))] for rate in self.rates
            ]
            course, gap, contradiction = self.course(pi, seen)
            support = Support.of(log, pi)
            warnings = [text for row in seen for cell in row for text in cell.warnings]
            open = float(counted @ log.open)
            outside = float(counted @ (self.code < 0)) if self.rates else 0.0
            names = [
                (rate.symbol, self.groups[j], self.groups[i])
                for rate in self.rates
                for j, i in self.gap_bound.pairs
            ]
            last = zip(names, course.gaps[-1].tolist(), strict=True)
            return Evaluation(
                candidate=self.candidate.name,
                limit=limit,
                loss=Estimate.of(*course.loss[-1].tolist()),
                rates=() if gap is None else self.group_rates(gap, seen),
                gaps=tuple(Gap(*name, Estimate.of(*figures)) for name, figures in last),
                contradiction=contradiction,
                groups=self.groups if self.rates else (),
                people=log.people,
                accepted=float(counted @ log.accept),
                open=open,
                outside=outside,
                outside_groups=self.outside_groups(),
                support=support,
                ledger=self.ledger,
                assumptions=self.assumptions(open),
                warnings=(*log.notes, *support.warnings(), *warnings),
                course=course,
            )

    def assumptions(self, open: float) -> tuple[str, ...]:
        """What the evaluation rests on, in words."""
        assumed = list(ASSUMPTIONS if self.rates else ASSUMPTIONS[:-1])
        if self.rates and not self.named:
            assumed.append(GROUPS_FOUND)
        order = ORDER_SHOWN[self.log.ordered_by]
        if (self.log.count != 1).any():
            order += "; the decisions of a row with a count followed one another"
        return tuple(text.format(open=open, order=order) for text in assumed)

    def outside_groups(self) -> dict[str, float]:
        """The people of each group that is not compared."""
        if not self.rates:
            return {}
        others = [group for group in self.log.groups if group not in self.groups]
        return {group: float(self.log.count @ (self.log.group == group)) for group in others}

    def denominator(self, rate: Rate, j: int) -> Denominator:
        log = self.log
        used = self.code == j
        if rate.in_denominator(np.array([-1, 1])).all():  # a rate of all applicants needs no label
            weight = np.ones(len(log))
        else:
            used = used & (log.label != 0) & rate.in_denominator(log.label)
            weight = np.where(log.accept, 1.0 / log.acceptance, 0.0)
        name = rate.denominator_name
        group = self.groups[j]
        silent = self.candidate.spread[1] == 0  # constants are even, whoever is seen
        return Denominator(
            float(np.argmax(used)) if used.any() else np.inf,
            float(log.count @ used),
            effective(np.where(used, weight, 0.0), log.count),
            [] if silent else denominator_warnings(name, group, weight, log.count, used),
        )

    def course(
        self, pi: FloatArray, seen: list[list[Denominator]]
    ) -> tuple[EstimateCourse, LoggedGaps | None, bool]:
        """The pass over the blocks: estimates and intervals after each, the process of the gaps,
        and whether a process contradicted itself.
        """
        log = self.log
        base, scale = self.candidate.spread
        rule = np.clip((pi - base) / scale, 0.0, 1.0) if scale > 0 else pi
        bound = LossBound(self.prices, self.ledger.entries[0].share)
        loss = bound.start()
        gap = LoggedGaps.start(self.gap_bound) if self.rates else None
        # what the regression sees: the features, and one 0/1 column per group
        shown = [(self.code == j).astype(np.float64) for j in range(len(self.groups))]
        context = np.column_stack([log.features, *shown])
        known = log.label != 0
        labelled = float(np.argmax(known)) if known.any() else np.inf
        rows: list[float] = []
        gaps: list[FloatArray] = []
        losses: list[list[float]] = []
        regression = fit_outcomes(None)
        learnt_from = 0
        for at in blocks(len(log)):
            if at.start > RELEARN * learnt_from:
                regression = self.regression(context, at.start)
                learnt_from = at.start
            m = regression.negative_probability(context[at])
            if not loss.contradiction:
                loss = bound.update(loss, LossRows.of(log, at, pi, m))
            if gap is not None:
                gap = gap.step(cohort_of(log, at, rule[at], self.code, m)) if scale > 0 else gap
                gaps.append(self.gap_figures(gap, at.stop, seen))
            unit = bound.unit
            whole = loss.contradiction  # then nothing is known of the loss
            lower, upper = (0.0, 1.0) if whole else (loss.lower, loss.upper)
            estimate = loss.estimate if not whole and labelled < at.stop else np.nan
            inside = np.clip(unit * estimate, unit * lower, unit * upper)
            rows.append(float(at.stop))
            losses.append([float(inside), unit * lower, unit * upper])
        course = EstimateCourse(
            np.array(rows), np.array(gaps).reshape(len(rows), -1, 3), np.array(losses)
        )
        broken = gap is not None and bool(gap.state.contradiction[0])
        return course, gap, loss.contradiction or broken

    def regression(self, context: FloatArray, rows: int) -> OutcomeRegression:
        """m from the rows before `rows` alone; accepted people without a label are left out."""
        log = self.log
        past: IntArray = np.arange(max(0, rows - MOST_LEARNT_FROM), rows)
        past = past[~log.open[past]]
        if not len(past):
            return fit_outcomes(None)
        count = log.count[past]
        label = log.label[past]
        rejected = np.where(log.accept[past], 0.0, count)
        positive, negative = (np.where(label == value, count, 0.0) for value in (1, -1))
        return fit_outcomes(
            RoundLog(context[past], None, log.acceptance[past], rejected, positive, negative)
        )

    def gap_figures(self, gap: LoggedGaps, rows: int, seen: list[list[Denominator]]) -> FloatArray:
        """(gaps, 3): estimate, lower end, upper end of every rate and pair after so many rows;
        before somebody of a denominator was seen, nothing is estimated.
        """
        scale = self.candidate.spread[1]
        pairs = self.gap_bound.pairs
        if scale == 0:
            return np.zeros((len(self.rates) * len(pairs), 3))
        intervals = self.gap_bound.intervals(gap.state)
        sign = np.array([[rate.sign] for rate in self.rates])
        first = np.array([[cell.first for cell in row] for row in seen])
        estimates = np.where(first < rows, gap.estimates, np.nan)
        later, earlier = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
        values = sign * (estimates[:, later] - estimates[:, earlier])
        ends = (intervals.lower[0], intervals.upper[0])
        return scale * np.stack([values, *ends], axis=-1).reshape(-1, 3)

    def group_rates(self, gap: LoggedGaps, seen: list[list[Denominator]]) -> tuple[GroupRate, ...]:
        """The candidate's rates: constants shift those of its rules, offset + scale rate."""
        intervals = self.gap_bound.intervals(gap.state)
        estimates = gap.estimates
        base, scale = self.candidate.spread
        rates = []
        for r, rate in enumerate(self.rates):
            offset = base if rate.sign > 0 else 1.0 - base - scale
            for j, group in enumerate(self.groups):
                cell = seen[r][j]
                known = float(estimates[r, j]) if cell.first < np.inf else np.nan
                value = known if rate.sign > 0 else 1.0 - known
                estimate = Estimate.of(
                    offset if scale == 0 else offset + scale * value,
                    offset + scale * intervals.rate_lower[0, r, j],
                    offset + scale * intervals.rate_upper[0, r, j],
                )
                rates.append(GroupRate(rate.symbol, group, estimate, cell.labelled, cell.effective))
        return tuple(rates)

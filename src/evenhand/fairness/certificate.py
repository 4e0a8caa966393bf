"""The certificate: what is claimed about the deployed policy, with which evidence, under which
assumptions, until when.

It is a record, not a computation: bounds and ledger fill it, people and auditors read it. A
certificate that says "certified" while an interval exceeds the limit, or with more than delta
spent, cannot be constructed.
"""

import json
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, Self

from evenhand.canonical import canonical, canonical_digest
from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.fairness.acceptance import Acceptance
from evenhand.fairness.certified import certified
from evenhand.findings import ROUNDING, Finding, Status, size_of, stands
from evenhand.media import Told
from evenhand.result import Result
from evenhand.shares import require_delta, require_promise
from evenhand.shown import Brief

FORMAT = 1
"""The number of the JSON format."""

PROTOCOL_VERSION = 1
"""The version of the protocol by which rounds become cohorts, and cohorts a certificate
(docs/guarantee/proof.md). Stored documents carry it; one with another version raises an error."""


Scalar = str | int | float | bool
"""A group's label in JSON; other kinds are written as their text."""


def plain_label(group: object) -> Scalar:
    """A group label as JSON can hold it: numpy scalars become Python's, others their text."""
    value = group.item() if hasattr(group, "item") else group
    return value if isinstance(value, str | int | float | bool) else str(value)


def known_label(group: object) -> Scalar | None:
    """The same, and None for the unknown group."""
    return None if group is None else plain_label(group)


@dataclass(frozen=True)
class GapInterval:
    """The gap of one rate between two groups, rate[group] - rate[reference].

    Parameters
    ----------
    rate : str
        The symbol of the rate, "FPR".
    group, reference : str, int, float or bool
        The two groups.
    low, high : float
        The gap lies between them.

    Examples
    --------
    >>> gap = GapInterval("FPR", "b", "a", -0.01, 0.04)
    >>> gap.within(0.05), gap.within(0.03)
    (True, False)
    """

    rate: str
    group: Scalar
    reference: Scalar
    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", plain_label(self.group))
        object.__setattr__(self, "reference", plain_label(self.reference))

    def finding(self, limit: float) -> Finding:
        """The gap beside its limit.

        Parameters
        ----------
        limit : float
            The largest gap that is allowed.

        Returns
        -------
        Finding
            What a gate, a page and a document judge.
        """
        what = f"gap {self.rate} {self.group} minus {self.reference}"
        return Finding(what, *size_of(self.low, self.high), limit)

    def stands(self, limit: float) -> Status:
        """How the gap stands to its limit.

        Parameters
        ----------
        limit : float
            The largest gap that is allowed.

        Returns
        -------
        {"within", "above", "not shown"}
            The status of its finding.
        """
        return self.finding(limit).status

    def within(self, limit: float) -> bool:
        """Whether the interval is not empty and says |gap| <= limit.

        Parameters
        ----------
        limit : float
            The largest gap that is allowed.

        Returns
        -------
        bool
            True if the interval supports the limit.
        """
        return self.stands(limit) == "within"

    def describe(self) -> str:
        """The interval in one line.

        Returns
        -------
        str
            Who is compared, and between which values the gap lies.
        """
        what = f"{self.rate} of {self.group} minus {self.reference}"
        if self.low > self.high + ROUNDING:
            return f"{what}: no value is consistent with the data"
        return f"{what}: between {self.low:+.4f} and {self.high:+.4f}"


@dataclass(frozen=True)
class CellCount:
    """How many people of a group with a label stand behind the certificate.

    Parameters
    ----------
    group : str, int, float or bool
        The group.
    label : int
        -1 or +1.
    people : int
        How many.

    Examples
    --------
    >>> CellCount("a", -1, 1200).people
    1200
    """

    group: Scalar
    label: int
    people: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", plain_label(self.group))
        if self.people < 0 or self.label not in (-1, 1):
            raise InvalidInput(
                f"{self.people} people with label {self.label}: counts are >= 0, labels -1 and +1."
            )


@dataclass(frozen=True)
class DrawCount:
    """People of a group whom the draw had accepted or rejected.

    Parameters
    ----------
    group : str, int, float, bool or None
        The group; None if it is unknown, or forgotten.
    drawn_accept : bool
        What was drawn.
    people : int
        How many.

    Examples
    --------
    >>> DrawCount("a", True, 12).describe()
    '12 of group a drawn accept'
    """

    group: Scalar | None
    drawn_accept: bool
    people: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", known_label(self.group))

    def describe(self) -> str:
        """The count in words.

        Returns
        -------
        str
            How many of which group were drawn accept or reject.
        """
        who = "of unknown group" if self.group is None else f"of group {self.group}"
        return f"{self.people:,} {who} drawn {'accept' if self.drawn_accept else 'reject'}"


@dataclass(frozen=True)
class OutsideCount:
    """People of a group that the certificate does not cover.

    Parameters
    ----------
    group : str, int, float, bool or None
        The group; None if it is unknown.
    people : int
        How many.

    Examples
    --------
    >>> OutsideCount(None, 3).people
    3
    """

    group: Scalar | None
    people: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", known_label(self.group))


@dataclass(frozen=True)
class CoveredFrom:
    """The first round from which a group is covered by the claim.

    Parameters
    ----------
    group : str, int, float or bool
        The group.
    round : int
        The round; 0 if it is covered over the whole run of the learner.

    Examples
    --------
    >>> CoveredFrom("c", 1350).describe()
    'c: from round 1,350'
    """

    group: Scalar
    round: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", plain_label(self.group))

    def describe(self) -> str:
        """The group and its round in words.

        Returns
        -------
        str
            From when on the group is covered.
        """
        when = "over the whole run" if self.round == 0 else f"from round {self.round:,}"
        return f"{self.group}: {when}"


@dataclass(frozen=True)
class Suspension:
    """An assumption was found to be broken: no earlier claim of the learner stands.

    Parameters
    ----------
    round : int
        The first round that was decided after it.
    reasons : tuple of str
        What was found.
    resumed : int, optional
        The first round for which learned rules were certified again; None as long as constants
        alone decide.

    Examples
    --------
    >>> Suspension(20_400, ("group mix",), 21_650).describe()
    'suspended at round 20,400 (group mix); constants alone decided until round 21,650'
    >>> Suspension(20_400, ("group mix",)).describe()
    'suspended at round 20,400 (group mix); constants alone have decided since'
    """

    round: int
    reasons: tuple[str, ...]
    resumed: int | None = None

    def describe(self) -> str:
        """The suspension in words.

        Returns
        -------
        str
            When it was, why, and until when constants alone decided.
        """
        meanwhile = "constants alone have decided since"
        if self.resumed is not None:
            meanwhile = f"constants alone decided until round {self.resumed:,}"
        return f"suspended at round {self.round:,} ({'; '.join(self.reasons)}); {meanwhile}"


@dataclass(frozen=True)
class RateCeiling:
    """A rate of all people that stays below a ceiling.

    Parameters
    ----------
    rate : str
        The symbol of the rate, "FPR"; "SR" is the share of accepted people.
    high : float
        The rate is at most this.
    ceiling : float
        What is allowed.

    Examples
    --------
    >>> RateCeiling("SR", 0.18, 0.2).describe()
    'SR of all people: at most 0.1800 (allowed 0.2)'
    """

    rate: str
    high: float
    ceiling: float

    def describe(self) -> str:
        """The ceiling in one line.

        Returns
        -------
        str
            The rate, its upper end, and what is allowed.
        """
        return f"{self.rate} of all people: at most {self.high:.4f} (allowed {self.ceiling:g})"


_TABLE_ASSUMPTIONS = (
    "the rows of the table are people drawn independently from one population, each person once "
    "(split by household first if households were drawn)",
    "the people for whom the claim is made come from the same population",
    "limit, rates, class and seed were fixed before anything was certified on the table: delta "
    "does not cover the best of several certificates",
)
SPLIT_TABLE_ASSUMPTIONS = (
    *_TABLE_ASSUMPTIONS,
    "the coin that split the table did not look at it",
)
"""The assumptions of a certificate for a policy that was fitted on a part of the table."""
GIVEN_POLICY_ASSUMPTIONS = (
    *_TABLE_ASSUMPTIONS,
    "the policy was chosen without the people of the table",
)
"""The assumptions of a certificate for a policy that was there before."""


COINS_FROM_SEED = "coins can be recomputed from the seed: for tests and simulations"
"""What the certificate of a learner that was given a seed assumes, beside all others."""


def standard_assumptions(
    *,
    maturity: str | None = None,
    drift_false_alarm: float | None = None,
    late_groups: bool = False,
    audit_budget: bool = False,
    quota: bool = False,
    since: int = 0,
) -> tuple[str, ...]:
    """The assumptions of every certificate, in words.

    Parameters
    ----------
    maturity : str, optional
        The window after which labels are complete.
    drift_false_alarm : float, optional
        The false-alarm probability of the drift tests, if the population is watched.
    late_groups : bool, default False
        Whether some groups became known after the draw.
    audit_budget, quota : bool, default False
        Whether there is an audit budget, which waits for labels, or a quota.
    since : int, default 0
        The round from which the population is the one that the claim is about: that of the last
        suspension.

    Returns
    -------
    tuple of str
        One sentence each.

    Examples
    --------
    >>> len(standard_assumptions()), len(standard_assumptions(late_groups=True))
    (5, 6)
    """
    watched = ""
    if drift_false_alarm is not None:
        watched = f" (watched; false alarm at most {drift_false_alarm:g} over the whole run"
        if maturity is None:
            watched += ", if the delays of labels, counted in people, are alike for all"
        watched += ")"
    unchanged = f" from round {since:,} on" if since else ""
    labels = "a label that had not come when its cohort closed counts as the worst case"
    if maturity is not None:
        labels = (
            f"labels are complete once their maturity window has closed (window: {maturity}); "
            "unresolved ones count as the worst case"
        )
    assumptions = [
        f"people arrive independently from one population that does not change{unchanged}{watched}",
        "the label of a person does not depend on the decisions about others",
        labels,
        "the recorded propensities are those with which decisions were drawn; the audit coin "
        "ignores the person",
        "people are erased without knowledge of coming coins",
    ]
    if late_groups:
        assumptions.append(
            "whether and when a person's group becomes known does not depend on the draw"
        )
    if audit_budget:
        assumptions.append(
            "when the label of a person comes does not depend on earlier people (the audit budget "
            "waits for labels)"
        )
    if quota:
        assumptions.append(
            "the gap is that of each policy; if a group tends to come late in a period, when the "
            "quota is used up, the certificate does not cover that"
        )
    return tuple(assumptions)


@dataclass(frozen=True, repr=False)
class Certificate(Told, Brief):
    """What is claimed about the deployed policy, with which evidence, under which assumptions.

    A certificate that says "certified" while an interval exceeds the limit, or with more than delta
    spent, cannot be constructed.

    Parameters
    ----------
    limit : float
        The gap that is not exceeded.
    delta : float
        The probability with which the claim may be wrong.
    spent : float
        How much of delta has been booked.
    bound : str
        The name of the confidence bound.
    policy : str
        The SHA-256 of the policy's JSON, in which models are referred to by their own hashes.
    window : tuple of int
        The first round of the evidence, and the first one after it.
    assumptions : tuple of str
        What the claim rests on, in words.
    counts : tuple of CellCount, optional
        The people behind it.
    gaps : tuple of GapInterval, optional
        The intervals of the gaps; none for a constant.
    bound_params : dict, optional
        The constants of the bound.
    valid_until : int, optional
        The last round for which it is valid.
    groups : tuple, optional
        The groups that the claim covers.
    covered : tuple of CoveredFrom, optional
        The first round from which each of them is covered; none of them before the last suspension.
    suspensions : tuple of Suspension, optional
        When and why the learner was suspended: nothing is claimed of the rounds before the last
        one.
    outside : tuple of OutsideCount, optional
        People outside the claim.
    overruled : tuple of DrawCount, optional
        Decisions that people changed after the draw: the claim is about the policy as drawn.
    late_groups : tuple of DrawCount, optional
        People whose group became known after the draw.
    erased : int, default 0
        People who were erased; each counts as the worst case.
    models : tuple of str, optional
        The SHA-256 of each fitted model in the policy.
    schema : str, optional
        The SHA-256 of the schema, if people come in frames.
    columns : str, optional
        The columns of the schema, in words.
    scope : "run" or "table"
        Whether the claim is about all policies of a learner's run, or about one policy that was
        certified on a table.
    ceilings : tuple of RateCeiling, optional
        Rates of all people that are kept below a ceiling.
    acceptance : Acceptance, optional
        Whom the policy accepts of the people who certified it, and what it saves there; of a table
        alone. For a learner the log of its decisions says it.
    accept_at_most, accept_at_least : float, optional
        The cap and the floor of the share of the population that is accepted.
    accepted : (float, float), optional
        Between which values the share lies that the policy of a learner accepts: with a cap or a
        floor by its evidence, without by the weights of accepting and rejecting all applicants.
    floor_suspended : str, optional
        Why the floor is not kept: what outranks it.
    status : "certified" or "suspended"
        Whether the claim stands.
    reason : str, optional
        Why it is suspended.

    Raises
    ------
    InvalidInput
        If the numbers do not support the claim.

    Notes
    -----
    The claim: with probability at least 1 - delta over the learner's whole run,
    |gap| <= limit for every policy it deploys, and, where there is a cap, each of them accepts at
    most that share of the population. After a suspension it is about the policies that are deployed
    from that round on: an assumption was false before, and nobody knows since when.

    Examples
    --------
    >>> certificate = Certificate(
    ...     limit=0.05, delta=0.05, spent=0.045, bound="betting cell by cell",
    ...     policy="0" * 64, window=(0, 9999), assumptions=standard_assumptions(),
    ...     gaps=(GapInterval("FPR", "b", "a", -0.01, 0.04),), groups=("a", "b"),
    ... )
    >>> Certificate.from_json(certificate.to_json()) == certificate
    True
    >>> certificate.suspend("the population has changed").status
    'suspended'
    >>> certificate.to_frame()[["rate", "gap_low", "gap_high", "status"]].values.tolist()
    [['FPR', -0.01, 0.04, 'within']]
    """

    limit: float
    delta: float
    spent: float
    bound: str
    policy: str
    window: tuple[int, int]
    assumptions: tuple[str, ...]
    counts: tuple[CellCount, ...] = ()
    gaps: tuple[GapInterval, ...] = ()
    bound_params: Json = field(default_factory=dict)
    valid_until: int | None = None
    groups: tuple[Scalar, ...] = ()
    covered: tuple[CoveredFrom, ...] = ()
    suspensions: tuple[Suspension, ...] = ()
    outside: tuple[OutsideCount, ...] = ()
    overruled: tuple[DrawCount, ...] = ()
    late_groups: tuple[DrawCount, ...] = ()
    erased: int = 0
    models: tuple[str, ...] = field(default=(), repr=False)
    schema: str | None = None
    columns: str = field(default="", repr=False)
    scope: Literal["run", "table"] = "run"
    ceilings: tuple[RateCeiling, ...] = field(default=(), repr=False)
    acceptance: Acceptance | None = field(default=None, repr=False)
    accept_at_most: float | None = field(default=None, repr=False)
    accept_at_least: float | None = field(default=None, repr=False)
    accepted: tuple[float, float] | None = field(default=None, repr=False)
    floor_suspended: str | None = field(default=None, repr=False)
    status: Literal["certified", "suspended"] = "certified"
    reason: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", (int(self.window[0]), int(self.window[1])))
        object.__setattr__(self, "groups", tuple(plain_label(group) for group in self.groups))
        object.__setattr__(self, "bound_params", json.loads(canonical(dict(self.bound_params))))
        delta = self.delta
        require_promise(self.limit)
        require_delta(delta)
        if not 0 <= self.spent <= delta + ROUNDING:
            raise InvalidInput(
                f"{self.spent} is spent of delta = {delta}; it cannot be more.",
                hint="take .spent of the delta ledger.",
            )
        if self.window[0] > self.window[1] + 1:
            raise InvalidInput(f"the data window {self.window} ends before it begins.")
        if self.status == "suspended" and not self.reason:
            raise InvalidInput("a suspended certificate needs its reason.")
        before = [one for one in self.covered if one.round < self.since]
        if before:
            raise InvalidInput(
                f"{before[0].describe()}, and the learner was suspended at round {self.since:,}: "
                "no group is covered before that.",
                argument="covered",
            )
        for gap in self.gaps if self.status == "certified" else ():
            if not gap.within(self.limit):
                raise InvalidInput(
                    f"{gap.describe()}; that does not support the limit {self.limit}.",
                    hint="deploy a policy that is certified, or suspend the certificate with its "
                    "reason.",
                )
        for one in self.ceilings if self.status == "certified" else ():
            if stands(0.0, one.high, one.ceiling) != "within":
                raise InvalidInput(f"{one.describe()}; that does not support the ceiling.")

        self._require_shares()

    def _require_shares(self) -> None:
        most = 1.0 if self.accept_at_most is None else self.accept_at_most
        least = 0.0 if self.accept_at_least is None else self.accept_at_least
        if not (0 < most <= 1 and 0 <= least <= most):
            raise InvalidInput(
                f"{least} to {most} of the population may be accepted; a cap lies in (0, 1], and a "
                "floor at or below it."
            )
        if self.accepted is None:
            if self.accept_at_most is not None or self.accept_at_least is not None:
                raise InvalidInput(
                    "the certificate has a cap or a floor, and does not say which share is "
                    "accepted."
                )
            return
        low, high = self.accepted
        object.__setattr__(self, "accepted", (float(low), float(high)))
        if self.status != "certified":
            return
        below = low < least - ROUNDING and self.floor_suspended is None
        if below or high > most + ROUNDING or low > high + ROUNDING:
            raise InvalidInput(
                f"the policy accepts between {low:.6g} and {high:.6g} of the population; that does "
                f"not support {least:.6g} to {most:.6g}.",
                hint="deploy a policy that is certified, or suspend the certificate with its "
                "reason.",
            )

    @property
    def covered_from(self) -> dict[Scalar, int]:
        """The first round from which each group is covered; 0: over the whole run."""
        return {one.group: one.round for one in self.covered}

    @property
    def since(self) -> int:
        """The first round that the claim is about: that of the last suspension; 0: all rounds."""
        return self.suspensions[-1].round if self.suspensions else 0

    @property
    def claim(self) -> str:
        """The guarantee in words: first of the groups that are covered over the whole run (after a
        suspension: since then), then of those that joined later.
        """
        rates = " and ".join(dict.fromkeys(gap.rate for gap in self.gaps)) or "constrained rate"
        if self.scope == "table":
            named = ", ".join(map(str, self.groups))
            claim = (
                f"Certified with probability at least {1 - self.delta:.6g}, under the assumptions "
                f"below: for this policy and the population that the table was drawn from, the gap "
                f"in {rates} between any two of the groups {named} is at most {self.limit:.6g}"
            )
            kept = [f"{one.rate} of all people at most {one.ceiling:g}" for one in self.ceilings]
            return f"{'; '.join([claim, *kept])}."
        whole = "over the whole run of the learner"
        policies = "every policy it deploys"
        if self.since:
            whole = f"from round {self.since:,} on"
            policies += " from then on"
        later = [one for one in self.covered if one.round > self.since]
        joined = {one.group for one in later}
        named = ", ".join(str(group) for group in self.groups if group not in joined)
        between = "any two groups (a constant treats all people alike)"
        if named:
            between = f"any two of the groups {named}"
        sentences = [
            f"Certified with probability at least {1 - self.delta:.6g}, under the assumptions "
            f"below: {whole} the gap in {rates} between {between} is at most {self.limit:.6g} for "
            f"{policies} (manual overrides are not covered)."
        ]
        if self.since:
            why = "; ".join(self.suspensions[-1].reasons)
            sentences.append(
                f"The learner was suspended at round {self.since:,} ({why}): nothing is claimed of "
                "the policies before, nor of the people whom they decided about."
            )
        sentences += [
            f"Group {one.group} joined: the same holds for it from round {one.round:,} on."
            for one in later
        ]
        return " ".join([*sentences, *self._share_sentences])

    @property
    def _share_sentences(self) -> list[str]:
        sentences = []
        if self.accept_at_most is not None:
            since = f"round {self.since:,}" if self.since else "the first person"
            sentences.append(
                "With the same probability every policy accepts at most "
                f"{self.accept_at_most:.6g} of the population, from {since} on."
            )
        if self.accept_at_least is not None:
            floor = f"at least {self.accept_at_least:.6g} of the population"
            if self.floor_suspended is None:
                sentences.append(f"With the same probability this policy accepts {floor}.")
            else:
                why = self.floor_suspended
                sentences.append(f"The floor, {floor}, is suspended: {why}.")
        return sentences

    @property
    def unknown_group(self) -> int:
        """People whose group is unknown, and who are therefore outside."""
        return sum(count.people for count in self.outside if count.group is None)

    @property
    def digest(self) -> str:
        """SHA-256 of the certificate's own canonical JSON."""
        return canonical_digest(self.to_json())

    def suspend(self, reason: str) -> "Certificate":
        """The same certificate, suspended: the claim no longer stands.

        Parameters
        ----------
        reason : str
            Why.

        Returns
        -------
        Certificate
            A new certificate.
        """
        return replace(self, status="suspended", reason=reason)

    def result(self) -> Result:
        """What is said of the certificate.

        Returns
        -------
        Result
            The claim, and how each gap stands; the tables "gaps", "evidence" and others.
        """
        return certified(self)

    def to_json(self) -> Json:
        """The certificate as plain JSON.

        Returns
        -------
        dict
            `from_json` reads it back, bit for bit.
        """
        named: Json = {}  # not every certificate has these
        if self.models:
            named["models"] = list(self.models)
        if self.schema is not None:
            named |= {"schema_sha256": self.schema, "columns": self.columns}
        if self.scope == "table":
            named |= {"scope": "table", "ceilings": [asdict(one) for one in self.ceilings]}
        if self.acceptance is not None:
            named["acceptance"] = self.acceptance.to_json()
        if self.accepted is not None:
            named["shares"] = {
                "accept_at_most": self.accept_at_most,
                "accept_at_least": self.accept_at_least,
                "accepted": list(self.accepted),
                "floor_suspended": self.floor_suspended,
            }
        return {
            **named,
            "format": FORMAT,
            "status": self.status,
            "reason": self.reason,
            "limit": self.limit,
            "delta": self.delta,
            "spent": self.spent,
            "bound": {"name": self.bound, "params": deepcopy(self.bound_params)},
            "policy_sha256": self.policy,
            "window": list(self.window),
            "valid_until": self.valid_until,
            "assumptions": list(self.assumptions),
            "counts": [asdict(cell) for cell in self.counts],
            "gaps": [asdict(gap) for gap in self.gaps],
            "groups": list(self.groups),
            "covered": [asdict(one) for one in self.covered],
            "suspensions": [
                {**asdict(one), "reasons": list(one.reasons)} for one in self.suspensions
            ],
            "outside": [asdict(count) for count in self.outside],
            "overruled": [asdict(count) for count in self.overruled],
            "late_groups": [asdict(count) for count in self.late_groups],
            "erased": self.erased,
            "protocol_version": PROTOCOL_VERSION,
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read what `to_json` wrote; the requirements are checked again.

        Parameters
        ----------
        value : dict
            The JSON.

        Returns
        -------
        Certificate
            The certificate.

        Raises
        ------
        InvalidInput
            If the format or the protocol version is another one, or the numbers do not support the
            claim.
        """
        if value.get("format") != FORMAT:
            raise InvalidInput(
                f"the certificate has format {value.get('format')!r}; this evenhand reads format "
                f"{FORMAT}.",
                hint="use the evenhand that wrote it.",
            )
        if value.get("protocol_version") != PROTOCOL_VERSION:
            raise InvalidInput(
                f"the certificate has protocol version {value.get('protocol_version')!r}; this "
                f"evenhand knows version {PROTOCOL_VERSION} alone.",
                hint="use the evenhand that wrote it.",
            )
        as_they_are = ("limit", "delta", "spent", "valid_until", "status", "reason")
        shares = dict(value.get("shares", {}))
        if shares:
            shares["accepted"] = tuple(shares["accepted"])
        acceptance = value.get("acceptance")
        return cls(
            **{name: value[name] for name in as_they_are},
            acceptance=None if acceptance is None else Acceptance.from_json(acceptance),
            bound=value["bound"]["name"],
            bound_params=value["bound"]["params"],
            policy=value["policy_sha256"],
            window=(value["window"][0], value["window"][1]),
            assumptions=tuple(value["assumptions"]),
            counts=tuple(CellCount(**cell) for cell in value["counts"]),
            gaps=tuple(GapInterval(**gap) for gap in value["gaps"]),
            groups=tuple(value["groups"]),
            covered=tuple(CoveredFrom(**one) for one in value["covered"]),
            suspensions=tuple(
                Suspension(one["round"], tuple(one["reasons"]), one["resumed"])
                for one in value["suspensions"]
            ),
            outside=tuple(OutsideCount(**count) for count in value["outside"]),
            overruled=tuple(DrawCount(**count) for count in value["overruled"]),
            late_groups=tuple(DrawCount(**count) for count in value["late_groups"]),
            erased=value["erased"],
            models=tuple(value.get("models", ())),
            schema=value.get("schema_sha256"),
            columns=value.get("columns", ""),
            scope=value.get("scope", "run"),
            ceilings=tuple(RateCeiling(**one) for one in value.get("ceilings", ())),
            **shares,
        )

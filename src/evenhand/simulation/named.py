"""Populations and learners by name, each with its options and a short description: the choices of
commands and studies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import signature
from typing import Any

from evenhand import environments as worlds
from evenhand import learners
from evenhand.algorithms.certified.quota import Quota
from evenhand.contracts import (
    Environment,
    Hypothesis,
    HypothesisClass,
    Json,
    Learner,
    Params,
)
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.registry import Registry, summary
from evenhand.words import Prices

Parse = Callable[[str], object]


@dataclass(frozen=True)
class Setting:
    """The settings that all learners of a comparison or a study share.

    Parameters
    ----------
    hypotheses : HypothesisClass
        The class of rules.
    rate : str, Rate or sequence of them
        The rates whose gaps are limited.
    limit : float
        gamma', the gap that no policy may exceed.
    comparator_gap : float or None
        gamma, the gap of the policies that the learner competes with; None leaves it to the
        learner.
    delta : float
        Probability that the limit is ever exceeded in a run.
    horizon : int
        T, the number of rounds.
    prices : Prices, optional
        What errors cost; None leaves it to the learner.
    accept_at_most, accept_at_least : float, optional
        The largest and the smallest share of the people that every policy may accept.
    quota : Quota, optional
        How many people may be accepted in each period, with people as its unit of time.
    candidates : tuple of Hypothesis, optional
        The incumbent's rules.
    """

    hypotheses: HypothesisClass
    rate: RateLike
    limit: float
    comparator_gap: float | None
    delta: float
    horizon: int
    prices: Prices | None = None
    accept_at_most: float | None = None
    accept_at_least: float | None = None
    quota: Quota | None = None
    candidates: tuple[Hypothesis, ...] | None = None

    def __post_init__(self) -> None:
        # One rate is handed on as itself: learners write down what they were given.
        rates = as_rates(self.rate)
        object.__setattr__(self, "rate", rates[0] if len(rates) == 1 else rates)

    @property
    def shared(self) -> tuple[str, ...]:
        """Which settings of `SHARED` are given."""
        return tuple(name for name in SHARED if getattr(self, name) is not None)


SHARED = ("accept_at_most", "accept_at_least", "quota", "candidates")
"""The settings of `Setting` that not every learner can keep."""


@dataclass(frozen=True)
class Entry:
    """A population or a learner that can be named.

    Parameters
    ----------
    make : callable
        The class or function that makes it.
    text : str
        A description; by default the first paragraph of the docstring of `make`.
    options : mapping of str to callable
        The options that a user may set, each with the function that reads its text.
    fixed : mapping
        Arguments that are always passed to `make`.
    needs : tuple of str
        The fields of `Setting` that are passed to `make`; by default all that are among its
        parameters.
    kinds : tuple of str
        The classes of rules that a learner supports on tables; by default all.

    Examples
    --------
    >>> class Lenient:
    ...     'Accepts all who apply twice.'
    ...     def __init__(self, rate, prices, patience=2): ...
    >>> entry = Entry(Lenient, options={"patience": int})
    >>> entry.text, entry.needs
    ('Accepts all who apply twice.', ('rate', 'prices'))
    """

    make: Callable[..., Any]
    text: str = ""
    options: Mapping[str, Parse] = field(default_factory=dict)
    fixed: Params = field(default_factory=dict)
    needs: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "text", summary(self.make))
        if self.needs is None:
            parameters = signature(self.make).parameters
            needs = tuple(one.name for one in fields(Setting) if one.name in parameters)
            object.__setattr__(self, "needs", needs)


def _yes_or_no(text: str) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in known:
        raise ValueError(text)
    return known[text.lower()]


def _one_of(*values: str) -> Parse:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    parse.__name__ = "|".join(values)
    return parse


POPULATIONS: Registry[Entry] = Registry(
    "environment",
    {
        "lending": Entry(worlds.lending),
        "random": Entry(
            worlds.random_population, options={"seed": int, "contexts": int, "hypotheses": int}
        ),
        "thresholds": Entry(worlds.threshold_population, options={"bins": int, "cuts": int}),
        "lower-bound": Entry(
            worlds.LowerBound,
            options={"which": int, "gap": float},
            fixed={"which": 1, "gap": 1 / 16},
        ),
        "hard": Entry(worlds.hard, options={"horizon": float, "scale": float}),
        "scores": Entry(worlds.Scores),
    },
)
"""The populations by name."""

_TWO_PHASE: Mapping[str, Parse] = {
    "estimator": _one_of("one-sided", "two-sided"),
    "schedule": _one_of("practical", "theory"),
    "bound": _one_of("joint-hoeffding", "dkw", "clopper-pearson", "as printed"),
    "slack_rule": _one_of("corrected", "as printed"),
    "method": _one_of("column-generation", "saddle-point"),
    "oracle_tolerance": float,
    "epochs": _one_of("doubling", "every-round"),
    "exploration_rounds": int,
    "tradeoff_exponent": float,
}


def _as_printed(
    hypotheses: HypothesisClass,
    rate: RateLike,
    delta: float,
    horizon: int,
    comparator_gap: float = 0.0,
    **options: Any,
) -> learners.TwoPhaseLearner:
    """The paper's algorithm to the letter, with the settings of a comparison."""
    return learners.TwoPhaseLearner.as_printed(
        hypotheses, rate, comparator_gap, delta, horizon, **options
    )


_FINITE = ("stumps", "thresholds")
_exploring = partial(
    Entry,
    needs=tuple(one.name for one in fields(Setting) if one.name not in SHARED),
    kinds=_FINITE,
)
"""A learner that passes its settings on to the two-phase learner."""

LEARNERS: Registry[Entry] = Registry(
    "learner",
    {
        "two-phase": Entry(
            learners.TwoPhaseLearner,
            "The paper's algorithm. It accepts all applicants until the labels determine every "
            "rule's gap well enough, and from then on runs a bandit over the mixtures that keep "
            "the limit.",
            _TWO_PHASE,
            kinds=_FINITE,
        ),
        "as-printed": Entry(
            _as_printed,
            "The paper's algorithm to the letter: its constants, two-sided estimates, the "
            "saddle-point oracle, a new Q in every round. It claims gamma + O(beta), without a "
            "constant.",
            {name: _TWO_PHASE[name] for name in ("method", "epochs", "schedule")}
            | {"tradeoff_exponent": float},
            kinds=_FINITE,
        ),
        "certified": Entry(
            learners.CertifiedLearner,
            "Beyond the paper: no exploration phase. It deploys mixtures that are mostly "
            "accept-all from the start, certifies rules as labels come in, and gives them as much "
            "weight as the limit allows.",
            {
                "audit_rate": float,
                "audit_budget": float,
                "accept_at_most": float,
                "accept_at_least": float,
            },
        ),
        "explore-then-commit": _exploring(
            learners.ExploreThenCommit,
            "Accepts all applicants for T^(2/3) rounds, then deploys the best policy that keeps "
            "the limit on that sample, for good.",
            {**_TWO_PHASE, "same_exploration": _yes_or_no},
        ),
        "explore-then-commit-same": _exploring(
            learners.ExploreThenCommit,
            "Explore-then-commit with exactly the exploration of the two-phase learner: what the "
            "bandit adds is the difference.",
            _TWO_PHASE,
            {"same_exploration": True},
        ),
        "exp4": _exploring(
            learners.Exp4,
            "After the same exploration, exponential weights over a net of all fair pairs of "
            "rules: the paper's inefficient baseline.",
            {**_TWO_PHASE, "grid": int, "growth": float},
        ),
        "paired-rounds": _exploring(
            learners.PairedRounds,
            "Section 1's initial approach: every round that accepts all applicants is paired "
            "with a round of exp4 on what they have shown. Half of all rounds explore.",
            {**_TWO_PHASE, "grid": int},
        ),
        "unconstrained": Entry(
            learners.Unconstrained,
            "The same bandit over all mixtures, fair or not. It guarantees nothing about the gap.",
            {"first_rounds": int},
            needs=("hypotheses", "rate", "prices"),
        ),
        "fair-on-gathered": Entry(
            learners.FairOnGathered,
            "The usual practice: the best policy whose gap, measured on the labels gathered "
            "so far, is within the limit. Those labels come from people it chose to accept, so "
            "the measured gap is not the population's.",
            {"first_rounds": int},
        ),
        "accept-all": Entry(
            learners.AcceptAll,
            "Accepts all applicants: a gap of exactly 0, and the losses that go with it.",
        ),
        "uniform": Entry(
            learners.Uniform, "Tosses a fair coin for each applicant: a gap of exactly 0."
        ),
    },
)
"""The learners by name."""

COMPARED = (
    "certified",
    "two-phase",
    "explore-then-commit",
    "explore-then-commit-same",
    "exp4",
    "unconstrained",
    "fair-on-gathered",
    "accept-all",
)
"""The learners of a comparison in which none is named; explore-then-commit with the same
exploration is always among them.
"""
STUDIED = (
    "certified",
    "fair-on-gathered",
    "unconstrained",
    "accept-all",
)
"""The learners of a study in which none is named: those that support every class of rules."""


def make_environment(name: str, options: Sequence[str], rounds: int) -> Environment:
    """Make the population of a name.

    Parameters
    ----------
    name : str
        A name of `POPULATIONS`.
    options : sequence of str
        Options of the form "key=value".
    rounds : int
        The number of rounds; it becomes the `horizon` of a population that has one.

    Returns
    -------
    Environment
        The population.

    Raises
    ------
    InvalidInput
        If there is no such name or option, or a value does not fit.

    Examples
    --------
    >>> make_environment("thresholds", ["bins=20"], rounds=1_000).params["contexts"]
    40
    """
    entry = POPULATIONS[name]
    horizon = {"horizon": rounds} if "horizon" in (entry.needs or ()) else {}
    chosen = _parsed(entry, f"environment {name}", options)
    made: Environment = entry.make(**{**entry.fixed, **horizon, **chosen})
    return made


def make_learner(text: str, setting: Setting) -> Learner:
    """Make the learner of a text.

    Parameters
    ----------
    text : str
        A name of `LEARNERS`, or "name:key=value,key=value".
    setting : Setting
        The learner's settings.

    Returns
    -------
    Learner
        The learner, at its beginning.

    Raises
    ------
    InvalidInput
        If there is no such name or option, or a value does not fit.

    Examples
    --------
    >>> import evenhand as eh
    >>> setting = Setting(eh.Stumps(), eh.FalsePositiveRate(), 0.1, None, 0.05, horizon=1_000)
    >>> make_learner("two-phase:estimator=two-sided", setting).params["estimator"]
    'two-sided'
    """
    name, options = split_options(text)
    entry = LEARNERS[name]
    given = {name: getattr(setting, name) for name in entry.needs or ()}
    given = {name: value for name, value in given.items() if value is not None}
    for asked in setting.shared:
        require_takes(name, asked)
    chosen = _parsed(entry, f"learner {name}", options)
    made: Learner = entry.make(**{**given, **entry.fixed, **chosen})
    return made


def takes(name: str, setting: str) -> bool:
    """Whether a learner has a setting of `SHARED`."""
    return setting in (LEARNERS[name].needs or ())


def require_takes(name: str, setting: str) -> None:
    """An error unless the learner has a setting of `SHARED`."""
    if not takes(name, setting):
        able = [known for known in LEARNERS if takes(known, setting)]
        raise InvalidInput(
            f"the learner {name!r} has no {setting}; it would accept whom it likes",
            requirement=f"learners with {setting}: {', '.join(able)}",
            hint="leave the learner out, or the setting.",
            argument=setting,
        )


def require_playable(name: str, kind: str) -> None:
    """An error unless the learner supports the class of rules."""
    kinds = LEARNERS[name].kinds
    if kinds and kind not in kinds:
        raise InvalidInput(
            f"the learner {name!r} cannot play {kind!r}: its bound covers "
            f"{' and '.join(kinds)} only.",
            hint=f"use the class {kinds[0]!r}, or leave the learner out; "
            "'certified' plays every class.",
        )


def describe_learner(text: str) -> str:
    """The description of the learner of a text like "two-phase:estimator=two-sided"."""
    name, options = split_options(text)
    return LEARNERS[name].text + (f" Here with {', '.join(options)}." if options else "")


def split_options(text: str) -> tuple[str, list[str]]:
    """The name and the options of a text.

    >>> split_options("two-phase:estimator=two-sided,bound=dkw")
    ('two-phase', ['estimator=two-sided', 'bound=dkw'])
    """
    name, _, rest = text.partition(":")
    return name.strip(), [part.strip() for part in rest.split(",") if part.strip()]


def _parsed(entry: Entry, owner: str, options: Sequence[str]) -> Json:
    """Options "key=value" as arguments; dashes in a key count as underscores."""
    arguments: Json = {}
    for option in options:
        key, equals, value = option.partition("=")
        name = key.strip().replace("-", "_")
        if not equals:
            raise InvalidInput(
                f"the option {option!r} of {owner} has no value.", hint=f"write {key}=VALUE."
            )
        if name not in entry.options:
            known = ", ".join(entry.options)
            hint = f"its options are {known}." if known else "it takes no options."
            raise InvalidInput(f"{owner} has no option {key!r}.", hint=hint)
        if name in arguments:
            raise InvalidInput(
                f"the option {key!r} of {owner} is given twice.", hint="leave one of them out."
            )
        parse = entry.options[name]
        text = value.strip()
        try:
            arguments[name] = parse(text)
        except ValueError:
            kinds = {int: "a whole number", float: "a number", _yes_or_no: "yes or no"}
            wanted = kinds.get(parse) or parse.__name__.replace("|", " or ")
            raise InvalidInput(
                f"the option {key} of {owner} is {text!r}; it must be {wanted}."
            ) from None
    return arguments

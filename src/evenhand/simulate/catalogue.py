"""Populations and learners by name, each with its options and a few words: what the commands and
studies choose from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import getdoc, signature
from typing import Any

from evenhand import environments as worlds
from evenhand import learners
from evenhand.contracts import Environment, HypothesisClass, Learner, Rate
from evenhand.errors import InvalidInput
from evenhand.learners import rivals
from evenhand.registry import Registry
from evenhand.words import Prices

Parse = Callable[[str], Any]


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


NAMES: Mapping[Any, str] = {int: "a whole number", float: "a number", _yes_or_no: "yes or no"}


@dataclass(frozen=True)
class Entry:
    """Something that can be named: how it is made, what it is in words, the options it takes (name
    -> parser), and what it is told besides: `fixed` values, and the parts of the `Setting` that it
    `needs`.

    kinds: the classes of rules that it can play on tables (none named: all).
    """

    make: Callable[..., Any]
    text: str
    options: Mapping[str, Parse] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What learners are told: the class, the rate, gamma', gamma, delta, T and prices; None is left
    to the learner.
    """

    hypotheses: HypothesisClass
    rate: Rate
    allowed_gap: float
    comparator_gap: float | None
    failure_probability: float
    horizon: int
    prices: Prices | None = None


_POPULATIONS: Mapping[str, Entry] = {
    "lending": Entry(
        worlds.lending,
        "A lender's two regions: a credit score, the rent history, and 98 scorecards. Leaning on the score alone loses least and "
        "treats the south's bad risks differently from the north's.",
    ),
    "random": Entry(
        worlds.random_population,
        "100 contexts in two groups and 204 noisy linear rules.",
        {"seed": int, "contexts": int, "hypotheses": int},
    ),
    "thresholds": Entry(
        worlds.threshold_population,
        "A score in 50 bins for each of two groups, and all pairs of one threshold per group.",
        {"bins": int, "cuts": int},
    ),
    "lower-bound": Entry(
        worlds.LowerBound,
        "The instance of section 4 of the paper: two populations that look alike for a long time, and only one of two rules is "
        "fair on each.",
        {"which": int, "gap": float},
        {"which": 1, "gap": 1 / 16},
    ),
    "hard": Entry(
        worlds.hard,
        "The same population with two losses that differ by the order of T^(-1/4) only; meant for an allowed gap of 1.",
        {"horizon": float, "scale": float},
    ),
    "scores": Entry(
        worlds.Scores,
        "One continuous score, normal given group and outcome; the rules are thresholds on it. Played person by person.",
    ),
}

_TWO_PHASE: Mapping[str, Parse] = {
    "estimator": _one_of("one-sided", "two-sided"),
    "schedule": _one_of("practical", "theory"),
    "bound": _one_of("joint-hoeffding", "dkw", "clopper-pearson"),
    "reading": _one_of("evenhand", "paper"),
    "exploration_rounds": int,
    "tradeoff_exponent": float,
}
_GREEDY: Mapping[str, Parse] = {"first_rounds": int}
_ALL = (
    "hypotheses",
    "rate",
    "allowed_gap",
    "comparator_gap",
    "failure_probability",
    "horizon",
    "prices",
)

_LEARNERS: Mapping[str, Entry] = {
    "two-phase": Entry(
        learners.TwoPhaseLearner,
        "The paper's algorithm. It accepts everybody until the labels tell every rule's gap well enough, and from then on runs a bandit "
        "over the mixtures that keep the promise.",
        _TWO_PHASE,
        needs=_ALL,
        kinds=("stumps", "thresholds"),
    ),
    "certified": Entry(
        learners.CertifiedLearner,
        "Beyond the paper: no exploration phase. It deploys mixtures that are mostly accept-all from the start, certifies rules as "
        "labels come in, and gives them as much weight as the promise allows.",
        {
            "bound": _one_of("betting", "nominate", "hoeffding", "kl", "binomial", "dkw"),
            "audit_rate": float,
        },
        needs=("hypotheses", "rate", "allowed_gap", "failure_probability", "horizon", "prices"),
    ),
    "explore-then-commit": Entry(
        learners.ExploreThenCommit,
        "Accepts everybody for T^(2/3) rounds, then deploys the best policy that keeps the promise on that sample, for good.",
        {**_TWO_PHASE, "same_exploration": _yes_or_no},
        needs=_ALL,
        kinds=("stumps", "thresholds"),
    ),
    "explore-then-commit-same": Entry(
        learners.ExploreThenCommit,
        "Explore-then-commit with exactly the exploration of the two-phase learner: what the bandit adds is the difference.",
        _TWO_PHASE,
        {"same_exploration": True},
        needs=_ALL,
        kinds=("stumps", "thresholds"),
    ),
    "exp4": Entry(
        learners.Exp4,
        "After the same exploration, exponential weights over a net of all fair pairs of rules: the paper's inefficient baseline.",
        {**_TWO_PHASE, "grid": int},
        needs=_ALL,
        kinds=("stumps", "thresholds"),
    ),
    "unconstrained": Entry(
        learners.Unconstrained,
        "The same bandit over all mixtures, fair or not. It promises nothing about the gap.",
        _GREEDY,
        needs=("hypotheses", "rate", "prices"),
    ),
    "fair-on-gathered": Entry(
        learners.FairOnGathered,
        "What ordinary tools do: the best policy whose gap, measured on the labels gathered so far, is within the limit. Those labels come "
        "from people it chose to accept, so the measured gap is not the population's.",
        _GREEDY,
        needs=("hypotheses", "rate", "allowed_gap", "prices"),
    ),
    "accept-all": Entry(
        learners.AcceptAll,
        "Accepts everybody: a gap of exactly 0, and the losses that go with it.",
        needs=("rate", "prices"),
    ),
    "uniform": Entry(
        learners.Uniform,
        "Tosses a fair coin for everybody: a gap of exactly 0.",
        needs=("rate", "prices"),
    ),
    "semi-logistic": Entry(
        rivals.SemiLogistic,
        "Kilbertus et al. (2020): a policy that never rejects for sure, trained with a penalty on the estimated gap.",
        needs=("rate", "allowed_gap", "prices"),
    ),
    "explore-exploit": Entry(
        rivals.ExploreExploit,
        "Keswani et al. (2024): accepts where success is likely enough and explores elsewhere within a bound on false positives.",
        needs=("rate", "allowed_gap", "prices"),
    ),
    "vw-epsilon-greedy": Entry(
        rivals.VwBandit,
        "Vowpal Wabbit's contextual bandit with 5% random decisions; looks at cost alone.",
        fixed={"exploration": "epsilon-greedy"},
        needs=("rate", "prices"),
    ),
    "vw-squarecb": Entry(
        rivals.VwBandit,
        "Vowpal Wabbit's contextual bandit with squarecb exploration; looks at cost alone.",
        fixed={"exploration": "squarecb"},
        needs=("rate", "prices"),
    ),
}


def _adopted(thing: Any) -> Entry:
    """Another package may give an `Entry`, or a plain class: it is then told what its arguments
    name in a `Setting`.
    """
    if isinstance(thing, Entry):
        return thing
    asked = signature(thing).parameters
    needs = tuple(field.name for field in fields(Setting) if field.name in asked)
    return Entry(
        thing, (getdoc(thing) or thing.__name__).split("\n\n")[0].replace("\n", " "), needs=needs
    )


POPULATIONS: Registry[Entry] = Registry(
    "environment", "evenhand.populations", _POPULATIONS, _adopted
)
LEARNERS: Registry[Entry] = Registry("learner", "evenhand.learners", _LEARNERS, _adopted)

COMPARED = (
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
    "semi-logistic",
    "explore-exploit",
    "accept-all",
)
"""The learners of a study in which none is named: those that play every class of rules and need no
extra package.
"""


def make_environment(name: str, options: Sequence[str], rounds: int) -> Environment:
    """The population called `name` with options "key=value"."""
    entry = POPULATIONS[name]
    told = _parsed(entry, f"environment {name}", options)
    if name == "hard":
        told = {"horizon": rounds, **told}
    made: Environment = entry.make(**{**entry.fixed, **told})
    return made


def make_learner(text: str, setting: Setting) -> Learner:
    """The learner of "name" or "name:key=value,key=value"."""
    name, options = split(text)
    entry = LEARNERS[name]
    told = {need: value for need in entry.needs if (value := getattr(setting, need)) is not None}
    made: Learner = entry.make(**told, **entry.fixed, **_parsed(entry, f"learner {name}", options))
    return made


def require_playable(name: str, kind: str) -> None:
    """The learner can play the class of rules, or the message says with which it can."""
    kinds = LEARNERS[name].kinds
    if kinds and kind not in kinds:
        raise InvalidInput(
            f"the learner {name!r} cannot play {kind!r}: its bound covers {' and '.join(kinds)} only.",
            hint=f"add --class {kinds[0]}, or leave the learner out; 'certified' plays every class.",
        )


def about(text: str) -> str:
    """What the learner of a text like "two-phase:estimator=two-sided" is, in words."""
    name, options = split(text)
    return LEARNERS[name].text + (f" Here with {', '.join(options)}." if options else "")


def split(text: str) -> tuple[str, list[str]]:
    """ "two-phase:estimator=two-sided,bound=dkw" -> ("two-phase", ["estimator=two-sided",
    "bound=dkw"]).
    """
    name, _, rest = text.partition(":")
    return name.strip(), [part.strip() for part in rest.split(",") if part.strip()]


def _parsed(entry: Entry, owner: str, options: Sequence[str]) -> dict[str, Any]:
    """Options "key=value" as arguments; dashes in a key count as underscores."""
    found: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        name = key.strip().replace("-", "_")
        if not equals:
            raise InvalidInput(
                f"the option {option!r} of {owner} has no value.", hint=f"write {key}=VALUE."
            )
        if name not in entry.options:
            known = (
                f"its options are {', '.join(entry.options)}." if entry.options else "it has none."
            )
            raise InvalidInput(f"{owner} has no option {key!r}.", hint=known)
        if name in found:
            raise InvalidInput(
                f"the option {key!r} of {owner} is given twice.", hint="leave one of them out."
            )
        found[name] = _value(entry.options[name], key, value.strip(), owner)
    return found


def _value(parse: Parse, key: str, value: str, owner: str) -> Any:
    try:
        return parse(value)
    except ValueError:
        wanted = NAMES.get(parse) or parse.__name__.replace("|", " or ")
        raise InvalidInput(
            f"the option {key} of {owner} is {value!r}; it must be {wanted}."
        ) from None

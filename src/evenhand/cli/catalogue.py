"""Environments and learners by name, each with its options and a few words: what `simulate` and `compare` choose from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand import environments as worlds
from evenhand import learners
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import Rate

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
    """Something that can be named: how it is made, what it is in words, the options it takes (name -> parser), and what it is told
    besides: `fixed` values, and the parts of the `Setting` that it `needs`."""

    make: Callable[..., Any]
    text: str
    options: Mapping[str, Parse] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What the learners of a comparison are told: the class, the rate, gamma', gamma, delta and T."""

    hypotheses: Any
    rate: Rate
    allowed_gap: float
    comparator_gap: float
    failure_probability: float
    horizon: int


ENVIRONMENTS: Mapping[str, Entry] = {
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
_ALL = ("hypotheses", "rate", "allowed_gap", "comparator_gap", "failure_probability", "horizon")

LEARNERS: Mapping[str, Entry] = {
    "two-phase": Entry(
        learners.TwoPhaseLearner,
        "The paper's algorithm. It accepts everybody until the labels tell every rule's gap well enough, and from then on runs a bandit "
        "over the mixtures that keep the promise.",
        _TWO_PHASE,
        needs=_ALL,
    ),
    "certified": Entry(
        learners.CertifiedLearner,
        "Beyond the paper: no exploration phase. It deploys mixtures that are mostly accept-all from the start, certifies rules as "
        "labels come in, and gives them as much weight as the promise allows.",
        {"bound": _one_of("betting", "nominate", "hoeffding", "kl", "binomial", "dkw"), "audit_rate": float},
        needs=("hypotheses", "rate", "allowed_gap", "failure_probability", "horizon"),
    ),
    "explore-then-commit": Entry(
        learners.ExploreThenCommit,
        "Accepts everybody for T^(2/3) rounds, then deploys the best policy that keeps the promise on that sample, for good.",
        {**_TWO_PHASE, "same_exploration": _yes_or_no},
        needs=_ALL,
    ),
    "explore-then-commit-same": Entry(
        learners.ExploreThenCommit,
        "Explore-then-commit with exactly the exploration of the two-phase learner: what the bandit adds is the difference.",
        _TWO_PHASE,
        {"same_exploration": True},
        needs=_ALL,
    ),
    "exp4": Entry(
        learners.Exp4,
        "After the same exploration, exponential weights over a net of all fair pairs of rules: the paper's inefficient baseline.",
        {**_TWO_PHASE, "grid": int},
        needs=_ALL,
    ),
    "unconstrained": Entry(
        learners.Unconstrained,
        "The same bandit over all mixtures, fair or not. It promises nothing about the gap.",
        _GREEDY,
        needs=("hypotheses", "rate"),
    ),
    "fair-on-gathered": Entry(
        learners.FairOnGathered,
        "What ordinary tools do: the best policy whose gap, measured on the labels gathered so far, is within the limit. Those labels come "
        "from people it chose to accept, so the measured gap is not the population's.",
        _GREEDY,
        needs=("hypotheses", "rate", "allowed_gap"),
    ),
    "accept-all": Entry(
        learners.AcceptAll, "Accepts everybody: a gap of exactly 0, and the losses that go with it.", needs=("rate",)
    ),
    "uniform": Entry(learners.Uniform, "Tosses a fair coin for everybody: a gap of exactly 0.", needs=("rate",)),
}

STANDARD = (
    "two-phase",
    "explore-then-commit",
    "explore-then-commit-same",
    "exp4",
    "unconstrained",
    "fair-on-gathered",
    "accept-all",
)
"""The learners of a comparison in which none is named; explore-then-commit with the same exploration is always among them."""


def make_environment(name: str, options: Sequence[str], rounds: int) -> Any:
    """The environment called `name` with options "key=value"."""
    entry = _entry(ENVIRONMENTS, name, "environment")
    told = _parsed(entry, f"environment {name}", options)
    if name == "hard":
        told = {"horizon": rounds, **told}
    return entry.make(**{**entry.fixed, **told})


def make_learner(text: str, setting: Setting) -> learners.EpochLearner:
    """The learner of "name" or "name:key=value,key=value"."""
    name, options = split(text)
    entry = _entry(LEARNERS, name, "learner")
    told = {need: getattr(setting, need) for need in entry.needs}
    made: learners.EpochLearner = entry.make(**told, **entry.fixed, **_parsed(entry, f"learner {name}", options))
    return made


def about(text: str) -> str:
    """What the learner of a text like "two-phase:estimator=two-sided" is, in words."""
    name, options = split(text)
    return LEARNERS[name].text + (f" Here with {', '.join(options)}." if options else "")


def split(text: str) -> tuple[str, list[str]]:
    """ "two-phase:estimator=two-sided,bound=dkw" -> ("two-phase", ["estimator=two-sided", "bound=dkw"])."""
    name, _, rest = text.partition(":")
    return name.strip(), [part.strip() for part in rest.split(",") if part.strip()]


def _entry(catalogue: Mapping[str, Entry], name: str, kind: str) -> Entry:
    if name not in catalogue:
        raise InvalidInput(f"there is no {kind} {name!r}.", hint=f"the {kind}s are {', '.join(catalogue)}.")
    return catalogue[name]


def _parsed(entry: Entry, owner: str, options: Sequence[str]) -> dict[str, Any]:
    """Options "key=value" as arguments; dashes in a key count as underscores."""
    found: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        name = key.strip().replace("-", "_")
        if not equals:
            raise InvalidInput(f"the option {option!r} of {owner} has no value.", hint=f"write {key}=VALUE.")
        if name not in entry.options:
            known = f"its options are {', '.join(entry.options)}." if entry.options else "it has none."
            raise InvalidInput(f"{owner} has no option {key!r}.", hint=known)
        if name in found:
            raise InvalidInput(f"the option {key!r} of {owner} is given twice.", hint="leave one of them out.")
        found[name] = _value(entry.options[name], key, value.strip(), owner)
    return found


def _value(parse: Parse, key: str, value: str, owner: str) -> Any:
    try:
        return parse(value)
    except ValueError:
        wanted = NAMES.get(parse) or parse.__name__.replace("|", " or ")
        raise InvalidInput(f"the option {key} of {owner} is {value!r}; it must be {wanted}.") from None

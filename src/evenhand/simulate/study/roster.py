"""Who takes part in a study, by name: learners, and the classes of rules they choose from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand import learners
from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import Rate
from evenhand.hypotheses import Estimator, Linear, Stumps
from evenhand.learners import rivals
from evenhand.words import Prices


@dataclass(frozen=True, eq=False)
class Terms:
    """What a learner is told."""

    hypotheses: HypothesisClass
    rate: Rate
    limit: float
    failure_probability: float
    rounds: int
    prices: Prices


@dataclass(frozen=True)
class Entrant:
    """A learner by name, with a few words for people who decide whether to use it. kinds: the classes it can play (empty: all)."""

    make: Callable[[Terms], learners.EpochLearner]
    text: str
    certified: bool = False
    extra: str | None = None
    kinds: tuple[str, ...] = ()


def _told(terms: Terms) -> dict[str, Any]:
    return {"hypotheses": terms.hypotheses, "rate": terms.rate, "allowed_gap": terms.limit, "prices": terms.prices}


def _vw(exploration: rivals.vw.Exploration) -> Callable[[Terms], learners.EpochLearner]:
    return lambda terms: rivals.VwBandit(terms.rate, exploration=exploration, prices=terms.prices)


LEARNERS: Mapping[str, Entrant] = {
    "certified": Entrant(
        lambda terms: learners.CertifiedLearner(
            **_told(terms), failure_probability=terms.failure_probability, horizon=terms.rounds
        ),
        "evenhand's learner: whatever it deploys has been certified on people it had not learned from; until then constants are.",
        certified=True,
    ),
    "two-phase": Entrant(
        lambda terms: learners.TwoPhaseLearner(
            **_told(terms), failure_probability=terms.failure_probability, horizon=terms.rounds
        ),
        "The paper's algorithm: accepts everybody until the gap of every rule is known well enough, then runs a bandit over the "
        "mixtures within the limit. Its bound covers stumps, not fitted rules.",
        certified=True,
        kinds=("stumps",),
    ),
    "fair-on-gathered": Entrant(
        lambda terms: learners.FairOnGathered(**_told(terms)),
        "What ordinary tools do: the best policy whose gap on the labels gathered so far is within the limit. Those labels come from "
        "people it chose to accept.",
    ),
    "unconstrained": Entrant(
        lambda terms: learners.Unconstrained(hypotheses=terms.hypotheses, rate=terms.rate, prices=terms.prices),
        "A bandit that looks at cost alone.",
    ),
    "semi-logistic": Entrant(
        lambda terms: rivals.SemiLogistic(terms.rate, terms.limit, prices=terms.prices),
        "Kilbertus et al. (2020): a policy that never rejects for sure, trained with a penalty on the estimated gap.",
    ),
    "explore-exploit": Entrant(
        lambda terms: rivals.ExploreExploit(terms.rate, terms.limit, prices=terms.prices),
        "Keswani et al. (2024): accepts where success is likely enough and explores elsewhere within a bound on false positives.",
    ),
    "vw-epsilon-greedy": Entrant(
        _vw("epsilon-greedy"),
        "Vowpal Wabbit's contextual bandit with 5% random decisions; looks at cost alone.",
        extra="vw",
    ),
    "vw-squarecb": Entrant(
        _vw("squarecb"), "Vowpal Wabbit's contextual bandit with squarecb exploration; looks at cost alone.", extra="vw"
    ),
    "accept-all": Entrant(
        lambda terms: learners.AcceptAll(rate=terms.rate, prices=terms.prices),
        "Accepts everybody: a gap of exactly 0.",
        certified=True,
    ),
}
STANDARD = ("certified", "fair-on-gathered", "unconstrained", "semi-logistic", "explore-exploit", "accept-all")
"""The learners of a study in which none is named: those that need no extra package."""


def _tree() -> HypothesisClass:
    from sklearn.tree import DecisionTreeClassifier  # heavy: loaded only for this class

    return Estimator(DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0))


def _lightgbm() -> HypothesisClass:
    from evenhand.hypotheses.boosting import lightgbm_class

    return lightgbm_class()


CLASSES: Mapping[str, Callable[[], HypothesisClass]] = {
    "linear": Linear,
    "stumps": Stumps,
    "tree": _tree,
    "lightgbm": _lightgbm,
}


def entrant(name: str) -> Entrant:
    """The learner called `name`."""
    if name not in LEARNERS:
        raise InvalidInput(f"there is no learner {name!r} for a study.", hint=f"known are {', '.join(LEARNERS)}.")
    return LEARNERS[name]


def rules(kind: str) -> HypothesisClass:
    """The class called `kind`."""
    if kind not in CLASSES:
        raise InvalidInput(f"there is no class {kind!r} for a study.", hint=f"known are {', '.join(CLASSES)}.")
    return CLASSES[kind]()


def require_playable(name: str, kind: str) -> None:
    """The learner can play the class, or the message says with which it can."""
    kinds = entrant(name).kinds
    if kinds and kind not in kinds:
        raise InvalidInput(
            f"the learner {name!r} cannot play {kind!r}: its bound covers {', '.join(kinds)} only.",
            hint=f"add --class {kinds[0]}, or leave the learner out; 'certified' plays every class.",
        )

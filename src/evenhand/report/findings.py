"""What a comparison found, in sentences that say no more than was measured."""

from math import sqrt

import numpy as np

from evenhand.simulate import Comparison, LearnerRuns, Summary

PAPER, COMMIT = "two-phase", "explore-then-commit-same"


def findings(comparison: Comparison, rate: str) -> list[str]:
    """Who kept the promise, who did not, and at what regret."""
    rows = comparison.summaries
    limit = f"{comparison.promise:g}"
    clean = [row.name for row in rows if row.promised and not row.runs_above]
    said = []
    if clean:
        said.append(
            f"Certified, and never above the promise: {_and(clean)} kept the gap in {rate} at {limit} or less in every round of all "
            f"{len(comparison.seeds)} runs{' each' * (len(clean) > 1)}."
        )
    said += [_broken(row, limit, comparison.failure_probability) for row in rows if row.runs_above]
    lucky = [row.name for row in rows if not row.promised and not row.runs_above]
    if lucky:
        said.append(
            f"Not certified, but not above {limit} in these runs either: {_and(lucky)}. Nothing says that this will stay so."
        )
    said += _cheapest([row for row in rows if row.promised], comparison)
    return said


def _broken(row: Summary, limit: str, failure_probability: float) -> str:
    where = (
        f"{row.name} was above {limit} in {row.runs_above} of {row.runs} runs and {row.rounds_above:.1%} of all rounds "
        f"(worst gap {row.worst_gap:.3f})"
    )
    if not row.promised:
        return f"{where}. It is not certified to stay below."
    return f"{where}, although it is certified; the certificate allows this in a share of {failure_probability:g} of all runs."


def _cheapest(rows: list[Summary], comparison: Comparison) -> list[str]:
    learning = sorted((row for row in rows if row.explored_rounds), key=lambda row: row.regret)
    if not learning:
        return []
    best = learning[0]
    return [
        f"The least regret among those that are certified and learn: {best.name}, {best.regret:,.0f} errors in {comparison.rounds:,} "
        f"rounds beyond the best policy with a gap of at most {comparison.regret_gap:g}.".replace(" -", " \u2212")
    ]


def same_exploration_note(comparison: Comparison) -> list[str]:
    """Two-phase against explore-then-commit with the same exploration: the honest comparison, seed by seed."""
    by_name = {learner.name: learner for learner in comparison.learners}
    general = (
        "Most of the regret of a two-phase learner is its exploration, which the promise asks for. Explore-then-commit with the same "
        "exploration keeps the same promise, and on easy populations, where the exploration sample already tells the best policy, it "
        "is hard to beat: the bandit goes on exploring and pays for it. What the bandit has, after its exploration, is a bound of "
        "order √T for every population; committing once has a worst case of order T^(2/3) or more."
    )
    if PAPER not in by_name or COMMIT not in by_name:
        return [general, f"This comparison does not hold both; add --learner {PAPER} --learner {COMMIT} to see it."]
    difference, error = paired(by_name[PAPER], by_name[COMMIT])
    return [general, f"Here, over the same seeds: {_difference(difference, error)}"]


def paired(first: LearnerRuns, second: LearnerRuns) -> tuple[float, float | None]:
    """Mean and standard error of regret(first) - regret(second), seed by seed."""
    gap = np.array([a.regret[-1] - b.regret[-1] for a, b in zip(first.runs, second.runs, strict=True)])
    return float(gap.mean()), float(gap.std(ddof=1) / sqrt(len(gap))) if len(gap) > 1 else None


def _difference(difference: float, error: float | None) -> str:
    size = f"{abs(difference):,.0f}" + ("" if error is None else f" ± {error:,.0f}")
    if error is None or abs(difference) <= 2 * error:
        return f"{PAPER} and {COMMIT} differ by {size} errors, which is within two standard errors: a draw."
    more = "more" if difference > 0 else "fewer"
    return f"{PAPER} made {size} errors {more} than {COMMIT}."


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

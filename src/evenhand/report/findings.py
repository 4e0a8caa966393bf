"""What a comparison or a study found, in sentences that say no more than was measured."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from evenhand.simulate import Comparison
from evenhand.simulate.study import Cell, Study

BANDIT, COMMIT = "two-phase", "explore-then-commit-same"


def findings(comparison: Comparison, rate: str) -> list[str]:
    """Who kept the promise, who did not, and who had the least regret.

    `rate` is the name of the rate whose gap was limited.
    """
    rows, limit, sentences = comparison.summaries, f"{comparison.promise:g}", []
    kept = [row.name for row in rows if row.promised and not row.runs_above]
    if kept:
        sentences.append(
            f"Certified, and never above the promise: {_enumerated(kept)} kept the gap in {rate} "
            f"at {limit} or less in every round of all {len(comparison.seeds)} runs"
            f"{' each' * (len(kept) > 1)}."
        )
    for row in rows:
        if row.runs_above:
            above = (
                f"{row.name} was above {limit} in {row.runs_above} of {row.runs} runs and "
                f"{row.rounds_above:.1%} of all rounds (worst gap {row.worst_gap:.3f})"
            )
            if row.promised:
                above += (
                    ", although it is certified; the certificate allows this in a share of "
                    f"{comparison.failure_probability:g} of all runs."
                )
            else:
                above += ". It is not certified to stay below."
            sentences.append(above)
    uncertified = [row.name for row in rows if not row.promised and not row.runs_above]
    if uncertified:
        sentences.append(
            f"Not certified, but not above {limit} in these runs either: "
            f"{_enumerated(uncertified)}. Nothing says that this will stay so."
        )
    learning = [row for row in rows if row.promised and row.explored_rounds]
    if learning:
        best = min(learning, key=lambda row: row.regret)
        errors = f"{best.regret:,.0f}".replace("-", "\u2212")
        sentences.append(
            f"The least regret among those that are certified and learn: {best.name}, {errors} "
            f"errors in {comparison.rounds:,} rounds beyond the best policy with a gap of at most "
            f"{comparison.regret_gap:g}."
        )
    return sentences


def same_exploration_note(comparison: Comparison) -> list[str]:
    """The two-phase learner against explore-then-commit with the same exploration and seeds."""
    general = (
        "Most of the regret of a two-phase learner is its exploration, which the promise asks for. "
        "Explore-then-commit with the same exploration keeps the same promise, and on easy "
        "populations, where the exploration sample already tells the best policy, it is hard to "
        "beat: the bandit goes on exploring and pays for it. What the bandit has, after its "
        "exploration, is a bound of order √T for every population; committing once has a worst "
        "case of order T^(2/3) or more."
    )
    learners = {learner.name: learner for learner in comparison.learners}
    if BANDIT not in learners or COMMIT not in learners:
        both = f"--learner {BANDIT} --learner {COMMIT}"
        return [general, f"This comparison does not hold both; add {both} to see it."]
    pairs = zip(learners[BANDIT].runs, learners[COMMIT].runs, strict=True)
    differences = np.array([bandit.regret[-1] - commit.regret[-1] for bandit, commit in pairs])
    mean, runs = float(differences.mean()), len(differences)
    error = float(differences.std(ddof=1) / sqrt(runs)) if runs > 1 else None
    size = f"{abs(mean):,.0f}" + ("" if error is None else f" ± {error:,.0f}")
    if error is None or abs(mean) <= 2 * error:
        difference = f"{BANDIT} and {COMMIT} differ by {size} errors"
        difference += ", which is within two standard errors: a draw."
    else:
        direction = "more" if mean > 0 else "fewer"
        difference = f"{BANDIT} made {size} errors {direction} than {COMMIT}."
    return [general, f"Here, over the same seeds: {difference}"]


def study_findings(study: Study) -> list[str]:
    """For each table and limit: who kept the limit, who did not, and what keeping it cost."""
    findings = []
    for question in study.plan.questions:
        name, limit = question.source.name, question.limit
        cells = [study.of(name, limit, learner) for learner in study.plan.learners]
        findings.append(f"{name}, limit {limit:g}: {' '.join(_study_sentences(cells))}")
    return findings


def _study_sentences(cells: Sequence[Cell]) -> list[str]:
    sentences = []
    kept = ", ".join(
        f"{cell.learner} (worst true gap {cell.worst_gap:.3f})"
        for cell in cells
        if cell.promised and not cell.runs_above and cell.learner != "accept-all"
    )
    if kept:
        sentences.append(f"certified, and within the limit in every round of every run: {kept}.")
    broken = sorted((cell for cell in cells if cell.runs_above), key=lambda cell: -cell.worst_gap)
    if broken:
        gaps = ", ".join(f"{cell.learner} {cell.worst_gap:.2f}" for cell in broken)
        sentences.append(f"Went above it, with a worst true gap of: {gaps}.")
    uncertified = [cell.learner for cell in cells if not cell.promised and not cell.runs_above]
    if uncertified:
        names = ", ".join(uncertified)
        uncertain = "Not above it in these runs, but not certified, so nothing says it stays so"
        sentences.append(f"{uncertain}: {names}.")
    certified = next((cell for cell in cells if cell.learner == "certified"), None)
    if certified is not None:
        ratio, first = certified.mean("regret_over_constant"), certified.rows[0]
        if np.isnan(ratio):
            nothing = "No policy within the limit beats the better constant"
            sentences.append(f"{nothing}, so there is nothing to learn here.")
        else:
            saved = f"{1 - ratio:.0%} of that difference"
            sentences.append(
                f"The best fair policy in hindsight costs {first['optimum']:.4f} per person, the "
                f"better constant {first['constant']:.4f}; over its whole life, audits and "
                f"learning included, the certified learner saved "
                f"{saved if ratio < 1 else 'nothing of that difference yet'}."
            )
    return sentences


def percent(share: float) -> str:
    """A share in whole percent; a share that is neither 0 nor 1 never looks like 0% or 100%.

    >>> [percent(share) for share in (0.0, 0.004, 0.5, 0.9967, 1.0)]
    ['0%', '<1%', '50%', '>99%', '100%']
    """
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def _enumerated(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

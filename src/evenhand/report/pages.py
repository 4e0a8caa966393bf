"""The reports of a comparison and of a study: each one HTML page that needs nothing else, and what
was found, in sentences.

The words of the pages are in the templates beside this module. Everything that a template shows is
escaped; only the drawings, which are made here, are put in as they are. jinja2 is imported when a
page is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from evenhand.fairness.rates import as_rates
from evenhand.hypotheses import CLASSES
from evenhand.media.drawing import Panel, css_variable, inline_svg, looks, require
from evenhand.media.page import style
from evenhand.registry import summary
from evenhand.report.run_figures import (
    PANEL,
    SMALL,
    SQUARE,
    STUDY_PANEL,
    WIDE,
    certified_panels,
    certified_runs,
    gap_panels,
    in_sample_panels,
    regret_panels,
    study_panels,
)
from evenhand.simulation import Comparison, Summary
from evenhand.simulation.comparison import upper_limit
from evenhand.simulation.named import LEARNERS
from evenhand.simulation.study import Study

BANDIT = "two-phase"
COMMIT = "explore-then-commit-same"


@dataclass(frozen=True, eq=False)
class Report:
    """The contents of the page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned.
    about : mapping of str to str
        Each learner in words.
    facts : mapping of str to str
        What was run: names and values.
    rate : str
        The name of the rate whose gap was limited.
    command : str
        What to type to repeat the comparison.
    version : str
        The version of evenhand.
    results : str
        The name of the file that holds all numbers.
    """

    comparison: Comparison
    about: Mapping[str, str]
    facts: Mapping[str, str]
    rate: str
    command: str
    version: str
    results: str


@dataclass(frozen=True, eq=False)
class StudyReport:
    """The contents of the page of a study.

    Parameters
    ----------
    study : Study
        What `evenhand.simulation.study.study` returned.
    about : mapping of str to sequence of str
        Each table in words, paragraph by paragraph.
    rate : str
        The name of the rate whose gap was limited.
    command : str
        What to type to repeat the study.
    version : str
        The version of evenhand.
    results : str
        The name of the file that holds all numbers.
    """

    study: Study
    about: Mapping[str, Sequence[str]]
    rate: str
    command: str
    version: str
    results: str


def page(report: Report) -> str:
    """Write the report of a comparison as one HTML page.

    Parameters
    ----------
    report : Report
        What the page shows.

    Returns
    -------
    str
        The page. It loads nothing from elsewhere.

    Raises
    ------
    EvenhandError
        If matplotlib or jinja2 is not installed.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0, 1],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> report = Report(
    ...     comparison, about={"accept-all": "Accepts all applicants."}, facts={"Runs": "2"},
    ...     rate="false positive rate", command="evenhand compare", version="0", results="r.json",
    ... )
    >>> "<h2>The true gap of every policy</h2>" in page(report)
    True
    """
    comparison = report.comparison
    names = [learner.name for learner in comparison.learners]
    population = comparison.environment.get("environment", "a population")
    certified = certified_runs(comparison)
    panels = {
        "regret": (regret_panels(comparison), PANEL),
        "gaps": (gap_panels(comparison), SMALL),
        "certified": (certified and certified_panels(comparison, certified), WIDE),
        "in_sample": (certified and in_sample_panels(comparison, certified), SQUARE),
    }
    drawings = {
        name: _drawn(drawn or [], size, prefix=name[0]) for name, (drawn, size) in panels.items()
    }
    return render(
        "comparison.html",
        title=f"evenhand: {len(names)} learners on {population}",
        findings=findings(comparison, report.rate),
        report=report,
        comparison=comparison,
        rows=comparison.summaries,
        looks=looks(names),
        drawings=drawings,
        same_exploration_note=same_exploration_note(comparison),
    )


def study_page(report: StudyReport) -> str:
    """Write the report of a study as one HTML page, for the person who must decide.

    For each table and limit it reports what each learner cost, how far apart the groups really were
    in its worst round, and how often that was above the limit. The truth is the table's own: its
    rows are the population. Gaps measured on a learner's own labels are never shown.

    Parameters
    ----------
    report : StudyReport
        What the page shows.

    Returns
    -------
    str
        The page. It loads nothing from elsewhere.

    Raises
    ------
    EvenhandError
        If matplotlib or jinja2 is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand.simulation.study import StudyPlan, source_of, study
    >>> lending = source_of("lending")
    >>> plan = StudyPlan((lending,), ("accept-all",), seeds=1, rounds=100, kind="stumps")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study(plan, Path(folder))
    >>> report = StudyReport(
    ...     results, about={}, rate="false positive rate",
    ...     command="evenhand study lending", version="0", results="results.parquet",
    ... )
    >>> "<h2>lending, limit 0.05</h2>" in study_page(report)
    True
    """
    study = report.study
    plan = study.plan
    questions = []
    for number, comparison in enumerate(study.comparisons):
        name = comparison.environment["environment"]
        limit = comparison.limit
        rows = comparison.summaries
        questions.append(
            {
                "heading": f"{name}, {limit:g}",
                "title": f"{name}, limit {limit:g}",
                "about": report.about.get(name, ()),
                "rows": rows,
                "cheaper_than_allowed": any(
                    row.runs_above and (row.regret_over_constant or 0.0) < 0 for row in rows
                ),
                "drawings": _drawn(study_panels(comparison), STUDY_PANEL, f"s{number}"),
            }
        )
    tables = f"{len(plan.sources)} table{'s' * (len(plan.sources) > 1)}"
    return render(
        "study.html",
        title=f"evenhand study: {len(plan.learners)} learners on {tables}",
        findings=study_findings(study),
        report=report,
        plan=plan,
        looks=looks(plan.learners),
        questions=questions,
        rules=f"{plan.kind}: {summary(CLASSES[plan.kind])}",
        rate_meaning=" and ".join(
            f"of the {rate.denominator_name}, the share that is "
            + ("accepted" if rate.sign > 0 else "rejected")
            for rate in as_rates(plan.rates)
        ),
        about_learners={name: LEARNERS[name].text for name in plan.learners},
        upper_limit=upper_limit(0, plan.seeds),
    )


def _drawn(panels: Sequence[Panel], size: tuple[float, float], prefix: str) -> list[str]:
    return [inline_svg(panel, size, f"{prefix}{i}") for i, panel in enumerate(panels)]


def render(template: str, **values: object) -> str:
    """A page from one of the templates beside this module; everything but drawings is escaped."""
    require("jinja2")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    def number(value: float, specification: str) -> str:
        text = format(value, specification)
        return "\u2212" + text[1:] if text.startswith("-") else text

    environment = Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(number=number, percent=percent, css_variable=css_variable)
    return environment.get_template(template).render(style=style(), **values)


# what was found, in sentences that say no more than was measured


def findings(comparison: Comparison, rate: str) -> list[str]:
    """Who kept the limit, who did not, and who had the least regret.

    `rate` is the name of the rate whose gap was limited.
    """
    rows = comparison.summaries
    limit = f"{comparison.limit:g}"
    sentences = []
    kept = [row.name for row in rows if row.guaranteed and not row.runs_above]
    if kept:
        sentences.append(
            f"Certified, and never above the limit: {_enumerated(kept)} kept the gap in {rate} "
            f"at {limit} or less in every round of all {len(comparison.seeds)} runs"
            f"{' each' * (len(kept) > 1)}."
        )
    for row in rows:
        if row.runs_above:
            above = (
                f"{row.name} was above {limit} in {row.runs_above} of {row.runs} runs and "
                f"{row.rounds_above:.1%} of all rounds (worst gap {row.worst_gap:.3f})"
            )
            if row.guaranteed:
                above += (
                    ", although it is certified; the certificate allows this in a share of "
                    f"{comparison.delta:g} of all runs."
                )
            else:
                above += ". It is not certified to stay below."
            sentences.append(above)
    uncertified = [row.name for row in rows if not row.guaranteed and not row.runs_above]
    if uncertified:
        sentences.append(
            f"Not certified, but not above {limit} in these runs either: "
            f"{_enumerated(uncertified)}. Nothing says that this will stay so."
        )
    learning = [row for row in rows if row.guaranteed and row.explored_rounds]
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
        "Most of the regret of a two-phase learner is its exploration, which the limit asks for. "
        "Explore-then-commit with the same exploration keeps the same limit, and on easy "
        "populations, where the exploration sample already shows the best policy, it is hard to "
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
    mean = float(differences.mean())
    runs = len(differences)
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
    for comparison in study.comparisons:
        name = comparison.environment["environment"]
        sentences = " ".join(_study_sentences(comparison, comparison.summaries))
        findings.append(f"{name}, limit {comparison.limit:g}: {sentences}")
    return findings


def _study_sentences(comparison: Comparison, rows: Sequence[Summary]) -> list[str]:
    sentences = []
    kept = ", ".join(
        f"{row.name} (worst true gap {row.worst_gap:.3f})"
        for row in rows
        if row.guaranteed and not row.runs_above and row.name != "accept-all"
    )
    if kept:
        sentences.append(f"certified, and within the limit in every round of every run: {kept}.")
    broken = sorted((row for row in rows if row.runs_above), key=lambda row: -row.worst_gap)
    if broken:
        gaps = ", ".join(f"{row.name} {row.worst_gap:.2f}" for row in broken)
        sentences.append(f"Went above it, with a worst true gap of: {gaps}.")
    uncertified = [row.name for row in rows if not row.guaranteed and not row.runs_above]
    if uncertified:
        names = ", ".join(uncertified)
        uncertain = "Not above it in these runs, but not certified, so nothing says it stays so"
        sentences.append(f"{uncertain}: {names}.")
    certified = next((row for row in rows if row.name == "certified"), None)
    if certified is not None:
        ratio = certified.regret_over_constant
        if ratio is None:
            nothing = "No policy within the limit beats the better constant"
            sentences.append(f"{nothing}, so there is nothing to learn here.")
        else:
            saved = f"{1 - ratio:.0%} of that difference"
            sentences.append(
                f"The best fair policy in hindsight costs {comparison.optimum:.4f} per person, the "
                f"better constant {comparison.constant:.4f}; over its whole run, audits and "
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

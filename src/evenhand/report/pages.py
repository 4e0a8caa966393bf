"""The reports of a comparison and of a study: each one HTML page that needs nothing else.

The words of the pages are in the templates beside this module. Everything that a template shows is
escaped; only the drawings, which are made here, are put in as they are. jinja2 is imported when a
page is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.report.certified_figures import (
    SQUARE,
    WIDE,
    certified_panels,
    certified_runs,
    in_sample_panels,
    promise_cost_panel,
)
from evenhand.report.drawing import LINE_COLOURS, Panel, css_variable, inline_svg, looks, require
from evenhand.report.findings import findings, percent, same_exploration_note, study_findings
from evenhand.report.run_figures import (
    PANEL,
    SMALL,
    STUDY_PANEL,
    gap_panels,
    regret_panels,
    study_panels,
    tradeoff_panels,
)
from evenhand.simulate import Comparison, PromiseCost, Tradeoff
from evenhand.simulate.compare import upper_limit
from evenhand.simulate.named import LEARNERS
from evenhand.simulate.study import Study

RATE_MEANINGS = {
    "false positive rate": "of the people with the bad outcome, the share that is accepted",
    "false negative rate": "of the people with the good outcome, the share that is rejected",
    "selection rate": "of all people, the share that is accepted",
}
RULES = {
    "linear": "linear: a logistic fit with the best cut-off",
    "stumps": "stumps: one column, one cut",
    "tree": "trees of depth 5",
    "lightgbm": "boosted trees (LightGBM)",
}


@dataclass(frozen=True, eq=False)
class Report:
    """What the page of a comparison is made of.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulate.compare` returned.
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
    tradeoff : Tradeoff, optional
        What `evenhand.simulate.tradeoff` returned.
    promise_cost : PromiseCost, optional
        What `evenhand.simulate.promise_cost` returned.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulate import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> report = Report(
    ...     comparison, about={"accept-all": "Accepts everybody."}, facts={"Runs": "1"},
    ...     rate="false positive rate", command="evenhand compare", version="0", results="r.json",
    ... )
    >>> report.tradeoff is None
    True
    """

    comparison: Comparison
    about: Mapping[str, str]
    facts: Mapping[str, str]
    rate: str
    command: str
    version: str
    results: str
    tradeoff: Tradeoff | None = None
    promise_cost: PromiseCost | None = None


@dataclass(frozen=True, eq=False)
class StudyReport:
    """What the page of a study is made of.

    Parameters
    ----------
    study : Study
        What `evenhand.simulate.study.study` returned.
    about : mapping of str to sequence of str
        Each table in words. A line that starts with "Caveat:" or "Note:" becomes a paragraph.
    rate : str
        The name of the rate whose gap was limited.
    command : str
        What to type to repeat the study.
    version : str
        The version of evenhand.
    results : str
        The name of the file that holds all numbers.

    Examples
    --------
    >>> from evenhand.simulate.study import Source, Study, StudyPlan
    >>> plan = StudyPlan((Source("loans"),), ("certified",), seeds=1, rounds=1000)
    >>> report = StudyReport(
    ...     Study(plan, rows=(), seconds=()), about={"loans": ["1,000 loans.", "Caveat: old."]},
    ...     rate="false positive rate", command="evenhand study loans", version="0",
    ...     results="results.parquet",
    ... )
    >>> report.study.plan.rounds
    1000
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
    >>> from evenhand.simulate import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0, 1],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> report = Report(
    ...     comparison, about={"accept-all": "Accepts everybody."}, facts={"Runs": "2"},
    ...     rate="false positive rate", command="evenhand compare", version="0", results="r.json",
    ... )
    >>> "<h2>The true gap of every policy</h2>" in page(report)
    True
    """
    comparison = report.comparison
    names = [learner.name for learner in comparison.learners]
    population = comparison.environment.get("environment", "a population")
    drawings = {
        "regret": _drawn(regret_panels(comparison), PANEL, "r"),
        "gaps": _drawn(gap_panels(comparison), SMALL, "g"),
        "certified": [],
        "in_sample": [],
        "promise_cost": [],
        "tradeoff": [],
    }
    certified = certified_runs(comparison)
    if certified is not None:
        drawings["certified"] = _drawn(certified_panels(comparison, certified), WIDE, "c")
        drawings["in_sample"] = _drawn(in_sample_panels(comparison, certified), SQUARE, "i")
    if report.promise_cost is not None:
        panel = promise_cost_panel(report.promise_cost)
        drawings["promise_cost"] = _drawn([panel], (6.4, 4.2), "p")
    if report.tradeoff is not None:
        drawings["tradeoff"] = _drawn(tradeoff_panels(report.tradeoff), PANEL, "t")
    return _render(
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

    For each table and limit it tells what each learner cost, how far apart the groups really were
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
    >>> from evenhand.simulate.study import Source, Study, StudyPlan
    >>> plan = StudyPlan((Source("loans"),), ("certified",), seeds=1, rounds=1000)
    >>> row = {
    ...     "table": "loans", "limit": 0.05, "learner": "certified", "seed": 0, "error": 0.2,
    ...     "optimum": 0.15, "constant": 0.25, "regret_over_constant": 0.4, "worst_gap": 0.03,
    ...     "rounds_above": 0.0, "audit_share": 0.1, "accepted_share": 0.6, "promised": True,
    ...     "curve_rounds": [100, 1000], "curve_loss": [0.25, 0.19], "curve_gap": [0.0, 0.03],
    ... }
    >>> report = StudyReport(
    ...     Study(plan, (row,), (1.0,)), about={}, rate="false positive rate",
    ...     command="evenhand study loans", version="0", results="results.parquet",
    ... )
    >>> "saved 60% of that difference" in study_page(report)
    True
    """
    study, plan = report.study, report.study.plan
    questions = []
    for number, question in enumerate(plan.questions):
        name, limit = question.source.name, question.limit
        cells = [study.of(name, limit, learner) for learner in plan.learners]
        lines = report.about.get(name, ())
        alone = [line for line in lines if line.startswith(("Caveat:", "Note:"))]
        together = " ".join(line for line in lines if line not in alone)
        questions.append(
            {
                "heading": f"{name}, {limit:g}",
                "title": f"{name}, limit {limit:g}",
                "about": [text for text in (together, *alone) if text],
                "cells": cells,
                "cheaper_than_allowed": any(
                    cell.runs_above and cell.mean("regret_over_constant") < 0 for cell in cells
                ),
                "drawings": _drawn(study_panels(cells, limit), STUDY_PANEL, f"s{number}"),
            }
        )
    tables = f"{len(plan.sources)} table{'s' * (len(plan.sources) > 1)}"
    return _render(
        "study.html",
        title=f"evenhand study: {len(plan.learners)} learners on {tables}",
        findings=study_findings(study),
        report=report,
        plan=plan,
        looks=looks(plan.learners),
        questions=questions,
        rules=RULES.get(plan.kind, plan.kind),
        rate_meaning=RATE_MEANINGS.get(report.rate),
        about_learners={name: LEARNERS[name].text for name in plan.learners},
        upper_limit=upper_limit(0, plan.seeds),
    )


def _drawn(panels: Sequence[Panel], size: tuple[float, float], prefix: str) -> list[str]:
    return [inline_svg(panel, size, f"{prefix}{i}") for i, panel in enumerate(panels)]


def _render(template: str, **values: Any) -> str:
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
    return environment.get_template(template).render(line_colours=LINE_COLOURS, **values)

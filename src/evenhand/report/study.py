"""The report of a study, for the person who must decide: one HTML page that needs nothing else.

Per table and limit: what each learner cost, how far apart the groups really were in its worst round, and how often that was above the
limit. The truth is the table's own: its rows are the population. Gaps measured on a learner's own labels are never shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

import numpy as np

from evenhand.report.palette import css_variables, looks, variable
from evenhand.report.study_panels import study_figures
from evenhand.simulate.catalogue import LEARNERS
from evenhand.simulate.compare import upper_limit
from evenhand.simulate.study import Cell, Study

HEADS = (
    "learner", "certified", "error", "regret / best constant's", "worst true gap", "runs above the limit",
    "rounds above the limit", "audits", "accepted", "seconds per run",
)  # fmt: skip
MEANING = {
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
class StudyReport:
    """What the page is made of. about: each table in words (name -> lines); command repeats the study."""

    study: Study
    about: Mapping[str, Sequence[str]]
    rate: str
    command: str
    version: str
    results: str


def study_page(report: StudyReport) -> str:
    """The whole page."""
    plan = report.study.plan
    title = f"evenhand study: {len(plan.learners)} learners on {len(plan.sources)} table{'s' * (len(plan.sources) > 1)}"
    body = [f"<h1>{escape(title)}</h1>", _list(study_findings(report)), _glance(report.study), _what(report)]
    body += [_question(report, i, name, limit) for i, (name, limit) in enumerate(_questions(report.study))]
    body += [_learners(plan.learners), _notes(report)]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>\n{_css()}</style>\n</head>\n<body>\n<main>\n{chr(10).join(body)}\n</main>\n</body>\n</html>\n"
    )


def study_findings(report: StudyReport) -> list[str]:
    """Who kept the limit, who did not, and what keeping it cost: sentences that say no more than was measured."""
    found = []
    for name, limit in _questions(report.study):
        cells = [report.study.of(name, limit, learner) for learner in report.study.plan.learners]
        found.append(f"{name}, limit {limit:g}: {_kept(cells)}{_broken(cells)}{_lucky(cells)}{_price(cells)}")
    return found


def _kept(cells: Sequence[Cell]) -> str:
    kept = [cell for cell in cells if cell.promised and not cell.runs_above and cell.learner != "accept-all"]
    if not kept:
        return ""
    told = ", ".join(f"{cell.learner} (worst true gap {cell.worst_gap:.3f})" for cell in kept)
    return f"certified, and within the limit in every round of every run: {told}. "


def _broken(cells: Sequence[Cell]) -> str:
    broken = sorted((cell for cell in cells if cell.runs_above), key=lambda cell: -cell.worst_gap)
    told = ", ".join(f"{cell.learner} {cell.worst_gap:.2f}" for cell in broken)
    return f"Went above it, with a worst true gap of: {told}. " if broken else ""


def _lucky(cells: Sequence[Cell]) -> str:
    lucky = [cell.learner for cell in cells if not cell.promised and not cell.runs_above]
    return (
        f"Not above it in these runs, but not certified, so nothing says it stays so: {', '.join(lucky)}. "
        if lucky
        else ""
    )


def _price(cells: Sequence[Cell]) -> str:
    certified = next((cell for cell in cells if cell.learner == "certified"), None)
    if certified is None:
        return ""
    first, ratio = certified.rows[0], certified.mean("regret_over_constant")
    if np.isnan(ratio):
        return "No policy within the limit beats the better constant, so there is nothing to learn here."
    saved = f"saved {1 - ratio:.0%} of that difference" if ratio < 1 else "saved nothing of that difference yet"
    return (
        f"The best fair policy in hindsight costs {first['optimum']:.4f} per person, the better constant {first['constant']:.4f}; over its "
        f"whole life, audits and learning included, the certified learner {saved}."
    )


def _glance(found: Study) -> str:
    """One row per learner, one column per table and limit: the worst true gap, and the share of rounds above the limit."""
    asked, chosen = _questions(found), looks(list(found.plan.learners))
    head = "".join(f'<th scope="col">{escape(f"{name}, {limit:g}")}</th>' for name, limit in asked)
    rows = [
        f"<tr><td>{_chip(chosen[learner].colour)}{escape(learner)}</td>"
        + "".join(f"<td>{_verdict(found.of(name, limit, learner))}</td>" for name, limit in asked)
        + "</tr>"
        for learner in found.plan.learners
    ]
    told = (
        "The worst true gap of all rounds of all runs; where it is above the limit, with the share of rounds that were."
    )
    return _section(
        "Who kept the limit",
        f'<div class="scroll"><table>\n<thead><tr><th scope="col">learner</th>{head}</tr></thead>\n<tbody>\n'
        f'{chr(10).join(rows)}\n</tbody></table></div>\n<p class="note">{escape(told)}</p>',
    )


def _verdict(cell: Cell) -> str:
    if cell.runs_above:
        above = f"{cell.worst_gap:.3f}, {percent(cell.mean('rounds_above'))} of rounds"
        return f'<span class="broken">{escape(above)}</span>'
    return f'<span class="kept">{cell.worst_gap:.3f}</span>' + (", certified" if cell.promised else ", not certified")


def percent(share: float) -> str:
    """A share in whole percent; what is neither nothing nor everything never looks as if it were."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{share:.0%}"


def _what(report: StudyReport) -> str:
    plan = report.study.plan
    facts = {
        "tables": ", ".join(source.name for source in plan.sources),
        "rules": RULES.get(plan.kind, plan.kind),
        "rate": report.rate + (f": {MEANING[report.rate]}" if report.rate in MEANING else ""),
        "limits": ", ".join(f"{limit:g}" for limit in plan.limits),
        "rounds": f"{plan.rounds:,} people in each run, drawn from the table with replacement",
        "runs": f"{plan.seeds} for each learner, table and limit; seeds {plan.first_seed} to {plan.first_seed + plan.seeds - 1}",
        "failure probability": f"{plan.failure_probability:g} over a whole life",
        "prices": f"{plan.false_accept:g} for a false accept, {plan.false_reject:g} for a false reject",
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return _section("What was run", f'<dl class="facts">{rows}</dl>')


def _question(report: StudyReport, number: int, name: str, limit: float) -> str:
    cells = [report.study.of(name, limit, learner) for learner in report.study.plan.learners]
    about = "".join(f"<p>{escape(line)}</p>" for line in _paragraphs(report.about.get(name, ())))
    return _section(f"{name}, limit {limit:g}", about + _table(cells) + study_figures(cells, limit, number))


def _paragraphs(lines: Sequence[str]) -> list[str]:
    """What one must know before using the table stands alone; the other facts are one paragraph."""
    alone = [line for line in lines if line.startswith(("Caveat:", "Note:"))]
    return [text for text in (" ".join(line for line in lines if line not in alone), *alone) if text]


def _table(cells: Sequence[Cell]) -> str:
    chosen = looks([cell.learner for cell in cells])
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADS)
    rows = "\n".join(_row(cell, chosen[cell.learner].colour) for cell in cells)
    grid = f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    return grid + (f'\n<p class="note">{escape(BELOW_ZERO)}</p>' if any(_cheaper(cell) for cell in cells) else "")


BELOW_ZERO = (
    "A regret below zero is cheaper than the best policy within the limit. A learner that went above the limit did not play by it: its "
    "cost is not one that could have been had within the limit."
)


def _cheaper(cell: Cell) -> bool:
    return cell.runs_above > 0 and cell.mean("regret_over_constant") < 0


def _row(cell: Cell, colour: str) -> str:
    spread = cell.error("regret_over_constant")
    ratio = cell.mean("regret_over_constant")
    verdict = "broken" if cell.runs_above else "kept"
    values = [
        _chip(colour) + escape(cell.learner),
        "yes" if cell.promised else "no",
        f"{cell.mean('error'):.4f}",
        "" if np.isnan(ratio) else _minus(f"{ratio:.2f}" + ("" if spread is None else f" ± {spread:.2f}")),
        f'<span class="{verdict}">{cell.worst_gap:.3f}</span>',
        f'<span class="{verdict}">{cell.runs_above} of {len(cell.rows)}</span>',
        f'<span class="{verdict}">{escape(percent(cell.mean("rounds_above")))}</span>',
        f"{cell.mean('audit_share'):.1%}",
        f"{cell.mean('accepted_share'):.0%}",
        f"{float(np.mean(cell.seconds)):.1f}",
    ]
    return "<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>"


def _learners(names: Sequence[str]) -> str:
    chosen = looks(list(names))
    items = "".join(
        f"<dt>{_chip(chosen[name].colour)}{escape(name)}</dt><dd>{escape(LEARNERS[name].text)}</dd>" for name in names
    )
    return _section("The learners", f'<dl class="learners">{items}</dl>')


def _notes(report: StudyReport) -> str:
    plan = report.study.plan
    bound = upper_limit(0, plan.seeds)
    texts = [
        "Certified: with probability at least "
        f"{1 - plan.failure_probability:g} over its whole life, every policy that the learner deploys has a gap of at most the limit, if "
        "people are independent draws of one population that does not change, and labels of accepted people are true and do arrive. "
        f"Runs alone prove little: 0 of {plan.seeds} runs above the limit means a chance below {bound:.0%} (95% confidence).",
        "Regret: what a learner cost beyond the best policy of the class whose gap is within the limit, found with all labels in "
        "hindsight; 1.00 is as costly as the better of accepting or rejecting everybody. For fitted rules that policy is the best that "
        "was found, not a proven optimum; below zero means that somebody found a cheaper one, or broke the limit.",
        "Audits: the share of rounds decided by accepting whoever came. All gaps are true gaps on the whole table, never those on labels "
        "that a learner happened to gather. Seconds are those of the whole simulation, with the true gaps measured on all rows: they are "
        "no comparison of speed, least of all for VW, which is asked row by row.",
        f"Every number is in {report.results}, in the same folder, and in journal.jsonl; run the same command again and nothing is "
        f"computed twice. Made with evenhand {report.version}.",
    ]
    told = "\n".join(f"<p>{escape(text)}</p>" for text in texts)
    return _section("How to read and repeat this", f"{told}\n<pre>{escape(report.command)}</pre>")


def _questions(found: Study) -> list[tuple[str, float]]:
    return [(question.source.name, question.limit) for question in found.plan.questions]


def _css() -> str:
    sheet = (resources.files("evenhand") / "report" / "page.css").read_text(encoding="utf-8")
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {css_variables(dark=True)} }} }}"
    return f"{sheet}:root {{ {css_variables(dark=False)} }}\n{dark}\n"


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def _list(items: Sequence[str]) -> str:
    return '<ul class="findings">' + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _chip(colour: str) -> str:
    return f'<span class="chip" style="background: var({variable(colour)})"></span>'


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")

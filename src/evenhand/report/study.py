"""The report of a study, for the person who must decide: one HTML page that needs nothing else.

Per table and limit: what each learner cost, how far apart the groups really were in its worst round, and how often that was above the
limit. The truth is the table's own: its rows are the population. Gaps measured on a learner's own labels are never shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from evenhand.report.palette import ALARM, MUTED, Look, css_variables, looks, variable
from evenhand.report.runs import SMALL, Draw, inline_svg
from evenhand.simulate.compare import upper_limit
from evenhand.simulate.study import LEARNERS, Cell, Study
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADS = (
    "learner", "certified", "error", "regret / best constant's", "worst true gap", "runs above the limit",
    "rounds above the limit", "audits", "accepted", "seconds per run",
)  # fmt: skip


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
    body = [f"<h1>{escape(title)}</h1>", _list(study_findings(report)), _what(report)]
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
    told = ", ".join(f"{cell.learner} (worst {cell.worst_gap:.3f})" for cell in kept)
    return f"in every round of every run certified and within the limit: {told}. "


def _broken(cells: Sequence[Cell]) -> str:
    broken = [cell for cell in cells if cell.runs_above]
    if not broken:
        return ""
    told = ", ".join(
        f"{cell.learner} (worst {cell.worst_gap:.2f}, {cell.mean('rounds_above'):.0%} of rounds)" for cell in broken
    )
    return f"Above it: {told}. "


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
    saved = 1.0 - ratio
    verdict = (
        f"{saved:.0%} of it was saved" if saved > 0 else "nothing of it was saved yet: it cost more than the constant"
    )
    return (
        f"The best fair policy in hindsight costs {first['optimum']:.4f} per person, the better constant {first['constant']:.4f}; of the "
        f"difference the certified learner's whole life, audits and learning included, left {ratio:.0%}: {verdict}."
    )


def _what(report: StudyReport) -> str:
    plan = report.study.plan
    facts = {
        "tables": ", ".join(source.name for source in plan.sources),
        "rules": plan.kind,
        "rate": report.rate,
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
    about = "".join(f"<p>{escape(line)}</p>" for line in report.about.get(name, ()))
    return _section(f"{name}, limit {limit:g}", about + _table(cells) + _figures(cells, limit, number))


def _table(cells: Sequence[Cell]) -> str:
    chosen = looks([cell.learner for cell in cells])
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADS)
    rows = "\n".join(_row(cell, chosen[cell.learner].colour) for cell in cells)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


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
        f'<span class="{verdict}">{cell.mean("rounds_above"):.0%}</span>',
        f"{cell.mean('audit_share'):.1%}",
        f"{cell.mean('accepted_share'):.0%}",
        f"{float(np.mean(cell.seconds)):.1f}",
    ]
    return "<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>"


def _figures(cells: Sequence[Cell], limit: float, number: int) -> str:
    chosen = looks([cell.learner for cell in cells])
    panels: list[tuple[Draw, str]] = [
        (lambda axes: _gap_panel(axes, cells, chosen, limit), "True gap of the deployed policy by round"),
        (lambda axes: _cost_panel(axes, cells, chosen), "Mean cost per person so far by round"),
    ]
    svgs = [
        inline_svg(draw, (SMALL[0] * 1.5, SMALL[1] * 1.4), f"s{number}{i}").replace(
            "<svg", f'<svg role="img" aria-label="{escape(label)}"', 1
        )
        for i, (draw, label) in enumerate(panels)
    ]
    caption = (
        "Left: the true gap of the policy deployed at each round, in the worst of all runs; above the dashed line the limit is broken. "
        "Right: what a person has cost on average up to that round, mean over runs; dotted: the better constant, and the best fair policy "
        "in hindsight."
    )
    return f'<figure><div class="panels">{"".join(svgs)}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _grid(cells: Sequence[Cell]) -> FloatArray:
    return np.geomspace(100, max(cells[0].rows[0]["curve_rounds"]), 160)


def _gap_panel(axes: "Axes", cells: Sequence[Cell], chosen: Mapping[str, Look], limit: float) -> None:
    grid = _grid(cells)
    for cell in cells:
        curves = [_step(row["curve_rounds"], row["curve_gap"], grid) for row in cell.rows]
        look = chosen[cell.learner]
        axes.plot(grid, np.max(curves, axis=0), color=look.colour, ls=look.dash, lw=look.width, label=cell.learner)
    axes.axhline(limit, color=ALARM, ls=(0, (4, 2)), lw=1.2)
    axes.set(
        xscale="log", xlabel="people decided about", ylabel="true gap, worst run", title="How far apart the groups were"
    )
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=8)


def _cost_panel(axes: "Axes", cells: Sequence[Cell], chosen: Mapping[str, Look]) -> None:
    grid, first = _grid(cells), cells[0].rows[0]
    for cell in cells:
        curves = [_mean_so_far(row["curve_rounds"], row["curve_loss"], grid) for row in cell.rows]
        look = chosen[cell.learner]
        axes.plot(grid, np.mean(curves, axis=0), color=look.colour, ls=look.dash, lw=look.width)
    for level in (first["constant"], first["optimum"]):
        axes.axhline(level, color=MUTED, ls=(0, (1, 1.6)), lw=1.0)
    top = 1.6 * first["constant"] - 0.6 * min(first["optimum"], *(float(cell.mean("last_error")) for cell in cells))
    axes.set(xscale="log", xlabel="people decided about", ylabel="cost per person so far", title="What it cost")
    axes.set_ylim(top=max(top, 1.02 * first["constant"]))


def _step(rounds: Sequence[int], values: Sequence[float], grid: FloatArray) -> FloatArray:
    return np.asarray(values)[np.minimum(np.searchsorted(rounds, grid), len(values) - 1)]


def _mean_so_far(rounds: Sequence[int], losses: Sequence[float], grid: FloatArray) -> FloatArray:
    ends = np.r_[0, rounds]
    total = np.r_[0.0, np.cumsum(np.diff(ends) * np.asarray(losses))]
    return np.asarray(np.interp(grid, ends, total) / grid)


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
        "that a learner happened to gather.",
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

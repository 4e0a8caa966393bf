"""The report of a comparison: one HTML page that needs nothing else, neither network nor files beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from evenhand.report.certified import (
    SQUARE,
    WIDE,
    certified_panels,
    certified_runs,
    draw_promise_cost,
    in_sample_panels,
)
from evenhand.report.findings import findings, same_exploration_note
from evenhand.report.palette import css_variables, looks, variable
from evenhand.report.runs import PANEL, SMALL, gap_panels, inline_svg, regret_panels, tradeoff_panels
from evenhand.simulate import Comparison, LearnerRuns, PromiseCost, Summary, Tradeoff


@dataclass(frozen=True, eq=False)
class Report:
    """What a page is made of. `about`: each learner in words; `facts`: what was run; `command` repeats it."""

    comparison: Comparison
    about: Mapping[str, str]
    facts: Mapping[str, str]
    rate: str
    command: str
    version: str
    results: str
    tradeoff: Tradeoff | None = None
    promise_cost: PromiseCost | None = None


def page(report: Report) -> str:
    """The whole page."""
    names = [learner.name for learner in report.comparison.learners]
    certified = certified_runs(report.comparison)
    title = f"evenhand: {len(names)} learners on {report.comparison.environment.get('environment', 'a population')}"
    body = "\n".join(
        [
            f"<h1>{escape(title)}</h1>",
            _list(findings(report.comparison, report.rate), "findings"),
            _section("What was run", _facts(report.facts)),
            _section("The promise", _promise(report)),
            _section("Results", _table(report.comparison) + _table_notes(report.comparison)),
            _section("Regret", _regret(report.comparison)),
            _section("The true gap of every policy", _gaps(report)),
            *([_section("Certified at every round", _certified(report, certified))] if certified else []),
            *([_section("What the promise costs", _promise_cost(report.promise_cost))] if report.promise_cost else []),
            *([_section("The trade-off", _tradeoff(report.tradeoff))] if report.tradeoff else []),
            _section("The learners", _learners(report)),
            _section("Is the bandit worth it?", _paragraphs(same_exploration_note(report.comparison))),
            _section("How to repeat this", _repeat(report)),
        ]
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>\n{_css()}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _css() -> str:
    sheet = (resources.files("evenhand") / "report" / "page.css").read_text(encoding="utf-8")
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {css_variables(dark=True)} }} }}"
    return f"{sheet}:root {{ {css_variables(dark=False)} }}\n{dark}\n"


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def _list(items: Sequence[str], kind: str) -> str:
    return f'<ul class="{kind}">' + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _paragraphs(texts: Sequence[str], kind: str = "") -> str:
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{escape(text)}</p>" for text in texts)


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _promise(report: Report) -> str:
    told = report.comparison
    sure = 1 - told.failure_probability
    return _paragraphs(
        [
            f"The gap of a policy is the difference between the groups in {report.rate}, on the whole population and not only on "
            "the people whose labels were seen. The promise: with probability at least "
            f"{sure:g} over the whole life of a learner, every policy that it deploys, in every round, has a gap of at most "
            f"{told.promise:g}.",
            "This is certified under these assumptions: people are independent draws from one population that does not change; the "
            "label of an accepted person is the truth and does arrive; each person was accepted with a probability that is known, and "
            "with certainty in the rounds of an exploration; the bound on the sampling error holds for all rules of the class at once. "
            "Outside of these assumptions nothing is promised.",
            "A policy is a mixture of rules, and the gap is that of the mixture. The group is used to measure the gap and never "
            "shown to a rule.",
        ]
    )


HEADS = (
    "learner", "certified", "regret at the end", "regret in its own set", "worst true gap", "runs above the promise",
    "rounds above the promise", "accepted", "rounds explored", "oracle calls", "seconds per run",
)  # fmt: skip


def _table(comparison: Comparison) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADS)
    chosen = looks([learner.name for learner in comparison.learners])
    rows = "\n".join(_row(row, chosen[row.name].colour) for row in comparison.summaries)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _row(row: Summary, colour: str) -> str:
    error = "" if row.regret_error is None else f" ± {row.regret_error:,.0f}"
    verdict = "broken" if row.runs_above else "kept"
    cells = [
        _chip(colour) + escape(row.name),
        "yes" if row.promised else "no",
        _minus(f"{row.regret:,.0f}{error}"),
        "" if row.regret_in_set is None else f"{row.regret_in_set:,.0f}",
        f'<span class="{verdict}">{row.worst_gap:.3f}</span>',
        f'<span class="{verdict}">{row.runs_above} of {row.runs}</span>',
        f'<span class="{verdict}">{row.rounds_above:.1%}</span>',
        f"{row.accepted_share:.0%}",
        f"{row.explored_rounds:,.0f}",
        f"{row.oracle_calls:,.0f}",
        f"{row.seconds:.2f}",
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _chip(colour: str) -> str:
    return f'<span class="chip" style="background: var({variable(colour)})"></span>'


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


def _table_notes(comparison: Comparison) -> str:
    rows = comparison.summaries
    clean = [row for row in rows if not row.runs_above]
    notes = [
        f"Regret counts errors beyond those of the best policy with a gap of at most {comparison.regret_gap:g} (which errs on "
        f"{comparison.optimum:.2%} of the people); ± is one standard error over {len(comparison.seeds)} runs. Below zero is possible "
        "for a policy with a larger gap than that. Its own set: the policies that a learner allowed itself after its exploration; "
        "that column counts the later rounds alone, against the best of these. Certified: whether the learner's own bound covers "
        "the promise.",
    ]
    if clean:
        notes.append(
            f"Runs alone prove little: 0 of {clean[0].runs} above the promise means a chance below {clean[0].runs_above_upper:.0%} (95% "
            "confidence, Clopper and Pearson). What certifies the promise is the bound, not this table."
        )
    notes += [
        f"{row.name} was still exploring at the end of {row.exploring} of {row.runs} runs."
        for row in rows
        if row.exploring
    ]
    return _paragraphs(notes, "note")


def _figure(svgs: Sequence[str], caption: str, kind: str = "panels") -> str:
    return f'<figure><div class="{kind}">{"".join(svgs)}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _accessible(svg: str, label: str) -> str:
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _regret(comparison: Comparison) -> str:
    labels = ("Regret of each learner by round", "Regret of each learner by round, logarithmic axes")
    svgs = [
        _accessible(inline_svg(draw, PANEL, f"r{i}"), label)
        for i, (draw, label) in enumerate(zip(regret_panels(comparison), labels, strict=True))
    ]
    caption = (
        f"Cumulative regret: the mean of {len(comparison.seeds)} runs; bands hold the middle 80% of them. While a learner explores "
        "it accepts everybody, and its regret grows like that of accept-all. Lines that leave the frame carry the value at which "
        "they end; learners that end below zero are left out on the logarithmic axes."
    )
    return _figure(svgs, caption)


def _gaps(report: Report) -> str:
    told = report.comparison
    svgs = [
        _accessible(inline_svg(draw, SMALL, f"g{i}"), f"True gap by round: {learner.name}")
        for i, (draw, learner) in enumerate(zip(gap_panels(told), told.learners, strict=True))
    ]
    caption = (
        f"The true gap in {report.rate} of the policy of each round, known here because the population is. Thin: each of "
        f"{len(told.seeds)} runs; bold: the run with the largest gap. Dashed: the promise of {told.promise:g}; no round of a "
        f"certified learner may lie in the shaded part, except with probability {told.failure_probability:g}."
    )
    return _figure(svgs, caption, "panels small")


def _certified(report: Report, learner: LearnerRuns) -> str:
    told = report.comparison
    labels = ("Certified and true gap by round", "Weight of the learned policy and of the audit coin by round")
    svgs = [
        _accessible(inline_svg(draw, WIDE, f"c{i}"), label)
        for i, (draw, label) in enumerate(zip(certified_panels(told, learner), labels, strict=True))
    ]
    caption = (
        f"Left: in each round, the largest gap in {report.rate} that the learner's certificate still allowed for the deployed "
        "policy, and that policy's true gap, which only a simulation can know. Thin: each run; bold: the run with the largest true gap. "
        "Right: the mean weight of the learned policy and of the audit coin, which accepts people whatever their features; the rest "
        "rejects everybody. Constants have a gap of exactly 0, so a policy that is mostly constant is certified at once, and evidence "
        "moves weight."
    )
    measured = [
        _accessible(inline_svg(draw, SQUARE, f"i{i}"), "Gap on the gathered labels against the true gap")
        for i, draw in enumerate(in_sample_panels(told, learner))
    ]
    beside = (
        "Each policy that learned, as a point: across, its gap on the labels gathered before it, as ordinary tools measure it; up, its "
        "true gap. Larger points stood for more rounds. The gathered labels are those of people whom earlier policies accepted. A "
        "policy in the shaded part looks as if it kept the limit, and does not."
    )
    return _figure(svgs, caption) + _figure(measured, beside, "panels small")


def _promise_cost(found: PromiseCost) -> str:
    svg = _accessible(
        inline_svg(lambda axes: draw_promise_cost(axes, found), (6.4, 4.2), "p0"), "Cost of the promise by limit"
    )
    caption = (
        f"The certified learner with other limits, {found.rounds:,} people, means of {len(found.seeds)} runs (bars: least and most). Below "
        "the dashed line: what the limit costs even if the population were known. Between the lines: what it costs to learn and certify "
        "under it, which falls as more people come. The dotted line needs no certificate: it never learns."
    )
    return _figure([svg], caption, "panels one")


def _tradeoff(found: Tradeoff) -> str:
    labels = ("Excess gap against the horizon", "Cost against the horizon")
    svgs = [
        _accessible(inline_svg(draw, PANEL, f"t{i}"), label)
        for i, (draw, label) in enumerate(zip(tradeoff_panels(found), labels, strict=True))
    ]
    caption = (
        "The two-phase learner with an exploration of order T^(2\u03b1) and no promise named beforehand: means over "
        f"{len(found.seeds)} runs for each horizon. First: how far the worst policy of its set exceeds \u03b3 = "
        f"{found.comparator_gap:g}; it cannot exceed the largest gap in the class, which flattens the curves at small T. Second: "
        "regret of the exploration plus regret to the best policy of the set. The slopes are least-squares fits through all points."
    )
    return _figure(svgs, caption)


def _learners(report: Report) -> str:
    chosen = looks([learner.name for learner in report.comparison.learners])
    items = "".join(
        f"<dt>{_chip(chosen[name].colour)}{escape(name)}</dt><dd>{escape(text)}</dd>"
        for name, text in report.about.items()
    )
    return f'<dl class="learners">{items}</dl>'


def _repeat(report: Report) -> str:
    seeds = report.comparison.seeds
    text = (
        f"Seeds {seeds[0]} to {seeds[-1]}; the same seed gives the same run, on any number of processes. Made with evenhand "
        f"{report.version}. Every number behind this page is in {report.results}, in the same folder."
    )
    return f"<pre><code>{escape(report.command)}</code></pre>\n{_paragraphs([text])}"

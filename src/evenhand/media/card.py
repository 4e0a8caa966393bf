"""A result as a model card in Markdown, with the headings of skops' cards."""

from collections.abc import Iterable, Sequence
from datetime import date

from evenhand.media.words import Part, answer, made_with, named, parts
from evenhand.result import Column, Result, Table, Verdict

MISSING = "[More Information Needed]"
"""What only its owner knows is left as skops leaves it, to be filled in."""


def card(result: Result, made: date | None = None) -> str:
    """Write a model card.

    Parameters
    ----------
    result : Result
        What is said.
    made : datetime.date, optional
        When it was made; today by default.

    Returns
    -------
    str
        The card, in Markdown.
    """
    bold = result.verdict is not None
    said = [f"**{_cell(one)}**" if bold and not n else one for n, one in enumerate(answer(result))]
    limits = [f"- {one}" for one in (*result.assumptions, *result.beware, *result.read)]
    asked = _grid(Part("", (Column("", "what"), Column("", "value")), tuple(named(result.asked))))
    evaluation = _table(Table.of_names("facts", "At a glance", result.facts))
    for table in result.tables:
        evaluation += _table(table)
    lines = [
        "---",
        "library_name: evenhand",
        "tags:",
        "- tabular-classification",
        "- fairness",
        "---",
        "",
        "# Model description",
        "",
        _cell(result.title),
        "",
        *(line for one in said for line in (one, "")),
        "## Intended uses & limitations",
        "",
        "The statements of this card hold under these assumptions, and no others are claimed:",
        "",
        *limits,
        "",
        "## Training Procedure",
        "",
        "What was asked, and of which files, is in the next table.",
        "",
        "### Hyperparameters",
        "",
        *(asked if result.asked else [MISSING]),
        "",
        "### Model Plot",
        "",
        *(["```", *result.policy, "```"] if result.policy else [MISSING]),
        "",
        "## Evaluation Results",
        "",
        *evaluation,
        "# How to Get Started with the Model",
        "",
        f"Made on {made_with(made)}.",
        "",
        *(["```bash", result.command, "```"] if result.command else [MISSING]),
        "",
    ]
    for heading in ("Model Card Authors", "Model Card Contact", "Citation"):
        lines += [f"# {heading}", "", MISSING, ""]
    return "\n".join(lines)


def summary(verdict: Verdict) -> str:
    """A verdict with its findings, for the summary of a build.

    Parameters
    ----------
    verdict : Verdict
        What a gate says.

    Returns
    -------
    str
        Markdown: the headline, and a row for each finding.
    """
    return "\n".join([f"**{_cell(verdict.headline)}**", "", *_table(verdict.table, level=0)])


def _table(table: Table, level: int = 3) -> list[str]:
    if not table.rows:
        return []
    found, note = parts(table)
    lines = [f"{'#' * level} {_cell(table.title)}", ""] if level else []
    for one in found:
        lines += [f"**{_cell(one.heading)}**", ""] if one.heading else []
        lines += [*_grid(one), ""]
    return [*lines, note, ""] if note else lines


def _grid(part: Part) -> list[str]:
    heads = [one.head or one.key for one in part.columns]
    return [_row(heads), _row(["---"] * len(heads)), *map(_row, part.rows)]


def _row(cells: Sequence[str] | Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """A pipe or a line break inside a cell must not end it."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())

"""A page to hand over, or a model card, from any record: what was asked, the answer first, the
figures behind it, what it rests on, and how it was made.

`page.html` is one file that needs no network and prints on A4. `card.md` is a model card in the
form of skops' cards (the same headings, metadata on top), so that tools for those read it. Both say
the same, because both are written from `evenhand.report.contents`. jinja2 and matplotlib are
imported when a page is written; a card needs neither.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

from evenhand.errors import InvalidInput
from evenhand.media.drawing import inline_svg, require
from evenhand.report.contents import Contents, PageTable, between, contents
from evenhand.report.pages import render
from evenhand.result import Verdict

PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn")
"""Their versions are on every page."""
VERDICTS = {
    "within": "within what is allowed.",
    "above": "beyond what is allowed.",
    "not shown": "not shown to be within what is allowed, nor beyond it.",
}


@dataclass(frozen=True, eq=False)
class Handover:
    """What is handed over.

    Parameters
    ----------
    title : str
        What it is about.
    contents : Contents
        What is said of the record.
    asked : mapping of str to str
        What was asked: names and values.
    verdict : Verdict or None
        The verdict of a gate.
    policy : tuple of str
        The policy in words, if it is about one.
    command : str
        What to type to make it again; empty if it was made by a program.
    made : datetime.date
        When it was made.
    """

    title: str
    contents: Contents
    asked: Mapping[str, str]
    verdict: Verdict | None
    policy: tuple[str, ...]
    command: str
    made: date

    @property
    def versions(self) -> str:
        """The packages that made it."""
        packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
        return f"{packages}, Python {platform.python_version()}"

    @property
    def day(self) -> str:
        """The date in words, the same in every locale."""
        month = "January February March April May June July August September October November"
        name = [*month.split(), "December"][self.made.month - 1]
        return f"{self.made.day} {name} {self.made.year}"

    @property
    def headline(self) -> str | None:
        """The verdict in a few words; None where nobody asked for one."""
        if self.verdict is None:
            return None
        bounds = {
            f"{'at least' if one.at_least else 'at most'} {one.limit:g}": None
            for one in self.verdict.findings
        }
        said = VERDICTS[self.verdict.status]
        if bounds:
            said = f"{said.rstrip('.')} ({', '.join(bounds)})."
        judged = self.contents.judged
        return f"{judged}: {said}" if judged else f"{said[0].upper()}{said[1:]}"

    @property
    def tables(self) -> tuple[PageTable, ...]:
        """Those of the record, after the findings of the gate."""
        if self.verdict is None or self.contents.shows_status:
            return self.contents.tables
        rows = [
            (
                one.what,
                between((one.low, one.high)),
                f"{'at least' if one.at_least else 'at most'} {one.limit:g}",
                one.status,
            )
            for one in self.verdict.findings
        ]
        heads = ("what", "in the population", "allowed", "status")
        sure = self.verdict.delta
        note = "" if sure is None else f"All of it holds at once with probability {1 - sure:.6g}."
        return (
            PageTable("Beside what is allowed", heads, tuple(rows), note),
            *self.contents.tables,
        )


def write_report(
    record: object,
    path: Path | str,
    *,
    title: str | None = None,
    asked: Mapping[str, str] | None = None,
    verdict: Verdict | None = None,
    policy: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    command: str = "",
    made: date | None = None,
) -> None:
    """Write a record as a page (.html) or as a model card (.md).

    Parameters
    ----------
    record : object
        What `measure`, `certify`, `impact`, `plan`, `evaluate` or another function returned: a
        record with `describe`, `to_frame` and `plot`.
    path : path
        The file; its ending chooses the form.
    title : str, optional
        What it is about; by default what the record is.
    asked : mapping of str to str, optional
        What was asked: the table, the columns, the limit.
    verdict : Verdict, optional
        What `evenhand.evaluation.gate` said.
    policy : sequence of str, optional
        The policy in words, line by line.
    columns : sequence of str, optional
        The names of the columns that rules look at.
    command : str, optional
        What to type to make it again.
    made : datetime.date, optional
        When it was made; today by default.

    Raises
    ------
    InvalidInput
        If the file ends in neither .html nor .md.
    EvenhandError
        If a page is asked for and matplotlib or jinja2 is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.evaluation import measure
    >>> measured = measure([True, False] * 40, ["a", "a", "b", "b"] * 20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     card = Path(folder, "card.md")
    ...     write_report(measured, card, title="Loans of spring", made=date(2026, 3, 1))
    ...     print(card.read_text().splitlines()[7])
    # Model description
    """
    where = Path(path)
    writers = {".html": page, ".md": model_card}
    if where.suffix.lower() not in writers:
        raise InvalidInput(
            f"{where} is neither a page nor a card.",
            hint="page.html is a page to hand over, card.md a model card.",
            argument="path",
        )
    found = contents(record, columns)
    handover = Handover(
        title=title or found.title,
        contents=found,
        asked=dict(asked or {}),
        verdict=verdict,
        policy=tuple(policy),
        command=command,
        made=made or datetime.now(UTC).date(),
    )
    # The text is whole before the file is touched.
    text = writers[where.suffix.lower()](handover)
    where.write_text(text, encoding="utf-8")


def require_writers(path: Path) -> None:
    """Raise an error if a package is missing that the page needs: before the work, not after."""
    if path.suffix.lower() == ".html":
        require("matplotlib", "jinja2")


# the page


def page(handover: Handover) -> str:
    """Write one HTML page that loads nothing from elsewhere.

    Parameters
    ----------
    handover : Handover
        What it says.

    Returns
    -------
    str
        The page.
    """
    drawn = handover.contents.drawn
    drawings = []
    if drawn is not None:
        drawings = [
            inline_svg(panel, drawn.size, f"p{number}") for number, panel in enumerate(drawn.panels)
        ]
    status = handover.verdict.status if handover.verdict is not None else None
    return render(
        "handover.html",
        title=handover.title,
        findings=handover.contents.answer,
        status=status,
        handover=handover,
        contents=handover.contents,
        drawings=drawings,
        caption="" if drawn is None else drawn.caption,
    )


# the model card


def model_card(handover: Handover) -> str:
    """Write a model card in Markdown, with the headings of skops' cards.

    Parameters
    ----------
    handover : Handover
        What it says.

    Returns
    -------
    str
        The card; what only its owner knows is left as skops leaves it, to be filled in.
    """
    missing = "[More Information Needed]"
    found = handover.contents
    answer = list(found.answer)
    if handover.headline is not None:
        answer.insert(0, f"**{handover.headline}**")
    asked = PageTable("", ("what", "value"), tuple(handover.asked.items()))
    policy = ["```", *handover.policy, "```"] if handover.policy else [missing]
    limits = [f"- {text}" for text in (*found.assumptions, *found.beware)]
    evaluation = []
    for table in handover.tables:
        evaluation += [f"### {table.title}", "", *_markdown(table), ""]
    made = f"Made on {handover.day} with {handover.versions}."
    repeat = ["```bash", handover.command, "```"] if handover.command else [missing]
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
        handover.title,
        "",
        *(line for text in answer for line in (text, "")),
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
        *(_markdown(asked) if handover.asked else [missing]),
        "",
        "### Model Plot",
        "",
        *policy,
        "",
        "## Evaluation Results",
        "",
        *evaluation,
        "# How to Get Started with the Model",
        "",
        made,
        "",
        *repeat,
        "",
        "# Model Card Authors",
        "",
        missing,
        "",
        "# Model Card Contact",
        "",
        missing,
        "",
        "# Citation",
        "",
        missing,
        "",
    ]
    return "\n".join(lines)


def _markdown(table: PageTable) -> list[str]:
    """A table in Markdown; a pipe or a line break inside a cell must not end it."""

    def cell(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace("|", "\\|")
        return " ".join(escaped.split())

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(map(cell, cells))} |"

    if table.is_lines:
        return ["```", *(text for (text,) in table.rows), "```"]
    rows = [line(table.heads), line(["---"] * len(table.heads)), *map(line, table.rows)]
    return [*rows, "", table.note] if table.note else rows

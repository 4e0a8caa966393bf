"""What a page says about a record: the answer, tables, a figure, and what it rests on.

One function for each kind of record, and one for every other record with `describe`, `to_frame` and
`plot`. The texts are plain; `evenhand.report.handover` writes them as a page or as a model card.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from evenhand.evaluation import Evaluation
from evenhand.evaluation.evaluate import Estimate
from evenhand.media.drawing import ALARM, INK, LOOKS, MUTED, Panel
from evenhand.report import estimate_figures
from evenhand.shown import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 4
"""So many rates are named in an answer; the tables have all of them."""
LONG = 40
"""A cell with more letters is a sentence, whatever figures are in it."""
MOST_ROWS = 40
"""So many rows of the table of a record that has no page of its own."""


@dataclass(frozen=True)
class PageTable:
    """A table of texts; the first column names the row, `note` stands below."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @property
    def is_named_values(self) -> bool:
        """Whether it is a list of names with their values, and no table of figures."""
        return self.heads == ("", "")

    @property
    def is_lines(self) -> bool:
        """Whether it is a text, line by line."""
        return self.heads == ("",)

    @property
    def textual(self) -> tuple[bool, ...]:
        """Which columns hold words and no figures: they are flush left, and may be broken."""
        columns = [[row[place] for row in self.rows] for place in range(len(self.heads))]
        return tuple(
            not any(map(str.isdigit, "".join(cells))) or max(map(len, cells), default=0) > LONG
            for cells in columns
        )


@dataclass(frozen=True)
class Drawn:
    """Panels side by side, each of a width and height in inches, with a caption."""

    panels: tuple[Panel, ...]
    size: tuple[float, float]
    caption: str


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a page says about a record.

    Parameters
    ----------
    title : str
        What the record is.
    answer : tuple of str
        The answer, in sentences.
    tables : tuple of PageTable
        The figures behind it.
    drawn : Drawn or None
        The picture.
    beware : tuple of str
        What a reader could misread.
    assumptions : tuple of str
        What the answer rests on.
    shows_status : bool
        Whether the tables say of each figure how it stands to what is allowed.
    judged : str
        What a verdict is about, where it is not all that the page shows.
    """

    title: str
    answer: tuple[str, ...]
    tables: tuple[PageTable, ...] = ()
    drawn: Drawn | None = None
    beware: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    shows_status: bool = False
    judged: str = ""


# numbers as a page has them


def fixed(value: float | None, digits: int = 3, sign: str = "") -> str:
    """A number with so many digits and a true minus; nothing for None, and never minus zero.

    >>> fixed(-0.25), fixed(-0.0001), fixed(0.1, 2, "+"), fixed(None), fixed(float("inf"))
    ('\u22120.250', '0.000', '+0.10', '', '\u221e')
    """
    if value is None or isnan(value):
        return ""
    if not isfinite(value):
        return "\u221e" if value > 0 else "\u2212\u221e"
    rounded = round(value, digits) + 0.0
    return f"{rounded:{sign}.{digits}f}".replace("-", "\u2212")


def between(ends: tuple[float, float] | None, sign: str = "") -> str:
    """An interval.

    >>> between((-0.1, 0.25), "+"), between(None)
    ('\u22120.100 to +0.250', '')
    """
    return "" if ends is None else f"{fixed(ends[0], sign=sign)} to {fixed(ends[1], sign=sign)}"


def compared(group: object, reference: object, word: str = "minus") -> str:
    """Who is compared with whom."""
    return f"{group} {word} {reference}"


# intervals side by side


@dataclass(frozen=True)
class IntervalRow:
    """One interval of a picture; `value` is None where none is determined."""

    name: str
    value: float | None
    low: float
    high: float


def intervals(
    title: str, rows: Sequence[IntervalRow], xlabel: str, *, limits: Sequence[float], rest: float
) -> tuple[Panel, tuple[float, float]]:
    """A panel with one line for each interval, top to bottom, and its size.

    limits: dashed lines at what is allowed. rest: where nothing differs, 0 for differences and 1
    for ratios.
    """

    def draw(axes: "Axes") -> None:
        ends = [end for row in rows for end in (row.low, row.high) if isfinite(end)]
        left = min([rest, *limits, *ends])
        right = max([rest, *limits, *(end for end in ends if end <= 3 or rest == 0)])
        room = 0.06 * max(right - left, 1e-3)
        axes.set_xlim(left - room, right + room)
        colour = LOOKS["certified"].colour
        for place, row in enumerate(rows):
            high = min(row.high, right + room)
            axes.plot([row.low, high], [place, place], color=colour, linewidth=2.4)
            if row.value is not None:
                axes.plot([row.value], [place], "o", color=INK, markersize=6, zorder=4)
        axes.axvline(rest, color=MUTED, linewidth=0.9, zorder=1)
        for limit in limits:
            axes.axvline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=2)
        axes.set_yticks(range(len(rows)), [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set(title=title, xlabel=xlabel)

    longest = max((len(row.name) for row in rows), default=0)
    width = 5.2 + min(longest, 44) * 0.065
    return Panel(draw, f"{title}: {xlabel}"), (width, 1.25 + 0.34 * max(len(rows), 1))


# each kind of record


@singledispatch
def contents(record: Any, columns: Sequence[str] | None = None) -> Contents:
    """What a page says about a record.

    Parameters
    ----------
    record : object
        What `measure`, `certify`, `impact`, `plan`, `evaluate` or another function returned: a
        record with `describe`, `to_frame` and `plot`.
    columns : sequence of str, optional
        The names of the columns that rules look at.

    Returns
    -------
    Contents
        Texts, tables and panels.

    Examples
    --------
    >>> from evenhand.evaluation import Candidate, DecisionLog, evaluate
    >>> log = DecisionLog.of([[1.0]] * 200, [True, False] * 100, [0.5] * 200, [1, 0] * 100)
    >>> found = contents(evaluate(log, Candidate.read("accept-all")))
    >>> [table.title for table in found.tables]
    ['Cost and rates', 'The log']
    """
    words = record.describe() if columns is None else record.describe(columns)
    answer, _, others = words.partition("\n\n")
    assumptions = tuple(getattr(record, "assumptions", ()))
    # They have a section of their own on the page.
    listed = {"Assumptions", *(f"- {one}" for one in assumptions)}
    lines = tuple((line,) for line in others.splitlines() if line.strip() not in {"", *listed})
    tables = [PageTable("In words", ("",), lines)] if lines else []
    drawn = None
    if isinstance(record, Shown):
        tables.append(_own_table(record._columns()))

        def draw(axes: "Axes") -> None:
            record.plot(axes)

        drawn = Drawn((Panel(draw, answer),), (7.0, 4.2), "")
    return Contents(
        type(record).__name__,
        tuple(answer.splitlines()),
        tuple(tables),
        drawn,
        tuple(getattr(record, "warnings", ())),
        assumptions,
    )


def _own_table(columns: Mapping[str, Sequence[Any]]) -> PageTable:
    """The table of a record as it is, without columns that are empty."""

    def cell(value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        number = float(value)
        return f"{int(number):,}" if number.is_integer() else fixed(number, 4)

    kept = {name: values for name, values in columns.items() if any(one != "" for one in values)}
    rows = [tuple(map(cell, row)) for row in zip(*kept.values(), strict=True)]
    note = f"{len(rows):,} rows, of which {MOST_ROWS} are shown." if len(rows) > MOST_ROWS else ""
    heads = tuple(name.replace("_", " ") for name in kept)
    return PageTable("Figures", heads, tuple(rows[:MOST_ROWS]), note)


def _side_by_side(made: Sequence[tuple[Panel, tuple[float, float]]], caption: str) -> Drawn | None:
    if not made:
        return None
    widths, heights = zip(*(size for _, size in made), strict=True)
    return Drawn(tuple(panel for panel, _ in made), (max(widths), max(heights)), caption)


# what a log says about another policy


@contents.register
def _evaluated(record: Evaluation, _columns: Sequence[str] | None = None) -> Contents:
    def cells(estimate: Estimate, sign: str = "") -> tuple[str, str]:
        ends = (estimate.lower, estimate.upper)
        return fixed(estimate.value, sign=sign) or "unknown", between(ends, sign)

    gaps = [
        (
            gap.rate,
            compared(gap.group, gap.reference),
            *cells(gap.estimate, "+"),
            gap.stands(record.limit),
        )
        for gap in record.gaps
    ]
    rates = [
        (
            f"{one.rate} {one.group}",
            *cells(one.estimate),
            f"{one.labelled:,.0f}",
            f"{one.effective:,.0f}",
        )
        for one in record.rates
    ]
    shares = [
        ("decisions", f"{record.people:,.0f}"),
        ("accepted", f"{record.accepted:,.0f}"),
        ("accepted, outcome open", f"{record.open:,.0f}"),
        ("of no group that is compared", f"{record.outside:,.0f}"),
        (
            "the candidate's accepts are worth",
            f"{record.support.effective_accepts:,.0f} equally weighted ones",
        ),
    ]
    value, ends = cells(record.loss)
    tables = []
    if gaps:
        heads = ("rate", "compared", "estimate", "in the population", f"at most {record.limit:g}")
        tables.append(PageTable("Gaps", heads, tuple(gaps)))
    heads = ("", "estimate", "in the population", "people", "worth")
    cost = ("cost per person", value, ends, "", "")
    note = "Worth: as many equally weighted people would be as informative."
    tables.append(PageTable("Cost and rates", heads, (cost, *rates), note))
    tables.append(PageTable("The log", ("", ""), tuple(shares)))
    panels = [
        Panel(
            partial(estimate_figures.draw_estimated_gap, evaluation=record, number=number),
            f"Estimated gap {gap.name} by row of the log",
        )
        for number, gap in enumerate(record.gaps)
    ]
    loss = partial(estimate_figures.draw_estimated_loss, evaluation=record)
    panels.append(Panel(loss, "Estimated loss by row of the log"))
    return Contents(
        f"What {record.candidate} would have done",
        (record.sentence, f"Cost per person: {value}; {ends} in the population."),
        tuple(tables),
        Drawn(
            tuple(panels),
            estimate_figures.PANEL,
            "Estimates are doubly robust; the intervals hold together, at every row of the log at "
            "once.",
        ),
        tuple(record.warnings),
        tuple(record.assumptions),
        shows_status=True,
    )

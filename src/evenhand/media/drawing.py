"""What all figures share: one look per learner, panels and files, labels, and SVG for a page.

The colours follow Okabe and Ito and Tol (a little darker where text must be read in them). Line
styles differ too, so that nothing depends on colour alone. matplotlib is imported where a figure
is drawn or saved.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import install_hint
from evenhand.shown import imported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Dash = str | tuple[float, tuple[float, ...]]
"""A line style of matplotlib: a name, or an offset with the lengths of lines and gaps."""
DrawOptions = dict[str, Any]
"""Keyword arguments of a function of matplotlib."""
INK = "#1b1f24"
MUTED = "#5c636b"
RULE = "#d9dce0"
ALARM = "#c4400c"
STYLE: "dict[RcKeyType, Any]" = {
    "font.size": 10.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.6,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "svg.hashsalt": "evenhand",  # the same figure gives the same SVG
}


@dataclass(frozen=True)
class Look:
    """How a line is drawn; `dark` is its colour on a dark page."""

    colour: str
    dark: str
    dash: Dash = "-"
    width: float = 1.8

    @property
    def line(self) -> DrawOptions:
        """The line as matplotlib draws it."""
        return {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}


LOOKS: Mapping[str, Look] = {
    "two-phase": Look("#0072b2", "#5cb8f5", width=2.8),
    "certified": Look("#117733", "#6fd08c", width=2.8),
    "explore-then-commit": Look("#009e73", "#3fd0a4", (0, (5, 1.5))),
    "explore-then-commit-same": Look("#5b4bb3", "#b3a7ff", (0, (2.5, 1.2))),
    "exp4": Look("#b0609a", "#e39bcb", (0, (6, 1.5, 1.2, 1.5))),
    "unconstrained": Look("#d55e00", "#ff8f45", "-"),
    "fair-on-gathered": Look("#c08000", "#ffc14d", (0, (4, 1.2, 1, 1.2, 1, 1.2))),
    "accept-all": Look("#7a7f85", "#a3a8ae", (0, (1, 1.2))),
    "uniform": Look("#8b9096", "#8f949a", (0, (1, 2.4))),
}
SPARE = (
    Look("#882255", "#e58fb9", (0, (3, 1, 1, 1))),
    Look("#3b8fc4", "#9fd4ff", (0, (7, 2))),
    Look("#807a00", "#d6cf52", (0, (8, 1.5, 2, 1.5))),
    Look("#44707a", "#8fc3cf", (0, (2, 2))),
)
LINE_COLOURS = {look.colour: look.dark for look in (*LOOKS.values(), *SPARE)}
"""The colours of lines on a light page, with those on a dark page."""
TEXT_VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", ALARM: "--alarm"}
"""The CSS variables that page.css itself defines."""


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each learner: its own if LOOKS knows the name, else the next spare one."""
    names = list(names)
    spare = [name for name in names if name not in LOOKS]
    return {name: LOOKS.get(name) or SPARE[spare.index(name) % len(SPARE)] for name in names}


def css_variable(colour: str) -> str:
    """The CSS variable that stands for a colour."""
    return TEXT_VARIABLES.get(colour, f"--c{colour.removeprefix('#')}")


# panels, figures and files


@dataclass(frozen=True)
class Panel:
    """One drawing of a figure, and what it shows in words for people who cannot see it."""

    draw: Callable[["Axes"], None]
    label: str


PURPOSES = {
    "jinja2": ("writing a report", "plots"),
    "matplotlib": ("drawing a figure", "plots"),
    "pyarrow": ("writing a table as Parquet", "study"),
    "openpyxl": ("writing a workbook", "tables"),
}
"""What a package is needed for, and the extra that brings it."""


def installed(*packages: str) -> bool:
    """Whether all of the packages are there."""
    return all(find_spec(package) is not None for package in packages)


def require(*packages: str) -> None:
    """Raise an error that names the extra to install if one of the packages is missing."""
    for package in packages:
        purpose, extra = PURPOSES[package]
        imported(package, purpose, install_hint(extra))


def draw_panels(panels: Sequence[Panel], columns: int, size: tuple[float, float]) -> "Figure":
    """A figure of panels in rows; `size` is the width and height of one panel in inches."""
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    with rc_context(STYLE):
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(places, panels, strict=False):
            panel.draw(axes)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
    return figure


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG, SVG or PDF; the same figure always gives the same file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What one of the functions of this package drew.
    path : pathlib.Path
        The file. Its ending chooses the format.

    Raises
    ------
    EvenhandError
        If matplotlib is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> with TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder) / "empty.svg")
    ...     (Path(folder) / "empty.svg").read_text().startswith("<?xml")
    True
    """
    require("matplotlib")
    from matplotlib import rc_context

    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with rc_context({"svg.hashsalt": "evenhand"}):
        figure.savefig(path, dpi=200, metadata=undated, facecolor="white")


def inline_svg(panel: Panel, size: tuple[float, float], prefix: str) -> str:
    """A panel as SVG inside a page; `prefix` keeps its ids apart from those of other panels.

    It has no fixed size and no metadata, and its colours are the CSS variables of the page.
    """
    figure = draw_panels([panel], 1, size)
    out = StringIO()
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = out.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    for attribute in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {attribute}="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = svg.replace('href="#', f'href="#{prefix}-').replace("url(#", f"url(#{prefix}-")
    known = {colour: f"var({css_variable(colour)})" for colour in (*LINE_COLOURS, *TEXT_VARIABLES)}
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda match: known.get(match[0], match[0]), svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(panel.label)}"', 1)


# lines, axes and labels


def draw_band(axes: "Axes", x: FloatArray, curves: Iterable[FloatArray], look: Look) -> None:
    """A line within a band; the curves are the line, and the lower and upper end of the band."""
    line, low, high = curves
    axes.fill_between(x, low, high, color=look.colour, alpha=0.16, linewidth=0)
    axes.plot(x, line, **look.line)


def mean_and_middle(runs: FloatArray) -> FloatArray:
    """(3, rounds): of (runs, rounds): the mean over runs, and the ends of their middle 80%."""
    return np.array([runs.mean(axis=0), *np.quantile(runs, [0.1, 0.9], axis=0)])


def step_corners(rounds: IntArray, values: FloatArray, start: float) -> FloatArray:
    """(2, corners): the corners of a step line; values[i] holds up to and including rounds[i].

    >>> step_corners(np.array([100, 1000]), np.array([0.1, 0.3]), start=10).tolist()
    [[10.0, 100.0, 100.0, 1000.0], [0.1, 0.1, 0.3, 0.3]]
    """
    x = np.repeat(np.r_[0, rounds].astype(float), 2)[1:-1]
    return np.array([np.maximum(x, start), np.repeat(values, 2)])


def logarithmic_rounds(axes: "Axes", start: float, rounds: int) -> None:
    """A logarithmic axis of rounds, with numbers such as 20k."""
    axes.set(xscale="log", xlim=(start, rounds), xlabel="round")
    axes.xaxis.set_major_formatter(lambda value, _: short_number(value))
    axes.xaxis.set_minor_formatter(lambda *_: "")


def short_number(value: float) -> str:
    """A number as an axis shows it.

    >>> [short_number(x) for x in (0, 250, 1500, 20_000, 1e6, 2.5e6)]
    ['0', '250', '1.5k', '20k', '1M', '2.5M']
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}".replace("-", "\u2212")
    return f"{value:g}".replace("-", "\u2212")


def short_numbers(axes: "Axes") -> None:
    """At most five ticks on each axis, written as short numbers."""
    axes.locator_params(nbins=5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: short_number(value))


def title_with_note(axes: "Axes", title: str, colour: str, note: str) -> None:
    """A coloured title, and a smaller line of text below it."""
    axes.set_title(title, color=colour, pad=18)
    write_at(axes, note, (0.0, 1.0), (0, 5), xycoords="axes fraction", color=MUTED)


def write_at(
    axes: "Axes", text: str, at: tuple[float, float], offset: tuple[float, float], **options: Any
) -> None:
    """A text so many points away from a place; the place is in the units of the data, unless
    `xycoords` says otherwise.
    """
    options = {"fontsize": 9, **options}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **options)


def label_beside(axes: "Axes", at: tuple[float, float], text: str, colour: str) -> None:
    """A text to the right of a point, which is given in the units of the data."""
    write_at(axes, text, at, (4, 0), va="center", color=colour)


def label_at_right(
    axes: "Axes", height: float, text: str, colour: str, *, bold: bool = False
) -> None:
    """A text to the right of the axes, at a height given in the units of the data."""
    weight = "bold" if bold else "normal"
    at = ("axes fraction", "data")
    options: DrawOptions = dict(va="center", color=colour, fontweight=weight, linespacing=1.05)
    write_at(axes, text, (1.0, height), (5, 0), xycoords=at, **options)


def label_line_ends(axes: "Axes", ends: Mapping[str, float], chosen: Mapping[str, Look]) -> None:
    """Each learner's name where its line ends, moved apart where names would touch.

    `ends` are the last values of the lines, in the units of the data. A line that ends above the
    frame is labelled with the value at which it ends.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]
    heights = {name: float(to_axes.transform((right, end))[1]) for name, end in ends.items()}
    spots = sorted((heights[name], name, end) for name, end in ends.items())
    places = spread_apart(np.array([min(spot, 1.0) for spot, *_ in spots]), 0.07)
    for (spot, name, value), place in zip(spots, places, strict=True):
        colour = chosen[name].colour
        leaves = spot > 1.0
        line: DrawOptions = dict(
            arrowstyle="-", linewidth=0.8, shrinkA=0, shrinkB=1, relpos=(0, 0.5)
        )
        axes.annotate(
            f"{name} \u2191 {short_number(float(f'{value:.2g}'))}" if leaves else name,
            (1.0, min(spot, 1.0)),
            xytext=(1.06, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            fontsize=9.5,
            va="center",
            fontweight="bold" if chosen[name].width > 2 else "normal",
            arrowprops=None if leaves else {"color": colour, **line},
        )


def spread_apart(positions: FloatArray, height: float) -> FloatArray:
    """Sorted positions, moved until neighbours differ by `height` and all lie in [0, 1].

    >>> spread_apart(np.array([0.5, 0.5]), 0.1).round(3).tolist()
    [0.45, 0.55]
    """
    placed = positions.astype(float).copy()
    for _ in range(200 if len(placed) else 0):
        for i in range(len(placed) - 1):
            overlap = height - (placed[i + 1] - placed[i])
            if overlap > 1e-9:
                placed[i] -= overlap / 2
                placed[i + 1] += overlap / 2
        placed[0] = max(placed[0], 0.0)
        placed[-1] = min(placed[-1], 1.0)
    return placed

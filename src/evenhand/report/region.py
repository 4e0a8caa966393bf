"""Figure 1 of the paper, drawn from data: what mixtures reach, what a limit leaves, its cost.

Left: the region {(gap(pi), accuracy(pi)) : pi a mixture}, green within |gap| <= limit, reddish
outside; the constants lie on gap = 0, and OPT is the best point of the green part. Right: what each
limit costs beyond the best mixture without a limit. The colours are those of Okabe and Ito; the two
parts of the region also differ by hatching.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.faircsc import Frontier
from evenhand.faircsc.frontier import convex_hull
from evenhand.fairness.rates import Rate
from evenhand.media.drawing import PLAIN, DrawOptions, require
from evenhand.words import FloatArray, Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

GREEN = "#009E73"
RED = "#D55E00"
BLUE = "#0072B2"
GREY = "#595959"
STYLE: "dict[RcKeyType, Any]" = {
    **PLAIN,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "grid.color": "#DDDDDD",
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.10,
}

OUTSIDE: DrawOptions = dict(facecolor=RED, alpha=0.30, hatch="...", edgecolor="white", linewidth=0)
WITHIN: DrawOptions = dict(facecolor=GREEN, alpha=0.45, edgecolor=GREEN, linewidth=1.2)
WITHIN_LINE: DrawOptions = dict(
    color=GREEN, linewidth=7, alpha=0.6, solid_capstyle="butt", zorder=4
)
"""How the parts of the region are drawn: outside the limit, within it, and without a width."""
BELOW: DrawOptions = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13)}
"""Where a legend stands."""


@dataclass(frozen=True, eq=False)
class RegionPicture:
    """The numbers of the figure.

    Points are (gap, height). The height is the accuracy, or the cost per person where priced.
    """

    region: FloatArray
    accept_all: FloatArray
    reject_all: FloatArray
    optimum: FloatArray
    unlimited: FloatArray
    limit: float
    limits: FloatArray
    price: FloatArray
    priced: bool
    exact: bool

    @classmethod
    def of(cls, frontier: Frontier, limit: float, people: float, priced: bool) -> "RegionPicture":
        """Scale costs to one person, and turn errors into accuracy."""

        def heights(points: FloatArray) -> FloatArray:
            cost = points[:, 1] / people
            return np.column_stack([points[:, 0], cost if priced else 1.0 - cost])

        solved = np.array([[s.gaps[0], s.cost] for s in frontier.solutions])
        known = np.concatenate([frontier.region, solved, frontier.constants])
        known[:, 0] = known[:, 0].round(12) + 0.0  # a gap of 1e-17 is 0, and so is -0
        cheapest = known[np.lexsort((np.abs(known[:, 0]), known[:, 1].round(9)))[0]]
        accept_all, reject_all = heights(frontier.constants)
        price = frontier.price_of_fairness
        price = np.where(price > 1e-9 * np.abs(frontier.costs).max(), price, 0.0)  # not rounding
        return cls(
            region=convex_hull(heights(known)),
            accept_all=accept_all,
            reject_all=reject_all,
            optimum=heights(solved)[nearest(frontier.limits, limit)],
            unlimited=heights(cheapest[None])[0],
            limit=limit,
            limits=frontier.limits,
            price=price / people * (1.0 if priced else 100.0),
            priced=priced,
            exact=frontier.exact,
        )


def nearest(limits: FloatArray, limit: float) -> int:
    """The position of `limit` in the grid."""
    return int(np.argmin(np.abs(limits - limit)))


def clip_strip(polygon: FloatArray, left: float, right: float) -> FloatArray:
    """The part of a convex polygon with left <= x <= right, or an empty array.

    The algorithm of Sutherland and Hodgman, once for each of the two vertical lines.
    """
    for bound, sign in ((left, 1.0), (right, -1.0)):
        kept: list[FloatArray] = []
        for here, there in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            inside, next_inside = (sign * (point[0] - bound) >= 0 for point in (here, there))
            if inside:
                kept.append(here)
            if inside != next_inside:
                share = (bound - here[0]) / (there[0] - here[0])
                kept.append(np.array([bound, here[1] + share * (there[1] - here[1])]))
        polygon = np.array(kept).reshape(-1, 2)
    return polygon


def draw_region(
    frontier: Frontier,
    limit: float,
    *,
    people: float,
    rate: Rate,
    groups: tuple[Group, Group],
    priced: bool = False,
) -> "Figure":
    """Draw which gaps and accuracies mixtures of a class reach, and what each limit costs.

    Parameters
    ----------
    frontier : Frontier
        What `evenhand.faircsc.frontier` returned.
    limit : float
        The limit to mark; one of the limits of the frontier.
    people : float
        How many people the costs are summed over.
    rate : Rate
        The rate whose gap is limited.
    groups : tuple
        The two groups; the gap is the rate of the second minus the rate of the first.
    priced : bool, default=False
        Whether costs are in units of prices. Otherwise they are errors, and accuracy is shown.

    Returns
    -------
    matplotlib.figure.Figure
        The region on the left, the price of fairness on the right.

    Raises
    ------
    EvenhandError
        If matplotlib is not installed.

    Notes
    -----
    This is Figure 1 of the paper, with the numbers of a table in place of a sketch.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> x, group = np.arange(40.0)[:, None], np.array(["a", "b"] * 20)
    >>> label = np.where((np.arange(40) * 7) % 40 > 15, 1, -1)
    >>> sample, rate = eh.LabelledSample(x, group, label), eh.FalsePositiveRate()
    >>> problem = eh.Prices().problem(x, group, label)
    >>> frontier = eh.faircsc.frontier(problem, eh.Stumps(), rate, sample, [0.0, 0.1, 0.2])
    >>> figure = draw_region(frontier, 0.1, people=40, rate=rate, groups=("a", "b"))
    >>> figure.axes[0].get_title(loc="left")
    'What mixtures can reach'
    """
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    picture = RegionPicture.of(frontier, limit, people, priced)
    with rc_context(STYLE):
        figure = Figure(figsize=(12.0, 6.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
        _draw_reachable(left, picture)
        texts = [str(group) for group in groups]
        first, second = (text if len(text) <= 22 else text[:21] + "…" for text in texts)
        left.set_xlabel(f"gap in {rate.name}: {second} minus {first}")
        _draw_price(right, picture)
        right.set_xlabel(f"limit on the gap in {rate.name}")
        for axes in (left, right):
            if max(map(abs, axes.get_ylim())) >= 1000:
                axes.yaxis.set_major_formatter("{x:,.0f}")
    return figure


def _draw_reachable(axes: "Axes", picture: RegionPicture) -> None:
    region = picture.region
    limit = picture.limit
    # the parts outside the limit; only the first that has an area is named in the legend
    name: str | None = f"reachable, but |gap| > {limit:g}"
    for left, right in ((-2.0, -limit), (limit, 2.0)):
        part = clip_strip(region, left, right)
        x, y = part.T
        if abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) > 0:
            axes.fill(x, y, label=name, **OUTSIDE)
            name = None
    # the part within it; a line where it has no width (a limit of 0, or constants only)
    x, y = clip_strip(region, -limit, limit).T
    name = f"reachable within |gap| ≤ {limit:g}"
    if len(x) and np.ptp(x) > 1e-9:
        axes.fill(x, y, label=name, **WITHIN)
    else:
        axes.plot(x, y, label=name, **WITHIN_LINE)
    axes.plot(*np.concatenate([region, region[:1]]).T, color=GREY, linewidth=1.1, zorder=3)
    for side in (-limit, limit) if limit > 0 else ():
        name = f"limit ±{limit:g}" if side == limit else None
        axes.axvline(side, color=GREY, linestyle="--", linewidth=1.0, zorder=2, label=name)
    _mark_points(axes, picture)
    axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=1)
    x, y = region.T
    reach = min(1.12 * max(float(np.abs(x).max()), 1.6 * limit, 0.02), 1.08)
    margin = 0.07 * (float(np.ptp(y)) or 1e-3)
    axes.set(xlim=(-reach, reach), ylim=(float(y.min()) - margin, float(y.max()) + margin))
    found = "" if picture.exact else " (as far as found)"
    axes.set_title(f"What mixtures can reach{found}", loc="left")
    cost = "cost per person (lower is better)"
    accuracy = "accuracy: share of right decisions"
    axes.set_ylabel(cost if picture.priced else accuracy)
    axes.legend(ncols=2, columnspacing=1.6, handlelength=1.8, **BELOW)


def _mark_points(axes: "Axes", picture: RegionPicture) -> None:
    # where points coincide, the smaller marker lies on the larger one: triangle on star on ring
    height = "cost" if picture.priced else "accuracy"
    best = "best" if picture.exact else "best found"
    optimum = ("OPT: " if picture.exact else "") + f"{best} within the limit"
    for order, ((gap, value), marker, size, face, edge, name) in enumerate(
        (
            (picture.unlimited, "o", 210, "none", BLUE, f"{best} without a limit"),
            (picture.optimum, "*", 230, "black", "black", optimum),
            (picture.accept_all, "^", 42, "white", "black", "accept all applicants"),
            (picture.reject_all, "v", 42, "white", "black", "reject all applicants"),
        )
    ):
        width = 2.2 if face == "none" else 1.2
        text = f"{name} ({height} {_number(value)})"
        dot: DrawOptions = dict(
            marker=marker, s=size, facecolor=face, edgecolor=edge, linewidth=width
        )
        axes.scatter([gap], [value], zorder=5 + order, label=text, **dot)


def _draw_price(axes: "Axes", picture: RegionPicture) -> None:
    limits = picture.limits
    price = picture.price
    name = "cheapest mixture within each limit"
    axes.plot(limits, price, color=BLUE, linewidth=2.0, marker="o", markersize=3.5, label=name)
    axes.fill_between(limits, 0.0, price, color=BLUE, alpha=0.12, linewidth=0)
    # the chosen limit, and the limit from which on nothing is lost
    here = nearest(limits, picture.limit)
    name = f"{'OPT' if picture.exact else 'best found'} at limit {picture.limit:g}: "
    name += _number(price[here]) + ("" if picture.priced else " per 100")
    x = limits[here]
    y = price[here]
    axes.scatter([x], [y], marker="*", s=230, color="black", zorder=5, label=name)
    axes.axvline(picture.limit, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
    free = abs(float(picture.unlimited[0]))
    if picture.exact and limits.min() < free <= limits.max():
        name = f"the gap without a limit, {free:.3g}: from there on free"
        axes.axvline(free, color=BLUE, linestyle=":", linewidth=1.4, zorder=1, label=name)
    top = float(price.max()) or 1.0
    axes.set_ylim(-0.04 * top, 1.12 * top)
    if not price.any():
        text = "no limit costs anything here"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=GREY)
    axes.set_title("What a limit costs on this table", loc="left")
    axes.set_ylabel("extra cost per person" if picture.priced else "extra errors per 100 people")
    axes.legend(ncols=1, **BELOW)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

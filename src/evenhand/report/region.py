"""Figure 1 of the paper, drawn from data: which (gap, accuracy) mixtures reach, what a limit leaves, and what it costs.

Left: the region {(gap(pi), accuracy(pi)) : pi a mixture}, green within |gap| <= limit, reddish outside; the constants lie on
gap = 0, and OPT is the best point of the green part. Right: what each limit costs beyond the best mixture without a limit.
Colours are those of Okabe and Ito; the two parts of the region also differ by hatching.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import EvenhandError
from evenhand.faircsc import Frontier
from evenhand.faircsc.frontier import convex_hull
from evenhand.fairness.rates import Rate
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREEN, RED, BLUE, GREY = "#009E73", "#D55E00", "#0072B2", "#595959"
STYLE = {
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "legend.fontsize": 9.5,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.10,
    "svg.hashsalt": "evenhand",  # the same figure gives the same SVG
}


@dataclass(frozen=True, eq=False)
class RegionPicture:
    """The numbers of the figure; points are (gap, height), the height being accuracy, or cost per person where priced."""

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
        return cls(
            region=convex_hull(heights(known)),
            accept_all=accept_all,
            reject_all=reject_all,
            optimum=heights(solved)[nearest(frontier.limits, limit)],
            unlimited=heights(cheapest[None])[0],
            limit=limit,
            limits=frontier.limits,
            price=_price(frontier) / people * (1.0 if priced else 100.0),
            priced=priced,
            exact=frontier.exact,
        )


def _price(frontier: Frontier) -> FloatArray:
    """The price of fairness at each limit, with rounding noise taken as 0."""
    price = frontier.price_of_fairness
    return np.where(price > 1e-9 * np.abs(frontier.costs).max(), price, 0.0)


def nearest(limits: FloatArray, limit: float) -> int:
    """The position of `limit` in the grid."""
    return int(np.argmin(np.abs(limits - limit)))


def clip_strip(polygon: FloatArray, low: float, high: float) -> FloatArray:
    """The part of a convex polygon with low <= x <= high, in the same order; empty where there is none."""
    return _clip_half(_clip_half(polygon, low, 1.0), high, -1.0)


def _clip_half(polygon: FloatArray, bound: float, sign: float) -> FloatArray:
    """Sutherland-Hodgman for one vertical line: keep sign * (x - bound) >= 0."""
    kept: list[FloatArray] = []
    for here, there in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        inside, next_inside = sign * (here[0] - bound) >= 0, sign * (there[0] - bound) >= 0
        if inside:
            kept.append(here)
        if inside != next_inside:
            share = (bound - here[0]) / (there[0] - here[0])
            kept.append(np.array([bound, here[1] + share * (there[1] - here[1])]))
    return np.array(kept).reshape(-1, 2)


def draw_region(
    frontier: Frontier,
    limit: float,
    *,
    people: float,
    rate: Rate,
    groups: tuple[Any, Any],
    priced: bool = False,
    title: str = "",
) -> "Figure":
    """The figure; `limit` must be one of the frontier's limits. `people` scales total costs to one person."""
    figure_class, rc_context = require_matplotlib()
    picture = RegionPicture.of(frontier, limit, people, priced)
    with rc_context(STYLE):
        figure: Figure = figure_class(figsize=(12.0, 6.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
        _draw_reachable(left, picture, rate, groups)
        _draw_price(right, picture, rate)
        if title:
            figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def save_figure(figure: "Figure", path: Path) -> None:
    """Write PNG, SVG or PDF, by the name's ending; the same figure gives the same file."""
    _, rc_context = require_matplotlib()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with rc_context(STYLE):
        figure.savefig(path, dpi=200, metadata=undated, facecolor="white")


def require_matplotlib() -> tuple[Any, Any]:
    """(Figure, rc_context), or an error that says how to get them."""
    try:
        from matplotlib import rc_context  # heavy and optional: only figures need it
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EvenhandError(
            "drawing a figure needs matplotlib, which is not installed.", hint="pip install 'evenhand[plots]'"
        ) from error
    return Figure, rc_context


def _draw_reachable(axes: "Axes", picture: RegionPicture, rate: Rate, groups: tuple[Any, Any]) -> None:
    _shade(axes, picture)
    _mark_points(axes, picture)
    axes.set_title("What mixtures can reach" + ("" if picture.exact else " (as far as found)"), loc="left")
    axes.set_xlabel(f"gap in {rate.name}: {_short(groups[1])} − {_short(groups[0])}")  # noqa: RUF001 (a minus sign)
    axes.set_ylabel("cost per person (lower is better)" if picture.priced else "accuracy: share of right decisions")
    _frame(axes, picture)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, columnspacing=1.6, handlelength=1.8
    )


def _shade(axes: "Axes", picture: RegionPicture) -> None:
    region, limit = picture.region, picture.limit
    outside: dict[str, Any] = {"facecolor": RED, "alpha": 0.30, "hatch": "...", "edgecolor": "white", "linewidth": 0.0}
    name: str | None = f"reachable, but |gap| > {limit:g}"
    for low, high in ((-np.inf, -limit), (limit, np.inf)):
        part = clip_strip(region, max(low, -2.0), min(high, 2.0))
        if _area(part) > 0:
            axes.fill(*part.T, **outside, label=name)
            name = None
    _shade_within(axes, clip_strip(region, -limit, limit), f"reachable within |gap| ≤ {limit:g}")
    axes.plot(*np.concatenate([region, region[:1]]).T, color=GREY, linewidth=1.1, zorder=3)
    for side in (-limit, limit) if limit > 0 else ():
        label = f"limit ±{limit:g}" if side == limit else None
        axes.axvline(side, color=GREY, linestyle="--", linewidth=1.0, zorder=2, label=label)


def _shade_within(axes: "Axes", part: FloatArray, label: str) -> None:
    """The green part; where it has no width (a limit of 0, or constants only) a thick green line."""
    if len(part) and np.ptp(part[:, 0]) > 1e-9:
        axes.fill(*part.T, facecolor=GREEN, alpha=0.45, edgecolor=GREEN, linewidth=1.2, label=label)
    else:
        axes.plot(*part.T, color=GREEN, linewidth=7, alpha=0.6, solid_capstyle="butt", zorder=4, label=label)


def _area(polygon: FloatArray) -> float:
    if len(polygon) < 3:
        return 0.0
    x, y = polygon.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def _short(group: Any) -> str:
    text = str(group)
    return text if len(text) <= 22 else text[:21] + "…"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _mark_points(axes: "Axes", picture: RegionPicture) -> None:
    """Where points coincide, the smaller marker lies on the larger one: triangle on star on ring."""
    text, best = "cost" if picture.priced else "accuracy", "best" if picture.exact else "best found"
    points = (
        (picture.unlimited, "o", 210, "none", BLUE, f"{best} without a limit"),
        (picture.optimum, "*", 230, "black", "black", ("OPT: " if picture.exact else "") + f"{best} within the limit"),
        (picture.accept_all, "^", 42, "white", "black", "accept everybody"),
        (picture.reject_all, "v", 42, "white", "black", "reject everybody"),
    )
    for order, ((x, y), marker, size, face, edge, name) in enumerate(points):
        style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": 2.2 if face == "none" else 1.2}
        axes.scatter([x], [y], marker=marker, s=size, zorder=5 + order, label=f"{name} ({text} {_number(y)})", **style)


def _frame(axes: "Axes", picture: RegionPicture) -> None:
    x, y = picture.region.T
    reach = min(1.12 * max(float(np.abs(x).max()), 1.6 * picture.limit, 0.02), 1.08)
    margin = 0.07 * (float(np.ptp(y)) or 1e-3)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(float(y.min()) - margin, float(y.max()) + margin)
    axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=1)
    _tidy(axes)


def _tidy(axes: "Axes") -> None:
    if max(map(abs, axes.get_ylim())) >= 1000:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_price(axes: "Axes", picture: RegionPicture, rate: Rate) -> None:
    limits, price = picture.limits, picture.price
    line: dict[str, Any] = {"color": BLUE, "linewidth": 2.0, "marker": "o", "markersize": 3.5}
    axes.plot(limits, price, **line, label="cheapest mixture within each limit")
    axes.fill_between(limits, 0.0, price, color=BLUE, alpha=0.12, linewidth=0)
    _mark_limits(axes, picture)
    axes.set_title("What a limit costs on this table", loc="left")
    axes.set_xlabel(f"limit on the gap in {rate.name}")
    axes.set_ylabel("extra cost per person" if picture.priced else "extra errors per 100 people")
    top = float(price.max()) or 1.0
    axes.set_ylim(-0.04 * top, 1.12 * top)
    if not price.any():
        axes.text(0.5, 0.5, "no limit costs anything here", transform=axes.transAxes, ha="center", color=GREY)
    _tidy(axes)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=1, frameon=False)


def _mark_limits(axes: "Axes", picture: RegionPicture) -> None:
    """The chosen limit, and the limit from which on nothing is lost."""
    here = nearest(picture.limits, picture.limit)
    opt = "OPT" if picture.exact else "best found"
    told = f"{opt} at limit {picture.limit:g}: {_number(picture.price[here])}" + ("" if picture.priced else " per 100")
    axes.scatter([picture.limits[here]], [picture.price[here]], marker="*", s=230, color="black", zorder=5, label=told)
    axes.axvline(picture.limit, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
    free = abs(float(picture.unlimited[0]))
    if picture.exact and picture.limits.min() < free <= picture.limits.max():
        label = f"the gap without a limit, {free:.3g}: from there on free"
        axes.axvline(free, color=BLUE, linestyle=":", linewidth=1.4, zorder=1, label=label)

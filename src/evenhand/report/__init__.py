"""Figures and pages. matplotlib is loaded when one is drawn (pip install 'evenhand[plots]')."""

from evenhand.report.html import Report, page
from evenhand.report.region import draw_region, save_figure
from evenhand.report.runs import gap_figure, regret_and_gap_figure, regret_figure, tradeoff_figure

__all__ = [
    "Report",
    "draw_region",
    "gap_figure",
    "page",
    "regret_and_gap_figure",
    "regret_figure",
    "save_figure",
    "tradeoff_figure",
]

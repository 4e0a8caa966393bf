"""Figures and pages. matplotlib is loaded when one is drawn (pip install 'evenhand[plots]')."""

from evenhand.report.certified import certified_figure, certified_runs, in_sample_figure, promise_cost_figure
from evenhand.report.html import Report, page
from evenhand.report.launch import plan_figure
from evenhand.report.region import draw_region, save_figure
from evenhand.report.runs import gap_figure, regret_and_gap_figure, regret_figure, tradeoff_figure

__all__ = [
    "Report",
    "certified_figure",
    "certified_runs",
    "draw_region",
    "gap_figure",
    "in_sample_figure",
    "page",
    "plan_figure",
    "promise_cost_figure",
    "regret_and_gap_figure",
    "regret_figure",
    "save_figure",
    "tradeoff_figure",
]

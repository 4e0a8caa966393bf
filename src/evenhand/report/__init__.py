"""Figures. matplotlib is loaded when one is drawn (pip install 'evenhand[plots]')."""

from evenhand.report.region import draw_region, save_figure

__all__ = ["draw_region", "save_figure"]

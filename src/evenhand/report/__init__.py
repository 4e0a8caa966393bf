"""Figures and pages of what was simulated.

matplotlib and jinja2 are imported when one is made (the extra `plots`).
"""

from evenhand.media.drawing import save_figure
from evenhand.report.pages import Report, StudyReport, page, study_page
from evenhand.report.run_figures import (
    certified_figure,
    certified_run_figure,
    certified_runs,
    gap_figure,
    in_sample_figure,
    regret_and_gap_figure,
    regret_figure,
)

__all__ = [
    "Report",
    "StudyReport",
    "certified_figure",
    "certified_run_figure",
    "certified_runs",
    "gap_figure",
    "in_sample_figure",
    "page",
    "regret_and_gap_figure",
    "regret_figure",
    "save_figure",
    "study_page",
]

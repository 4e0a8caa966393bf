"""The bandit of the paper: a schedule, the feasibility program, and coordinate descent."""

from evenhand.bandit.coordinate_descent import (
    CoordinateDescent,
    DescentReport,
    Move,
    coordinate_descent,
    explored_constants,
)
from evenhand.bandit.schedule import PracticalSchedule, Schedule, TheorySchedule

__all__ = [
    "CoordinateDescent",
    "DescentReport",
    "Move",
    "PracticalSchedule",
    "Schedule",
    "TheorySchedule",
    "coordinate_descent",
    "explored_constants",
]

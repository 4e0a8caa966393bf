"""The launch planner: what a launch of the certified learner is expected to cost and to bring,
before anybody is decided about.
"""

from evenhand.planning.launch import plan, plan_from_sample
from evenhand.planning.launch_plan import Course, Curve, LaunchPlan, Milestone, Spread
from evenhand.planning.population import Incumbent

__all__ = [
    "Course",
    "Curve",
    "Incumbent",
    "LaunchPlan",
    "Milestone",
    "Spread",
    "plan",
    "plan_from_sample",
]

"""FairCSC: the fair oracle (section 3.1 of the paper), exact in a handful of oracle calls."""

from evenhand.faircsc.columns import Iteration, SaddlePoint
from evenhand.faircsc.frontier import Frontier, frontier
from evenhand.faircsc.oracle import FairCSC, FairSolution, SolveReport, bind_fair, solve_fair

__all__ = [
    "FairCSC",
    "FairSolution",
    "Frontier",
    "Iteration",
    "SaddlePoint",
    "SolveReport",
    "bind_fair",
    "frontier",
    "solve_fair",
]

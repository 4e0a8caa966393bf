"""The protocol of the paper, played: runs, and what they are compared by."""

from evenhand.simulate.run import Engine, Run, simulate

__all__ = ["Engine", "Run", "simulate"]

"""What fairness is measured by: rates and their gaps."""

from evenhand.fairness.rates import (
    FalseNegativeRate,
    FalsePositiveRate,
    GapConstraints,
    Rate,
    SelectionRate,
)

__all__ = ["FalseNegativeRate", "FalsePositiveRate", "GapConstraints", "Rate", "SelectionRate"]
